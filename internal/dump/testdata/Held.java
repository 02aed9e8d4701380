/** Threads that hold the same monitor one after the other, each for a moment. */
public class Held {
    static class Stock {}
    static final Object stock = new Stock();

    static void hold(long ms) throws InterruptedException {
        synchronized (stock) {
            Thread.sleep(ms);
        }
    }

    public static void main(String[] args) throws Exception {
        long ms = Long.parseLong(args[0]);
        for (int i = 0; i < 4; i++) {
            new Thread("stock-" + i) {
                public void run() {
                    try {
                        while (true) hold(ms);
                    } catch (InterruptedException e) {
                        throw new RuntimeException(e);
                    }
                }
            }.start();
        }
        System.out.println("ready");
    }
}
