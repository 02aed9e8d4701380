import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;

/** Virtual threads that hold what threads of the system's wait for: one sleeps, one runs. */
public class Virtuals {
    static volatile long sink;

    static void keep(String name, ReentrantLock lock, Runnable then) throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        Thread.ofVirtual().name(name).start(() -> {
            lock.lock();
            held.countDown();
            then.run();
        });
        held.await();
        Thread wants = new Thread(lock::lock, "wants-" + name);
        wants.start();
        while (wants.getState() != Thread.State.WAITING) Thread.sleep(5);
    }

    public static void main(String[] args) throws Exception {
        keep("sleeper", new ReentrantLock(), () -> {
            try {
                Thread.sleep(3_600_000L);
            } catch (InterruptedException e) {
                throw new RuntimeException(e);
            }
        });
        keep("spinner", new ReentrantLock(), () -> { while (true) sink++; });
        System.out.println("ready");
        Thread.sleep(3_600_000L);
    }
}
