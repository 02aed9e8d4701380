/** Two virtual threads that compute without end, one with a name. */
public class Mounted {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        Runnable r = () -> { for (long i = 0; ; i++) sink = i; };
        Thread a = Thread.ofVirtual().name("spinner-\u00e9").start(r);
        Thread b = Thread.ofVirtual().start(r);
        Thread.sleep(500);
        System.out.println("ids " + a.threadId() + " " + b.threadId() + " ready");
        Thread.sleep(3_600_000L);
    }
}
