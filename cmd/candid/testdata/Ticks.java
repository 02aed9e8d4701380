/** Works in two threads and shows that it goes on, until its input ends. */
public class Ticks {
    static volatile long sink;

    static void work() {
        long x = sink;
        for (int i = 0; i < 100_000; i++) x = x * 31 + i;
        sink = x;
    }

    public static void main(String[] args) throws Exception {
        Thread worker = new Thread(() -> {
            while (true) work();
        }, "the worker");
        worker.setDaemon(true);
        worker.start();
        Thread input = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (java.io.IOException e) { }
            System.exit(0);
        });
        input.setDaemon(true);
        input.start();
        for (int n = 0; ; n++) {
            work();
            System.out.println("tick " + n);
            Thread.sleep(5);
        }
    }
}
