/** A thread in a long loop without polls, and one that asks for safepoints. */
public class Unsafepoint {
    static volatile int sink;

    static int loop(int n) {
        int s = 0;
        for (int i = 0; i < n; i++) s = s * 31 + (s ^ i) % 7;
        return s;
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 20_000; i++) sink += loop(1000);
        Thread looping = new Thread(() -> { while (true) sink += loop(Integer.MAX_VALUE); }, "looping");
        looping.setDaemon(true);
        looping.start();
        Thread collecting = new Thread(() -> { while (true) System.gc(); }, "collecting");
        Thread.sleep(100);
        System.out.println("ready");
        System.out.flush();
        collecting.start();
        Thread.sleep(3_600_000L);
    }
}
