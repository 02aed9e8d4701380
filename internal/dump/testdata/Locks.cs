using System;
using System.Runtime.CompilerServices;
using System.Threading;

// Threads that wait for objects of System.Threading.Lock: two for each other's, two for one that the main
// thread holds; and three that take the same one in turn, and sleep in it. Each that waits has waited for
// another one before.
#if TRIMMED
public class Gate {
    readonly Lock l = new Lock();
    [MethodImpl(MethodImplOptions.NoInlining)]
    public void Enter() { l.EnterScope(); }
    public void With(Action what) { using (l.EnterScope()) what(); }
}
#else
public class Gate { // the compiler's references are older than Lock
    public readonly Action Enter;
    readonly Action exit;
    public Gate() {
        object l = Activator.CreateInstance(Type.GetType("System.Threading.Lock"));
        Enter = (Action)Delegate.CreateDelegate(typeof(Action), l, "Enter");
        exit = (Action)Delegate.CreateDelegate(typeof(Action), l, "Exit");
    }
    public void With(Action what) {
        Enter();
        what();
        exit();
    }
}
#endif
public static class Program {
    static readonly Gate a = new Gate(), b = new Gate(), gate = new Gate(), stock = new Gate(), early = new Gate();
    static readonly ManualResetEvent first = new ManualResetEvent(false), second = new ManualResetEvent(false);
    static void Begin(string name, Action what) {
        new Thread(() => { early.With(() => {}); what(); }) { Name = name, IsBackground = true }.Start();
    }
    static void Transfer(Gate from, Gate to, ManualResetEvent mine, ManualResetEvent other) {
        from.Enter();
        mine.Set();
        other.WaitOne();
        to.Enter();
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Inside() { Thread.Sleep(20); }
    static void Turns() { for (;;) { stock.With(Inside); Thread.Sleep(1); } }
    public static int Main(string[] args) {
        gate.Enter();
        gate.Enter();
        early.With(() => {
            Begin("one", () => Transfer(a, b, first, second));
            Begin("two", () => Transfer(b, a, second, first));
            Begin("enter", gate.Enter);
            Begin("enter too", gate.Enter);
            for (int i = 0; i < 3; i++) Begin("stock-" + i, Turns);
            Thread.Sleep(200);
        });
        Thread.Sleep(500);
        Console.WriteLine("ready");
        Thread.Sleep(1000000);
        return 0;
    }
}
