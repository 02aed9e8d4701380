using System;
using System.Runtime.CompilerServices;

// Methods that are inlined: Outer has the time of Short and of Long, which takes three times as long and is
// inlined into Middle, which is inlined into Outer.
public static class Program {
    static long kept;
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static long Short(long x) {
        x = x * 31 + (x >> 7); x = x * 33 + (x >> 7); x = x * 35 + (x >> 7); x = x * 37 + (x >> 7); x = x * 39 + (x >> 7); x = x * 41 + (x >> 7); x = x * 43 + (x >> 7); x = x * 45 + (x >> 7);
        return x;
    }
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static long Long(long x) {
        x = x * 31 + (x >> 7); x = x * 33 + (x >> 7); x = x * 35 + (x >> 7); x = x * 37 + (x >> 7); x = x * 39 + (x >> 7); x = x * 41 + (x >> 7); x = x * 43 + (x >> 7); x = x * 45 + (x >> 7);
        x = x * 31 + (x >> 7); x = x * 33 + (x >> 7); x = x * 35 + (x >> 7); x = x * 37 + (x >> 7); x = x * 39 + (x >> 7); x = x * 41 + (x >> 7); x = x * 43 + (x >> 7); x = x * 45 + (x >> 7);
        x = x * 31 + (x >> 7); x = x * 33 + (x >> 7); x = x * 35 + (x >> 7); x = x * 37 + (x >> 7); x = x * 39 + (x >> 7); x = x * 41 + (x >> 7); x = x * 43 + (x >> 7); x = x * 45 + (x >> 7);
        return x;
    }
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static long Middle(long x) {
        return Long(x + 1);
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Outer(long x) {
        for (int i = 0; i < 1000; i++) {
            x = Short(x);
            x = Middle(x);
        }
        return x;
    }
    public static int Main(string[] args) {
        long end = Environment.TickCount64 + long.Parse(args[0]);
        while (Environment.TickCount64 < end) kept = Outer(kept);
        return 0;
    }
}
