using System;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

// Collects garbage as it is told to on standard input, a character each: 0, 1 and 2 collect that
// generation, b generation 2 in the background, a allocates, ? does nothing. Each prints what the runtime itself says of
// its collections, and when another thread stood still for longest.
public static class Program {
#if WINDOWS
    [DllImport("ucrtbase", EntryPoint = "_read")] static extern unsafe int reads(int fd, byte* p, uint n);
    [DllImport("kernel32")] static extern unsafe int QueryPerformanceCounter(long* at);
    static unsafe IntPtr read(int fd, byte* p, IntPtr n) { return (IntPtr)reads(fd, p, (uint)n); }
#else
    [DllImport("libc")] static extern unsafe IntPtr read(int fd, byte* p, IntPtr n);
    [DllImport("libc")] static extern unsafe int clock_gettime(int clock, long* ts);
#endif

    class Node { public Node Left, Right; public long A; }
    static Node kept;
    static object dropped;
    static byte[] large;
    static volatile bool ticking, ticks;
    static long gapStart, gapEnd;

    static unsafe long Now() {
        long* ts = stackalloc long[2];
#if WINDOWS
        QueryPerformanceCounter(ts);
        return ts[0] * 100; // its unit in Wine
#else
        clock_gettime(1, ts);
        return ts[0] * 1000000000 + ts[1];
#endif
    }
    static void Tick() {
        for (;;) {
            if (!ticking) { ticks = false; Thread.Sleep(1); continue; }
            if (!ticks) { gapStart = gapEnd = 0; }
            long last = Now();
            for (bool more = true; more; ) { // once more at the end, which may come before the pause is over here
                more = ticking;
                long now = Now();
                if (now - last > gapEnd - gapStart) { gapStart = last; gapEnd = now; }
                last = now;
                ticks = true;
            }
        }
    }
    static Node Tree(int depth) { return depth == 0 ? new Node() : new Node { Left = Tree(depth - 1), Right = Tree(depth - 1), A = depth }; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate(int n) { for (int i = 0; i < n; i++) dropped = new Node { A = i }; }

    static void Collect(char how) {
        Allocate(100000);
        switch (how) {
#if TRIMMED
        case '2': GC.Collect(); break;
        default: Allocate(5000000); break;
#else
        case '0': GC.Collect(0); break;
        case '1': GC.Collect(1); break;
        case '2': GC.Collect(2); break;
        case 'b':
            int before = GC.CollectionCount(2);
            GC.Collect(2, GCCollectionMode.Forced, false);
            for (int i = 0; i < 1000 && GC.CollectionCount(2) == before; i++) Thread.Sleep(1);
            Thread.Sleep(300);
            break;
        default: Allocate(5000000); break;
#endif
        }
    }

    // The framework of 10 was trimmed, and the compiler's references are older than 8: what may be missing
    // is asked for by name.
    const BindingFlags any = BindingFlags.Static | BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;
    static long Paused() {
        MethodInfo m = typeof(GC).GetMethod("GetTotalPauseDuration", any);
        return m == null ? -1 : ((TimeSpan)m.Invoke(null, null)).Ticks;
    }
    static long Number(object o) { return o is TimeSpan ? ((TimeSpan)o).Ticks : o is bool ? ((bool)o ? 1 : 0) : Convert.ToInt64(o); }
    static object Field(object of, string name) {
        FieldInfo f = of.GetType().GetField(name, any);
        return f == null ? null : f.GetValue(of);
    }
    static void Info(StringBuilder to, int kind) {
        Type kinds = typeof(GC).Assembly.GetType("System.GCKind");
        MethodInfo m = kinds == null ? null : typeof(GC).GetMethod("GetGCMemoryInfo", new Type[] { kinds });
        if (m == null) return;
        object data = Field(m.Invoke(null, new object[] { Enum.ToObject(kinds, kind) }), "_data");
        if (data == null) return;
        foreach (string f in new string[] { "_index", "_generation", "_heapSizeBytes", "_fragmentedBytes", "_totalCommittedBytes", "_promotedBytes", "_compacted", "_concurrent", "_pauseDuration0", "_pauseDuration1" }) {
            object v = Field(data, f);
            if (v != null) to.Append(" k").Append(kind).Append(f).Append('=').Append(Number(v));
        }
        for (int i = 0; i < 5; i++) {
            object g = Field(data, "_generationInfo" + i);
            if (g == null) continue;
            foreach (PropertyInfo p in g.GetType().GetProperties()) to.Append(" k").Append(kind).Append("_g").Append(i).Append(p.Name).Append('=').Append(Number(p.GetValue(g)));
        }
    }
    static string Says() {
        StringBuilder to = new StringBuilder();
        to.Append("paused=").Append(Paused()).Append(" gapStart=").Append(gapStart).Append(" gapEnd=").Append(gapEnd);
        for (int k = 1; k <= 3; k++) Info(to, k);
        for (int g = 0; g < 3; g++) to.Append(" gc").Append(g).Append('=').Append(GC.CollectionCount(g));
        return to.Append(" memory=").Append(GC.GetTotalMemory(false)).ToString();
    }

    public static unsafe int Main(string[] args) {
        kept = Tree(19);
        large = new byte[20000000];
        Says();
        new Thread(Tick) { IsBackground = true }.Start();
        GC.Collect();
        Console.WriteLine(Says());
        byte c;
        while (read(0, &c, (IntPtr)1) == (IntPtr)1) {
            if (c == '?') { Console.WriteLine(Says()); continue; }
            ticking = true;
            while (!ticks) Thread.Sleep(0);
            Collect((char)c);
            ticking = false;
            while (ticks) Thread.Sleep(0);
            Console.WriteLine(Says());
        }
        GC.KeepAlive(kept);
        return 0;
    }
}
