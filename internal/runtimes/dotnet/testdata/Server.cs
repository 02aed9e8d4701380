using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Text;
using System.Threading.Tasks;

// An HTTP server of the framework: Server PORT. Some answers throw and catch an exception first.
public static class Program {
    static string Page(string of) {
        var sorted = new SortedDictionary<string, int>();
        for (int i = 0; i < 100; i++) sorted[i * 7919 % 1009 + of] = i;
        return string.Join(",", sorted.Select(p => p.Key + "=" + p.Value));
    }
    static async Task<string> Answer(string to) {
        await Task.Yield();
        string page = Page(to);
        if (to.EndsWith("7")) {
            try { throw new InvalidOperationException(to); } catch (InvalidOperationException e) { page += e.Message; }
        }
        return page;
    }
    static async Task Handle(HttpListenerContext c) {
        byte[] b = Encoding.UTF8.GetBytes(await Answer(c.Request.Url.Query));
        c.Response.ContentLength64 = b.Length;
        await c.Response.OutputStream.WriteAsync(b, 0, b.Length);
        c.Response.Close();
    }
    static async Task Serve(string port) {
        var listener = new HttpListener();
        listener.Prefixes.Add("http://localhost:" + port + "/");
        listener.Start();
        Console.WriteLine("ready");
        for (;;) {
            HttpListenerContext c = await listener.GetContextAsync();
            _ = Task.Run(() => Handle(c));
        }
    }
    public static int Main(string[] args) { Serve(args[0]).Wait(); return 0; }
}
