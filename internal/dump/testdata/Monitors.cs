using System;
using System.Runtime.CompilerServices;
using System.Threading;

// Threads that wait for monitors: two for each other's, one for one that the main thread holds, one to be
// notified; and three that take the same monitor in turn, and sleep in it.
public class Account { }
public class Stock { }
public static class Program {
    static readonly Account a = new Account(), b = new Account();
    static readonly object gate = new object(), signal = new object();
    static readonly Stock stock = new Stock();
    static readonly ManualResetEvent first = new ManualResetEvent(false), second = new ManualResetEvent(false);
    static void Begin(string name, Action what) {
        new Thread(() => what()) { Name = name, IsBackground = true }.Start();
    }
    static void Transfer(Account from, Account to, ManualResetEvent mine, ManualResetEvent other) {
        lock (from) {
            mine.Set();
            other.WaitOne();
            lock (to) { }
        }
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Inside() { Thread.Sleep(20); }
    static void Turns() { for (;;) { lock (stock) Inside(); Thread.Sleep(1); } }
    public static int Main(string[] args) {
        Monitor.Enter(gate);
        Monitor.Enter(gate);
        Begin("one", () => Transfer(a, b, first, second));
        Begin("two", () => Transfer(b, a, second, first));
        Begin("enter", () => { lock (gate) { } });
        Begin("wait", () => { lock (signal) Monitor.Wait(signal); });
        for (int i = 0; i < 3; i++) Begin("stock-" + i, Turns);
        Thread.Sleep(500);
        Console.WriteLine("ready");
        Thread.Sleep(1000000);
        return 0;
    }
}
