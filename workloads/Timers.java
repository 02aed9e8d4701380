import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.locks.LockSupport;

/**
 * Tasks on timers: threads that wake every 4, 5, 10 and 20 ms, each at several
 * phases, burn CPU for a tenth of their period and sleep again. A sampler that
 * keeps step with one of the timers sees it too often or never. Each thread
 * measures its own CPU time.
 *
 * Argument: seconds to run. The last line is the truth: {"thread name": ns, ...}
 */
public class Timers {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static volatile long sink;

    static final class Task extends Thread {
        final long period, phase, end;
        long cpu;

        Task(String name, long period, long phase, long end) {
            super(name);
            this.period = period;
            this.phase = phase;
            this.end = end;
        }

        public void run() {
            long next = (System.nanoTime() / period + 1) * period + phase;
            while (next < end) {
                long now;
                while ((now = System.nanoTime()) < next) LockSupport.parkNanos(next - now);
                burn(period / 12);
                next += period;
            }
            cpu = THREADS.getCurrentThreadCpuTime();
        }
    }

    static void burn(long ns) {
        long until = System.nanoTime() + ns, x = until;
        while (System.nanoTime() < until) for (int i = 0; i < 100; i++) x = x * 31 + i;
        sink = x;
    }

    public static void main(String[] args) throws Exception {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 10;
        long end = System.nanoTime() + (long) (seconds * 1e9);
        long ms = 1_000_000;
        Task[] tasks = new Task[8];
        int n = 0;
        for (long period : new long[] {4, 5, 10, 20}) {
            for (int phase = 0; phase < 2; phase++) {
                tasks[n] = new Task("every-" + period + "ms-" + phase, period * ms, phase * period * ms * 2 / 5, end);
                tasks[n++].start();
            }
        }
        StringBuilder out = new StringBuilder("{");
        for (Task t : tasks) {
            t.join();
            out.append(out.length() > 1 ? ", " : "").append('"').append(t.getName()).append("\": ").append(t.cpu);
        }
        System.out.println(out.append('}'));
    }
}
