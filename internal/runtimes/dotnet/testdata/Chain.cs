using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;

// A chain of methods that are never inlined, called in every way that C# has. Each thread runs it
// until the program is killed.
public interface IStep { long ByInterface(int n); }

public abstract class Base {
    public abstract long ByVirtual(int n);
}

public class Derived : Base, IStep {
    [MethodImpl(MethodImplOptions.NoInlining)]
    public override long ByVirtual(int n) { return ((IStep)this).ByInterface(n) + 1; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    public long ByInterface(int n) { return Box<string>.ByGenericType(n) + Program.calls.Length; }
}

public static class Box<T> {
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long ByGenericType(int n) { return Program.ByGenericMethod<int, T>(n) + typeof(T).Name.Length; }
}

public static class Program {
    public static Func<int, long>[] calls = new Func<int, long>[1];
    static readonly Base[] bases = { new Derived() };
    static long sum;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long ByGenericMethod<A, B>(int n) { return calls[0](n) + typeof(A).Name.Length; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long ByDelegate(int n) { return Leaf(n) + 1; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Leaf(int n) {
        long x = n;
        for (int i = 0; i < n; i++) x = x * 6364136223846793005 + i;
        return x;
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long ByStatic(int n) { return bases[n & 0].ByVirtual(n) + 1; }

    static void Run() {
        for (int i = 0; ; i++) sum += ByStatic(i % 64 == 0 ? 20000 : i % 8);
    }

    public static int Main(string[] args) {
        calls[0] = ByDelegate;
        Thread t = new Thread(Run);
        t.IsBackground = true;
        t.Start();
        Console.WriteLine("ready");
        Run();
        return 0;
    }
}
