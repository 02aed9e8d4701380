import java.lang.management.ManagementFactory;
import java.util.concurrent.locks.LockSupport;

/**
 * Computes and allocates for so many ms of CPU time, while other threads wait for each other at a lock, sleep
 * and park, ten times at least.
 */
public class Busy {
    static volatile long sink;
    static final Object lock = new Object();

    static long burn(int n) {
        long x = 0;
        for (int i = 0; i < n; i++) x += Integer.toString(i).hashCode();
        return x;
    }

    static void locked() throws Exception {
        synchronized (lock) {
            Thread.sleep(30);
        }
    }

    public static void main(String[] args) throws Exception {
        long enough = Long.parseLong(args[0]) * 1_000_000;
        Thread worker = new Thread(() -> {
            while (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() < enough) {
                sink += burn(100_000) + new byte[1_000_000].length;
            }
        }, "worker");
        worker.start();
        Thread[] idlers = new Thread[2];
        for (int i = 0; i < idlers.length; i++) {
            idlers[i] = new Thread(() -> {
                try {
                    for (int n = 0; n < 10 || worker.isAlive(); n++) {
                        locked();
                        LockSupport.parkNanos(25_000_000);
                        sink += new byte[1_000_000].length;
                    }
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            }, "idler " + i);
            idlers[i].start();
        }
        worker.join();
        for (Thread t : idlers) t.join();
    }
}
