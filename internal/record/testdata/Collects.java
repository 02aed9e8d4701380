/** Computes until it is told, collects garbage some times, a while apart, and says when it is ready and when done. */
public class Collects {
    static Object sink;

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        while (System.in.available() == 0) {
            Math.sin(System.nanoTime()); // a program that is idle has no samples, and is looked at with these
        }
        System.in.read();
        for (int i = 0; i < 5; i++) {
            for (int j = 0; j < 100; j++) {
                sink = new byte[10_000];
            }
            System.gc();
            long end = System.nanoTime() + 300_000_000L;
            while (System.nanoTime() < end) {
                Math.sin(end);
            }
        }
        System.out.println("done");
        System.in.read();
    }
}
