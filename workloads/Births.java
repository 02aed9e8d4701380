import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A thousand threads begin each second, work for 200 µs and end.
 *
 * Argument: seconds to run. The last line is the truth, of the threads' own CPU
 * time by the JDK's account:
 * {"born": ns, "threads": number}
 */
public class Births {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final AtomicLong BORN = new AtomicLong();
    static volatile long sink;

    static void life() {
        long from = THREADS.getCurrentThreadCpuTime();
        long until = System.nanoTime() + 200_000, x = until;
        while (System.nanoTime() < until) for (int i = 0; i < 20; i++) x = x * 31 + i;
        sink = x;
        BORN.addAndGet(THREADS.getCurrentThreadCpuTime() - from);
    }

    public static void main(String[] args) throws Exception {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 10;
        long begin = System.nanoTime(), end = begin + (long) (seconds * 1e9);
        int n = 0;
        while (System.nanoTime() < end) {
            while (n < (System.nanoTime() - begin) / 1_000_000 && System.nanoTime() < end) {
                new Thread(Births::life, "born").start();
                n++;
            }
            Thread.sleep(1);
        }
        Thread.sleep(200);
        System.out.println("{\"born\": " + BORN.get() + ", \"threads\": " + n + "}");
    }
}
