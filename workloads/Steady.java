import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Steady work on deep stacks, for measuring what profiling costs the program:
 * one thread does the same unit of work over and over, 200 frames deep, and
 * prints how much of its own CPU time a unit takes.
 *
 * Arguments: seconds to run, depth of the stack (default 200), milliseconds from
 * one line to the next (default 1000). A line is "units cpu-ns": units done and CPU
 * time used since the last line. The first two warm up and are printed as "warm".
 */
public class Steady {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static volatile long sink;
    static long lineNanos = 1_000_000_000L;

    // Three methods in turn, so that no compiler can make one frame of many.
    static long a(int depth, long end) { return depth <= 0 ? work(end) : b(depth - 1, end) + 1; }
    static long b(int depth, long end) { return depth <= 0 ? work(end) : c(depth - 1, end) ^ 1; }
    static long c(int depth, long end) { return depth <= 0 ? work(end) : a(depth - 1, end) + 2; }

    /** Works until end and prints as it goes. */
    static long work(long end) {
        long x = 1;
        int line = 0;
        while (System.nanoTime() < end) {
            long units = 0, wall = System.nanoTime(), cpu = THREADS.getCurrentThreadCpuTime();
            while (System.nanoTime() - wall < lineNanos) {
                for (int i = 0; i < 50; i++) x = unit(x);
                units += 50;
            }
            cpu = THREADS.getCurrentThreadCpuTime() - cpu;
            System.out.println((line++ < 2 ? "warm " : "") + units + " " + cpu);
            System.out.flush();
        }
        sink = x;
        return x;
    }

    /** One unit: some 20 microseconds of arithmetic and memory. */
    static long unit(long x) {
        int[] table = TABLE;
        for (int i = 0; i < 4000; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
            table[(int) x & 4095] += (int) x;
        }
        return x;
    }

    static final int[] TABLE = new int[4096];

    public static void main(String[] args) {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 10;
        int depth = args.length > 1 ? Integer.parseInt(args[1]) : 200;
        if (args.length > 2) lineNanos = Long.parseLong(args[2]) * 1_000_000L;
        sink = a(depth, System.nanoTime() + (long) (seconds * 1e9));
    }
}
