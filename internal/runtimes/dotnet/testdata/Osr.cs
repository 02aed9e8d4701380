using System;
using System.Runtime.CompilerServices;

// A method without optimization whose loop goes on in optimized code each time that it is called.
public static class Program {
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Loop(int n) {
        int s = 0;
        for (int i = 0; i < n; i++) s += i ^ n;
        return s;
    }
    public static int Main(string[] args) {
        long sum = 0;
        Console.WriteLine("ready");
        for (long i = 0; i < 1L << 60; i++) sum += Loop(30);
        return (int)sum;
    }
}
