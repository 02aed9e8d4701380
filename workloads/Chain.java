/**
 * An adversarial chain of calls: eight tiny methods, none of them inlined, so
 * that much of the time is spent in calls, prologues, epilogues and returns.
 * Run it with
 *   -XX:CompileCommand=quiet -XX:CompileCommand=dontinline,Chain::f*
 * Whoever is on top, all its callers must be below it: a sample in f5 shows f4,
 * f3, f2, f1, run and main.
 *
 * Argument: seconds to run.
 */
public class Chain {
    static int f1(int x) { return f2(x + 1) + 1; }
    static int f2(int x) { return f3(x ^ 2) + 2; }
    static int f3(int x) { return f4(x + 3) ^ 3; }
    static int f4(int x) { return f5(x ^ 4) + 4; }
    static int f5(int x) { return f6(x + 5) ^ 5; }
    static int f6(int x) { return f7(x ^ 6) + 6; }
    static int f7(int x) { return f8(x + 7) ^ 7; }
    static int f8(int x) { return x * 31; }

    static int sink;

    static void run(long end) {
        while (System.nanoTime() < end) {
            int s = sink;
            for (int i = 0; i < 100_000; i++) s += f1(i);
            sink = s;
        }
    }

    public static void main(String[] args) {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 10;
        run(System.nanoTime() + (long) (seconds * 1e9));
    }
}
