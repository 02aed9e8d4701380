import com.sun.net.httpserver.*;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;

/** Requests and parts of them on virtual threads: each goes down d frames, waits there in one of several ways, and computes on the way up. */
public class Served {
    static volatile double sink;
    static final ReentrantLock lock = new ReentrantLock();
    static final Semaphore sem = new Semaphore(2);
    static int down(int d, int how) throws Exception {
        if (d == 0) { waits(how); return burn(1); }
        int r = down(d - 1, how);
        return r + burn(1);
    }
    static int burn(int ms) {
        long end = System.nanoTime() + ms * 60_000L;
        double x = 1;
        while (System.nanoTime() < end) for (int i = 0; i < 50; i++) x = Math.sqrt(x + i);
        sink = x;
        return 1;
    }
    static void waits(int how) throws Exception {
        switch (how) {
            case 0 -> Thread.sleep(1);
            case 1 -> { lock.lock(); try { burn(1); } finally { lock.unlock(); } }
            case 2 -> { sem.acquire(); try { Thread.sleep(1); } finally { sem.release(); } }
            case 3 -> { synchronized (Served.class) { Thread.sleep(0, 100_000); } }
            default -> Thread.yield();
        }
    }
    static int part(int depth, int how) throws Exception { return down(depth, how); }
    /** A request: a part of it runs on a thread of its own. The query is how deep, and how it waits. */
    static int request(String query) throws Exception {
        String[] q = query.split(",");
        int depth = Integer.parseInt(q[0]), how = Integer.parseInt(q[1]);
        try (var parts = Executors.newVirtualThreadPerTaskExecutor()) {
            Future<Integer> part = parts.submit(() -> part(depth, how));
            return down(depth, how) + part.get();
        }
    }
    static void handle(HttpExchange e) {
        try (e) {
            byte[] out = ("" + request(e.getRequestURI().getQuery())).getBytes();
            e.sendResponseHeaders(200, out.length);
            e.getResponseBody().write(out);
        } catch (Exception x) { x.printStackTrace(); }
    }
    /** Asks a server for some seconds. */
    static void load(int port, int seconds) {
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        try (var ex = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < 16; i++) {
                int n = i;
                ex.submit(() -> {
                    Random r = new Random(n);
                    while (System.nanoTime() < end) {
                        var c = (HttpURLConnection) new URI("http://127.0.0.1:" + port + "/?" + (1 + r.nextInt(60)) + "," + r.nextInt(5)).toURL().openConnection();
                        try (var in = c.getInputStream()) { in.readAllBytes(); }
                    }
                    return 0;
                });
            }
        }
    }
    public static void main(String[] a) throws Exception {
        HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 100);
        s.createContext("/", Served::handle);
        s.setExecutor(Executors.newVirtualThreadPerTaskExecutor());
        s.start();
        load(s.getAddress().getPort(), Integer.parseInt(a[0]));
        s.stop(0);
    }
}
