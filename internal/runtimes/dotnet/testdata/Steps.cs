using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

// Code of all kinds, for the oracle to step through: frames of all shapes, funclets, generics,
// dispatch of all kinds, framework code, native code and back.
public interface IShape { double Area(); T Twice<T>(T x); }
public struct Big { public long A, B, C, D, E; }
public struct Square : IShape {
    public double Side;
    public double Area() { return Side * Side; }
    [MethodImpl(MethodImplOptions.NoInlining)] public T Twice<T>(T x) { return x; }
}
public class Circle : IShape {
    public double R;
    public double Area() { return 3.14 * R * R; }
    [MethodImpl(MethodImplOptions.NoInlining)] public T Twice<T>(T x) { return x; }
}
public class Ring : IShape {
    public double R;
    public double Area() { return 3.14 * R * R / 2; }
    [MethodImpl(MethodImplOptions.NoInlining)] public T Twice<T>(T x) { return x; }
}

public static unsafe class Program {
    [DllImport("libc")] static extern int getpid();
    [DllImport("libc")] static extern double atof(string s);
    static volatile int sink;
    static readonly IShape[] shapes = { new Square { Side = 2 }, new Circle { R = 1 }, new Ring { R = 3 } };
    static readonly Dictionary<string, int> words = new Dictionary<string, int>();
    static readonly object gate = new object();
    static Func<int, int> inc = x => x + 1;
    static event Action<int> Multi;
    [ThreadStatic] static int perThread;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static Big MakeBig(long x) { return new Big { A = x, B = x + 1, C = x + 2, D = x + 3, E = x + 4 }; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long TakeMany(long a, long b, long c, long d, long e, long f, long g, long h, Big i) { return a + b + c + d + e + f + g + h + i.E; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Finally(int n) {
        int x = 0;
        try { x = Odd(n); if (n % 3 == 0) return x; } finally { x += Odd(x); sink = x; }
        return x + 1;
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Odd(int n) { return n * 3 + 1; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Stack(int n) {
        byte* p = stackalloc byte[n * 16 + 64];
        for (int i = 0; i < n; i++) p[i] = (byte)i;
        return p[n / 2] + Odd(n);
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Large(int n) {
        Big* p = stackalloc Big[300];
        p[n % 300].A = n;
        return (int)(p[n % 300].A + Odd(n));
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Thrown(int n, int depth) {
        if (depth > 0) {
            try { return Thrown(n, depth - 1) + 1; } finally { sink++; }
        }
        throw new InvalidOperationException("x");
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Caught(int n) {
        try { return Thrown(n, 3); }
        catch (InvalidOperationException e) when (e.Message.Length == n % 2) { return Odd(1); }
        catch (InvalidOperationException) { return Odd(2); }
    }
    static IEnumerable<int> Items(int n) { for (int i = 0; i < n; i++) yield return i * 2; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Dispatch(int n) {
        double s = 0;
        for (int i = 0; i < 6; i++) {
            IShape x = shapes[(i + n) % 3];
            s += x.Area() + x.Twice("a").Length + x.Twice(n);
        }
        return s;
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Text(int n) {
        StringBuilder b = new StringBuilder();
        for (int i = 0; i < 5; i++) b.Append(n + i).Append(',');
        string s = b.ToString();
        int c = 0;
        foreach (string w in s.Split(',')) {
            int old;
            words.TryGetValue(w, out old);
            words[w] = old + 1;
            c += w.Length;
        }
        if (words.Count > 500) words.Clear();
        return c + string.Compare(s, "abc", StringComparison.Ordinal);
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Lists(int n) {
        List<int> l = new List<int>();
        for (int i = 0; i < 20; i++) l.Add((i * 7919 + n) % 100);
        l.Sort();
        l.Sort((a, b) => b - a);
        int c = 0;
        foreach (int x in l.Where(x => x % 2 == 0).Select(x => x * 2)) c += x;
        foreach (int x in Items(5)) c += x;
        return c;
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Locked(int n) { lock (gate) { perThread += n; return perThread + Interlocked.Increment(ref perThread); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Native(int n) { return getpid() + (int)atof("1.5"); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Casts(object o) { return (o is IShape ? 1 : 0) + (o as Circle == null ? 2 : 0) + (o is string[] ? 4 : 0); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static T Generic<T>(T[] a, int i) where T : IComparable<T> { return a[i].CompareTo(a[0]) > 0 ? a[i] : a[0]; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Recursive(int n) { return n < 2 ? n : Recursive(n - 1) + Recursive(n - 2); }
    static decimal money = 1.1m;

    static void Round(int n) {
        sink += Finally(n) + Stack(n % 50) + Large(n) + Text(n) + Lists(n) + Locked(n) + Recursive(6);
        sink += (int)TakeMany(1, 2, 3, 4, 5, 6, 7, n, MakeBig(n)) + (int)Dispatch(n) + inc(n) + Casts(shapes[n % 3]) + Casts("x");
        sink += Generic(new[] { 3, 1, 2 }, n % 3) + Generic(new[] { "b", "a" }, n % 2).Length;
        money = money * 1.01m % 100;
        Multi(n);
        if (n % 4 == 0) sink += Native(n);
        if (n % 16 == 0) sink += Caught(n);
    }

    public static int Main(string[] args) {
        Multi += x => sink += x;
        Multi += x => sink -= x;
        Thread t = new Thread(() => { for (int n = 0; ; n++) Round(n & 0xfff); });
        t.Name = "stepped";
        t.Start();
        Thread.Sleep(args.Length > 0 ? int.Parse(args[0]) : 1000);
        Console.WriteLine("ready");
        t.Join();
        return 0;
    }
}
