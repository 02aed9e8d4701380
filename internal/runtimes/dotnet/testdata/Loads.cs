using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

// Programs that do one thing all the time: Loads exceptions|syscalls|allocation|native|async.
public static class Program {
#if WINDOWS
    const string C = "ucrtbase";
    [DllImport("kernel32", EntryPoint = "SwitchToThread")] static extern int getppid();
#else
    const string C = "libc";
    [DllImport(C)] static extern int getppid();
#endif
    [DllImport(C)] static extern double atof(string s);
    [DllImport(C)] static extern unsafe void qsort(int* values, IntPtr n, IntPtr size, IntPtr compare);
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)] unsafe delegate int Compare(int* a, int* b);
    static readonly unsafe Compare compare = Ascending;
    static long sum;
    static object kept;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Deep(int depth) {
        if (depth == 0) throw new InvalidOperationException("thrown on purpose");
        try { return Deep(depth - 1) + 1; } finally { sum++; }
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Exceptions() {
        try { Deep(10); }
        catch (InvalidOperationException e) when (e.Message.Length > 3) { sum += e.Message.Length; }
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Syscalls() { for (int i = 0; i < 100; i++) sum += getppid(); }
    class Node { public Node Next; public long A, B, C; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocation() {
        Node n = null;
        for (int i = 0; i < 2000; i++) n = new Node { Next = i % 100 == 0 ? null : n, A = i };
        if (sum++ % 64 == 0) kept = new byte[200000];
        kept = n;
    }
    static unsafe int Ascending(int* a, int* b) { return *a < *b ? -1 : *a > *b ? 1 : 0; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static unsafe void Native() {
        int* v = stackalloc int[200];
        for (int i = 0; i < 200; i++) v[i] = (i * 7919) % 1000;
        qsort(v, (IntPtr)200, (IntPtr)4, Marshal.GetFunctionPointerForDelegate(compare));
        for (int i = 0; i < 20; i++) sum += (long)atof("12.5");
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Work(int n) { long x = n; for (int i = 0; i < 3000; i++) x = x * 31 + i; return x; }
#if TRIMMED
    static void Async() { sum += Work(1); }
#else
    static async Task<long> Inner(int n) {
        await Task.Yield();
        return Work(n);
    }
    static async Task<long> Outer(int n) { return await Inner(n) + await Inner(n + 1); }
    static async Task AsyncAll() {
        Task<long>[] all = new Task<long>[16];
        for (int i = 0; i < all.Length; i++) all[i] = Outer(i);
        foreach (Task<long> t in all) sum += await t;
    }
    static void Async() { AsyncAll().Wait(); }
#endif

    public static int Main(string[] args) {
        Action what = args[0] == "exceptions" ? Exceptions : args[0] == "syscalls" ? Syscalls : args[0] == "allocation" ? Allocation :
            args[0] == "native" ? Native : (Action)Async;
        for (int i = 0; i < 40; i++) { what(); Thread.Sleep(5); }
        Console.WriteLine("ready");
        for (;;) what();
    }
}
