import java.util.concurrent.locks.LockSupport;

/** Threads that wait in each way that there is. Prints "ready" and ends with its input. */
public class Waits {
    static final Object monitor = new Object(), signal = new Object();

    static void thread(String name, Runnable r) {
        Thread t = new Thread(r, name);
        t.setDaemon(true);
        t.start();
    }

    static void parkIt() {
        while (true) LockSupport.park();
    }

    static void waitForIt() {
        synchronized (signal) {
            while (true) {
                try {
                    signal.wait();
                } catch (InterruptedException e) {
                    return;
                }
            }
        }
    }

    static void enterIt() {
        synchronized (monitor) {
            System.out.println("entered");
        }
    }

    static void sleepIt() {
        while (true) {
            try {
                Thread.sleep(100000);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        synchronized (monitor) {
            thread("parker", Waits::parkIt);
            thread("waiter", Waits::waitForIt);
            thread("enterer", Waits::enterIt);
            thread("sleeper", Waits::sleepIt);
            Thread.sleep(500);
            System.out.println("ready");
            while (System.in.read() >= 0) { }
        }
    }
}
