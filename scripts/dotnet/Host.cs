using System;
using System.Reflection;
using System.Runtime.Loader;

// Host runs the program in an assembly, whose class is called Program: Host PROGRAM.dll ARG...
// It uses only what is left in a trimmed framework.
public static class Host {
    public static int Main(string[] args) {
        string[] rest = new string[args.Length - 1];
        Array.Copy(args, 1, rest, 0, rest.Length);
        MethodInfo main = AssemblyLoadContext.Default.LoadFromAssemblyPath(args[0]).GetType("Program").GetMethod("Main");
        return ((Func<string[], int>)main.CreateDelegate(typeof(Func<string[], int>)))(rest);
    }
}
