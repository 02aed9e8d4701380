using System;
using System.Net;
using System.Net.Sockets;
using System.Threading;
using System.Threading.Tasks;

// Threads that wait in many ways, each under its own name.
public static class Program {
    static readonly object gate = new object(), signal = new object();
    static void Begin(string name, Action wait) {
        Thread t = new Thread(() => wait()) { Name = name, IsBackground = true };
        t.Start();
    }
    public static int Main(string[] args) {
        Monitor.Enter(gate);
        Begin("enter", () => { lock (gate) { } });
        Begin("wait", () => { lock (signal) Monitor.Wait(signal); });
        Begin("sleep", () => { for (;;) Thread.Sleep(1000000); });
        Begin("slim", () => new SemaphoreSlim(0).Wait());
        Begin("event", () => new ManualResetEvent(false).WaitOne());
        Begin("any", () => WaitHandle.WaitAny(new WaitHandle[] { new ManualResetEvent(false), new AutoResetEvent(false) }, 100000000));
        Begin("task", () => new TaskCompletionSource<int>().Task.Wait());
        Thread ends = new Thread(() => Thread.Sleep(1000000)) { IsBackground = true, Name = "sleeper" };
        ends.Start();
        Begin("join", () => ends.Join());
        ReaderWriterLockSlim readers = new ReaderWriterLockSlim();
        readers.EnterWriteLock();
        Begin("reader", () => readers.EnterReadLock());
#if !TRIMMED
        Begin("accept", () => { TcpListener s = new TcpListener(IPAddress.Loopback, 0); s.Start(); s.AcceptTcpClient(); });
#endif
        for (int i = 0; i < 4; i++) ThreadPool.QueueUserWorkItem(_ => Thread.Sleep(10), null);
        Thread.Sleep(500);
        Console.WriteLine("ready");
        Thread.Sleep(1000000);
        return 0;
    }
}
