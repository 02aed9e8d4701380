import java.io.InputStream;
import java.net.ServerSocket;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads that wait in every way a Java thread can: asleep, parked, in wait(),
 * for a monitor, in accept(), in a read, in join(), and one deep in a
 * recursion. Their stacks do not change, so two tools must agree on them.
 * Prints "ready" and waits until its standard input closes.
 */
public class Blocked {
    static final Object LOCK = new Object();
    static final Object HELD = new Object();

    interface Body { void run() throws Exception; }

    static void start(String name, final Body body) {
        Thread t = new Thread(new Runnable() {
            public void run() {
                try {
                    body.run();
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            }
        }, name);
        t.setDaemon(true);
        t.start();
    }

    static void deep(int n) throws Exception {
        if (n == 0) Thread.sleep(3_600_000);
        else deep(n - 1);
    }

    public static void main(String[] args) throws Exception {
        final CountDownLatch held = new CountDownLatch(1);
        start("asleep", () -> Thread.sleep(3_600_000));
        start("parked", () -> { while (true) LockSupport.park(); });
        start("waiting", () -> { synchronized (LOCK) { while (true) LOCK.wait(); } });
        start("holder", () -> { synchronized (HELD) { held.countDown(); Thread.sleep(3_600_000); } });
        held.await();
        start("contended", () -> { synchronized (HELD) { System.out.println("never"); } });
        start("accepting", () -> new ServerSocket(0).accept());
        start("deep", () -> deep(300));
        final Thread main = Thread.currentThread();
        start("joining", () -> main.join());
        Thread.sleep(500);
        System.out.println("ready");
        System.out.flush();
        InputStream in = System.in;
        while (in.read() >= 0) { }
        System.exit(0);
    }
}
