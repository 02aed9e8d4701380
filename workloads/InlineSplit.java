/**
 * Two small methods that every compiler inlines into run(), with a known split:
 * a() makes 70 steps of a chain of dependent operations, b() makes 30 of the
 * same ones, so that 70 % of the time is a()'s and 30 % b()'s.
 *
 * Argument: seconds to run.
 */
public class InlineSplit {
    private static long step(long x) { return (x ^ (x >>> 29)) * 0x9E3779B97F4A7C15L; }

    private static long a(long x) {
        for (int i = 0; i < 70; i++) x = step(x);
        return x;
    }

    private static long b(long x) {
        for (int i = 0; i < 30; i++) x = step(x);
        return x;
    }

    static long run(long x) {
        for (int i = 0; i < 10_000; i++) {
            x = a(x);
            x = b(x);
        }
        return x;
    }

    public static void main(String[] args) {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 10;
        long end = System.nanoTime() + (long) (seconds * 1e9), x = 1;
        while (System.nanoTime() < end) x = run(x);
        if (x == 42) System.out.println(x);
    }
}
