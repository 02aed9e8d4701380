using System;
using System.Runtime.CompilerServices;

// Methods that spend their time in their handlers, each of which is a function of its own.
public static class Program {
    static long sum;
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static void Spin() { for (int i = 0; i < 20000; i++) sum = sum * 31 + i; }
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static void Finally() { try { sum++; } finally { Spin(); } }
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static void Nested() { try { sum++; } finally { try { sum++; } finally { Spin(); } } }
    // Four calls of the same method, of which the innermost and the outermost spend their time in a handler.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static void Recursive(int n) {
        if (n == 0) { try { sum++; } finally { Spin(); } return; }
        try { sum++; } finally { Recursive(n - 1); }
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Loop(int n) { for (int i = 0; i < n; i++) { try { sum++; } finally { Spin(); } } }
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static bool Filter() { Spin(); return true; }
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static void Throw() { throw new InvalidOperationException("thrown on purpose"); }
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static void Caught() { try { Throw(); } catch (InvalidOperationException) when (Filter()) { Spin(); } }

    public static int Main(string[] args) {
        Console.WriteLine("ready");
        for (;;) { Finally(); Nested(); Recursive(3); Loop(1); Caught(); }
    }
}
