using System;
using System.IO;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;
using System.Threading;

// Code that comes and goes: dynamic methods, and an assembly that is loaded and unloaded again.
public static class Program {
    public static long Spin(int n) { long x = n; for (int i = 0; i < n; i++) x = x * 31 + i; return x; }
    static long sum;

    static Func<int, long> Make(int k) {
        DynamicMethod m = new DynamicMethod("made_" + k, typeof(long), new[] { typeof(int) }, typeof(Program).Module);
        ILGenerator g = m.GetILGenerator();
        g.Emit(OpCodes.Ldarg_0);
        g.EmitCall(OpCodes.Call, typeof(Program).GetMethod("Spin"), null);
        g.Emit(OpCodes.Ldc_I8, (long)k);
        g.Emit(OpCodes.Add);
        g.Emit(OpCodes.Ret);
        return (Func<int, long>)m.CreateDelegate(typeof(Func<int, long>));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Collectible(byte[] image) {
        AssemblyLoadContext c = new AssemblyLoadContext("collectible", true);
        MethodInfo m = c.LoadFromStream(new MemoryStream(image)).GetType("Program").GetMethod("Spin");
        Func<int, long> f = (Func<int, long>)m.CreateDelegate(typeof(Func<int, long>));
        for (int i = 0; i < 20000; i++) sum += f(20000); // for longer than samples wait to be walked
        c.Unload();
    }

    public static int Main(string[] args) {
        byte[] image = File.ReadAllBytes(typeof(Program).Assembly.Location);
        Thread t = new Thread(() => {
            for (int k = 0; ; k++) {
                Collectible(image);
                GC.Collect();
            }
        });
        t.Name = "a thread with a long name";
        t.IsBackground = true;
        t.Start();
        Console.WriteLine("ready");
        for (int k = 0; ; k++) {
            Func<int, long> f = Make(k % 1000);
            for (int i = 0; i < 20; i++) sum += f(20000);
        }
    }
}
