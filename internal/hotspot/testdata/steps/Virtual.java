import java.util.concurrent.locks.LockSupport;

/** A virtual thread whose deeper frames are in the heap: it parks at the bottom of a recursion and then works near its end. */
public class Virtual {
    static volatile long sink;
    static volatile boolean stop;
    static int turns = 3000000;

    static long g1(int n) { return g2(n) + 1; }
    static long g2(int n) { return g3(n) + 1; }
    static long g3(int n) { return g4(n) + 1; }
    static long g4(int n) { return g5(n) + 1; }
    static long g5(int n) { return g6(n) + 1; }
    static long g6(int n) { return work(n) + 1; }
    static long work(int n) {
        long v = 0;
        while (!stop) {
            pause();
            for (int i = 0; i < turns; i++) v = v * 31 + mix(i);
            sink = v;
        }
        return v;
    }
    static final Object lock = new Object();
    static String how = "park";

    /** Leaves the carrier: parked, waiting for a monitor that another thread has most of the time, or in Object.wait. */
    static void pause() {
        switch (how) {
            case "monitor":
                synchronized (lock) { sink++; }
                break;
            case "wait":
                synchronized (lock) {
                    try { lock.wait(1); } catch (InterruptedException e) { throw new RuntimeException(e); }
                }
                break;
            default:
                LockSupport.parkNanos(1000);
        }
    }
    static void holds() {
        while (true) {
            synchronized (lock) { LockSupport.parkNanos(200_000); }
            LockSupport.parkNanos(50_000);
        }
    }
    static long mix(long v) { return v ^ (v >> 3); }

    public static void main(String[] args) throws Exception {
        if (args.length > 0) turns = Integer.parseInt(args[0]);
        if (args.length > 1) how = args[1];
        if (how.equals("monitor")) Thread.ofPlatform().daemon().start(Virtual::holds);
        Thread t = Thread.ofVirtual().start(() -> { while (true) sink = g1(1); });
        System.out.println("ready");
        System.out.flush();
        while (System.in.read() >= 0) { }
    }
}
