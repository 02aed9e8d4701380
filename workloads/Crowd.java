import java.util.concurrent.CountDownLatch;

/**
 * Thousands of threads that each work for 20 µs every second. It prints "ready"
 * when all of them live.
 *
 * Arguments: threads (default 5,000), seconds to run.
 */
public class Crowd {
    static volatile long sink;

    static void burst() {
        long until = System.nanoTime() + 20_000, x = until;
        while (System.nanoTime() < until) for (int i = 0; i < 20; i++) x = x * 31 + i;
        sink = x;
    }

    public static void main(String[] args) throws Exception {
        int threads = args.length > 0 ? Integer.parseInt(args[0]) : 5000;
        double seconds = args.length > 1 ? Double.parseDouble(args[1]) : 60;
        long end = System.nanoTime() + (long) (seconds * 1e9);
        CountDownLatch alive = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            Thread t = new Thread(null, () -> {
                alive.countDown();
                while (System.nanoTime() < end) {
                    burst();
                    try { Thread.sleep(1000); } catch (InterruptedException e) { return; }
                }
            }, "crowd-" + i, 256 << 10);
            t.setDaemon(true);
            t.start();
        }
        alive.await();
        System.out.println("ready");
        while (System.nanoTime() < end) Thread.sleep(10);
    }
}
