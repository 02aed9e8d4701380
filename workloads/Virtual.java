import java.util.ArrayList;
import java.util.List;

/**
 * Virtual threads (JDK 21 and later) that compute, yield and compute again, so
 * that most of their frames lie in heap chunks behind the return barrier.
 * Argument: seconds to run.
 */
public class Virtual {
    static volatile long sink;

    static long outer(int depth, long end) throws InterruptedException { return depth == 0 ? inner(end) : outer(depth - 1, end) + 1; }

    static long inner(long end) throws InterruptedException {
        long x = 1;
        while (System.nanoTime() < end) {
            x += burst(x);
            Thread.sleep(1);
        }
        return x;
    }

    static long burst(long x) {
        for (int i = 0; i < 200_000; i++) x = x * 31 + i;
        return x;
    }

    public static void main(String[] args) throws Exception {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 10;
        long end = System.nanoTime() + (long) (seconds * 1e9);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            threads.add(Thread.ofVirtual().name("virtual-" + i).start(() -> {
                try {
                    sink += outer(20, end);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }));
        }
        for (Thread t : threads) t.join();
    }
}
