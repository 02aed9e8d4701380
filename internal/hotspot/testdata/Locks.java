import java.util.concurrent.*;
import java.util.concurrent.locks.*;

/** Threads that wait for each other in every way there is. */
public class Locks {
    static class Plain {}
    static class Fat {}
    static class Waited {}
    static class Blocker {}

    static final Object plain = new Plain(), fat = new Fat(), waited = new Waited(), timed = new Waited();
    static final Object left = new Object(), right = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static final ReentrantReadWriteLock shared = new ReentrantReadWriteLock();
    static volatile long sink;

    static final java.util.List<Thread> started = new java.util.ArrayList<>();

    static void start(String name, int priority, Runnable r) {
        Thread t = new Thread(r, name);
        t.setDaemon(priority != 3);
        t.setPriority(priority);
        t.start();
        started.add(t);
    }

    /** Waits until each thread is where it stays: on a busy machine that takes a while. */
    static void settle() {
        for (Thread t : started) {
            boolean dead = t.getName().startsWith("dead-");
            while (!t.getName().equals("spinning") && (t.getState() == Thread.State.RUNNABLE || dead && t.getState() != Thread.State.BLOCKED)) sleep(5);
        }
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static void meet(CountDownLatch all) {
        all.countDown();
        try {
            all.await();
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static void await(Object o, long ms) {
        synchronized (o) {
            try {
                o.wait(ms);
            } catch (InterruptedException e) {
                throw new RuntimeException(e);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        int idle = args.length > 0 ? Integer.parseInt(args[0]) : 0;
        boolean spin = args.length > 1 && args[1].equals("spin");
        CountDownLatch held = new CountDownLatch(1);
        start("owner", 7, () -> {
            synchronized (fat) {
                synchronized (plain) {
                    lock.lock();
                    shared.writeLock().lock();
                    held.countDown();
                    sleep(3_600_000L);
                }
            }
        });
        held.await();
        start("blocked", 3, () -> { synchronized (plain) { sink++; } });
        start("blocked-too", 6, () -> { synchronized (fat) { sink++; } });
        start("waiting", 5, () -> await(waited, 0));
        start("timed-waiting", 5, () -> await(timed, 3_600_000L));
        start("locking", 5, lock::lock);
        start("reading", 5, () -> shared.readLock().lock());
        start("parked", 5, () -> LockSupport.park(new Blocker()));
        start("timed-parked", 5, () -> LockSupport.parkNanos(new Blocker(), 3_600_000_000_000L));
        start("sleeping", 5, () -> sleep(3_600_000L));
        if (spin) start("spinning", 5, () -> { while (true) sink++; });
        CountDownLatch both = new CountDownLatch(2);
        start("dead-left", 5, () -> { synchronized (left) { meet(both); synchronized (right) { sink++; } } });
        start("dead-right", 5, () -> { synchronized (right) { meet(both); synchronized (left) { sink++; } } });
        SynchronousQueue<Integer> queue = new SynchronousQueue<>();
        for (int i = 0; i < idle; i++) {
            start("idle-" + i, 5, () -> {
                try {
                    sink += queue.take();
                } catch (InterruptedException e) {
                    throw new RuntimeException(e);
                }
            });
        }
        both.await();
        settle();
        sleep(500); // what says that it waits may still try for a moment
        System.out.println("ready");
        sleep(3_600_000L);
    }
}
