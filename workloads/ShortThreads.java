import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Threads that live 3 ms each, one after the other, beside a thread that works
 * all the time. The short ones' share is known: each measures its own CPU time
 * at its end.
 *
 * Argument: seconds to run. The last line is the truth:
 * {"short": ns, "long": ns, "threads": number}
 */
public class ShortThreads {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final AtomicLong SHORT = new AtomicLong();
    static volatile long sink;

    static void shortLife() {
        spin(3_000_000L);
        SHORT.addAndGet(THREADS.getCurrentThreadCpuTime());
    }

    static long longLife(long end) {
        while (System.nanoTime() < end) spin(1_000_000L);
        return THREADS.getCurrentThreadCpuTime();
    }

    static void spin(long ns) {
        long until = System.nanoTime() + ns, x = until;
        while (System.nanoTime() < until) for (int i = 0; i < 100; i++) x = x * 31 + i;
        sink = x;
    }

    public static void main(String[] args) throws Exception {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 10;
        final long end = System.nanoTime() + (long) (seconds * 1e9);
        final long[] cpu = new long[1];
        Thread steady = new Thread("long-life") { public void run() { cpu[0] = longLife(end); } };
        steady.start();
        int n = 0;
        while (System.nanoTime() < end) {
            Thread t = new Thread("short-life") { public void run() { shortLife(); } };
            t.start();
            t.join();
            n++;
        }
        steady.join();
        System.out.println("{\"short\": " + SHORT.get() + ", \"long\": " + cpu[0] + ", \"threads\": " + n + "}");
    }
}
