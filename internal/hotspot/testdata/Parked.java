import java.util.*;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.locks.*;

/** Threads that wait in known places, after some code has been compiled. */
public class Parked {
    static final Object lock = new Object();
    static volatile int sink;

    static int hot(int n) {
        int s = 0;
        for (int i = 0; i < n; i++) s += Integer.toString(i).hashCode() + mix(i);
        return s;
    }

    static int mix(int i) { return (i ^ i >>> 3) * 31; }

    static void sorted() {
        List<String> l = new ArrayList<>();
        for (int i = 0; i < 2000; i++) l.add("k" + i * 7919 % 2003);
        l.sort((a, b) -> a.length() != b.length() ? a.length() - b.length() : a.compareTo(b));
        Map<String, Integer> m = new HashMap<>();
        for (String s : l) m.merge(s, 1, Integer::sum);
        sink += m.size();
    }

    static Thread start(String name, Runnable r) {
        Thread t = new Thread(r, name);
        t.setDaemon(true);
        t.start();
        return t;
    }

    static void sleeping() {
        try {
            Thread.sleep(3_600_000L);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static int deep(int n) {
        if (n == 0) {
            sleeping();
            return 0;
        }
        return deep(n - 1) + 1;
    }

    static void take(SynchronousQueue<Integer> queue) {
        while (takeOne(queue) >= 0) sink++;
    }

    static int takeOne(SynchronousQueue<Integer> queue) {
        try {
            return queue.take();
        } catch (InterruptedException e) {
            return -1;
        }
    }

    public static void main(String[] args) throws Exception {
        long warm = args.length > 0 ? Long.parseLong(args[0]) : 1500;
        long end = System.nanoTime() + warm * 1_000_000L;
        // At least so often as is needed to have it compiled: this may get the CPU seldom.
        for (long n = warm / 10; n > 0 || System.nanoTime() < end; n--) {
            sink += hot(1000);
            sorted();
        }
        start("sleeper-with-a-long-name-of-more-than-fifteen", Parked::sleeping);
        start("\u00e9\u4e2d-unicode", () -> deep(20));
        start("parked", () -> LockSupport.park(lock));
        start("", () -> sleeping());
        start("waiter", () -> {
            synchronized (lock) {
                try {
                    lock.wait();
                } catch (InterruptedException e) {
                    throw new RuntimeException(e);
                }
            }
        });
        Thread.sleep(300);
        start("holder", () -> {
            synchronized (sorted) {
                sleeping();
            }
        });
        Thread.sleep(100);
        start("blocked", () -> {
            synchronized (sorted) {
                sink++;
            }
        });
        // A thread that waits below compiled code: its loop has run often enough.
        SynchronousQueue<Integer> queue = new SynchronousQueue<>();
        start("taker", () -> take(queue));
        for (int i = 0; i < 15_000; i++) queue.put(i);
        Thread.sleep(300);
        for (int i = 0; i < 100; i++) queue.put(i); // by what has been compiled meanwhile
        Thread.sleep(300);
        System.out.println("ready");
        Thread.sleep(3_600_000L);
    }

    static final Object sorted = new Object();
}
