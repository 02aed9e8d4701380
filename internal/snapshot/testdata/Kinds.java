import java.util.concurrent.locks.LockSupport;

/** Threads that run code of every kind: interpreted, compiled, inlined, stubs, native methods, and virtual threads. */
public class Kinds {
    static volatile long sink;

    static int leaf(int n) {
        int s = n;
        for (int i = 0; i < 50; i++) {
            s = s * 31 + i;
        }
        return s;
    }

    static int middle(int n) {
        return leaf(n) + 1;
    }

    static int deep(int n) {
        if (n > 0) {
            return deep(n - 1) + middle(n);
        }
        int s = 0;
        for (int i = 0; i < 100; i++) {
            s += middle(i);
        }
        return s;
    }

    static void compute() {
        while (true) {
            sink += deep(8);
        }
    }

    static void copy() {
        byte[] from = new byte[1 << 16];
        byte[] to = new byte[1 << 16];
        while (true) {
            System.arraycopy(from, 1, to, 3, from.length - 8);
            sink += to[5];
        }
    }

    static void stat() {
        java.io.File f = new java.io.File("absent");
        while (true) {
            sink += f.exists() ? 1 : 0;
        }
    }

    static void virtual() {
        while (true) {
            sink += deep(8);
            LockSupport.parkNanos(1000);
        }
    }

    static void start(String name, Runnable r) {
        Thread t = new Thread(r, name);
        t.setDaemon(true);
        t.start();
    }

    public static void main(String[] args) throws Exception {
        start("compute", Kinds::compute);
        start("copy", Kinds::copy);
        start("stat", Kinds::stat);
        if (args.length > 0) {
            Runnable r = Kinds::virtual;
            Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, r);
        }
        System.out.println("ready");
        System.in.read();
    }
}
