import java.util.concurrent.SynchronousQueue;

/**
 * As many threads as the first argument says that wait for a task, and one that
 * works. Prints "ready" and goes on until it is killed.
 */
public class Waiting {
    static volatile long sink;

    static void start(String name, Runnable body) {
        Thread t = new Thread(null, body, name, 128 << 10);
        t.setDaemon(true);
        t.start();
    }

    public static void main(String[] args) throws Exception {
        SynchronousQueue<Integer> tasks = new SynchronousQueue<>();
        for (int i = Integer.parseInt(args[0]); i > 0; i--) {
            start("waiting-" + i, () -> {
                try {
                    while (true) sink += tasks.take();
                } catch (InterruptedException e) {
                    throw new RuntimeException(e);
                }
            });
        }
        start("working", () -> { while (true) sink++; });
        Thread.sleep(1000);
        System.out.println("ready");
        Thread.sleep(Long.MAX_VALUE);
    }
}
