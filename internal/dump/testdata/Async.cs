using System;
using System.Collections.Generic;
using System.IO;
using System.Threading;
using System.Threading.Tasks;

// Asynchronous methods that wait, and many that have ended: a chain of three on a TaskCompletionSource, one
// on Task.Delay, one on Task.WhenAll of five, one on SemaphoreSlim.WaitAsync, one on an iterator. With an argument a thread
// allocates all the time, part of it for long, so that the collector runs.
#if TRIMMED
// The compiler finds no longer in this framework what it needs for asynchronous methods, so these are the
// framework's own.
public class Never : Stream {
    static readonly TaskCompletionSource<int> answer = new TaskCompletionSource<int>();
    public override ValueTask<int> ReadAsync(Memory<byte> to, CancellationToken stop) { return new ValueTask<int>(answer.Task); }
    public override Task<int> ReadAsync(byte[] to, int offset, int count, CancellationToken stop) { return answer.Task; }
    public override bool CanRead { get { return true; } }
    public override bool CanSeek { get { return false; } }
    public override bool CanWrite { get { return false; } }
    public override long Length { get { return 0; } }
    public override long Position { get { return 0; } set { } }
    public override void Flush() { }
    public override int Read(byte[] to, int offset, int count) { return 0; }
    public override long Seek(long offset, SeekOrigin origin) { return 0; }
    public override void SetLength(long to) { }
    public override void Write(byte[] from, int offset, int count) { }
}
public static class Program {
    static readonly List<Task> all = new List<Task>();
    static readonly SemaphoreSlim gate = new SemaphoreSlim(0);
    static readonly object[] kept = new object[1 << 12];
    static volatile object last;
    static void Begin() {
        all.Add(new StreamReader(new BufferedStream(new Never())).ReadLineAsync(CancellationToken.None).AsTask());
        Task[] enter = new Task[5];
        for (int i = 0; i < 5; i++) enter[i] = gate.WaitAsync(100000000, CancellationToken.None);
        all.Add(Task.WhenAll(enter));
    }
#else
namespace Shop {
    public class Db {
        public static async Task<int> QueryAsync(Task<int> answer) { return await answer + 1; }
    }
    public static class Cart {
        public static async Task<string> SumAsync(Task<int> answer) {
            await Task.Yield();
            return (await Db.QueryAsync(answer)).ToString();
        }
    }
    public static class Checkout {
        public static async Task PayAsync(Task<int> answer) {
            string sum = await Cart.SumAsync(answer);
            Console.WriteLine(sum);
        }
    }
}
public static class Program {
    static readonly TaskCompletionSource<int> answer = new TaskCompletionSource<int>();
    static readonly TaskCompletionSource<bool> go = new TaskCompletionSource<bool>();
    static readonly SemaphoreSlim gate = new SemaphoreSlim(0);
    static readonly List<Task> all = new List<Task>();
    static readonly object[] kept = new object[1 << 12];
    static volatile object last;

    static void Begin() {
        List<Task<int>> ended = new List<Task<int>>();
        for (int i = 0; i < 1000; i++) ended.Add(EndedAsync(i));
        for (int i = 0; i < ended.Count; i++) { ended[i].Wait(); all.Add(ended[i]); }
        all.Add(Shop.Checkout.PayAsync(answer.Task));
        all.Add(SleepAsync());
        all.Add(AllAsync());
        all.Add(EnterAsync());
        all.Add(IterateAsync());
    }
    static async Task SleepAsync() { await Task.Delay(100000000); }
    static async Task<int> LeafAsync(int i) { await go.Task; return i; }
    static async Task AllAsync() {
        Task[] leaves = new Task[5];
        for (int i = 0; i < 5; i++) leaves[i] = LeafAsync(i);
        await Task.WhenAll(leaves);
    }
    static async Task EnterAsync() { await gate.WaitAsync(); }
    static async IAsyncEnumerable<int> ItemsAsync() { await go.Task; yield return 1; }
    static async Task IterateAsync() { await foreach (int i in ItemsAsync()) last = i; }
    static async Task<int> EndedAsync(int i) { await Task.Yield(); return i; }
#endif
    static void Allocate() {
        for (int i = 0; ; i++) {
            byte[] b = new byte[i % 1000];
            last = b;
            if (i % 16 == 0) kept[i / 16 % kept.Length] = new object[] { b, i };
        }
    }
    public static int Main(string[] args) {
        Begin();
        if (args.Length > 0) new Thread(Allocate) { IsBackground = true }.Start();
        Thread.Sleep(300);
        Console.WriteLine("ready");
        Thread.Sleep(100000000);
        return all.Count;
    }
}
