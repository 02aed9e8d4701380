using System;
using System.Runtime.CompilerServices;

// A stack of 50 frames, at the end of which the time is spent.
public static class Program {
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Down(int depth, int n) {
        if (depth > 0) return Down(depth - 1, n) + 1;
        long x = n;
        for (int i = 0; i < n; i++) x = x * 31 + i;
        return x;
    }

    public static int Main(string[] args) {
        long sum = 0;
        for (int i = 0; i < 3000; i++) sum += Down(50, 1000);
        System.Threading.Thread.Sleep(300);
        Console.WriteLine("ready");
        for (;;) sum += Down(50, 10000000);
    }
}
