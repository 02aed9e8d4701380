import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads that spend their time in known ways, for as many seconds as the argument says,
 * from when a byte comes to the standard input: whoever looks on has begun by then. At the
 * end each prints a line:
 *   NAME TID METHOD asleep ran begin end run wait     (ns)
 * asleep and ran are for how long its METHOD slept and ran; begin and end are when the
 * thread's account begins and ends, by CLOCK_MONOTONIC, run and wait how long it ran and
 * waited for a CPU between, as the kernel counts it.
 */
public class Shares {
    static final Object monitor = new Object();
    static final CountDownLatch ready = new CountDownLatch(6), go = new CountDownLatch(1), ended = new CountDownLatch(6);
    static final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    static volatile long until;
    static volatile double sink;

    interface Step { void run() throws Exception; }

    /** The kernel's account of the thread that makes it. */
    static class Account {
        final int tid;
        final RandomAccessFile file;
        final byte[] text = new byte[100];
        long wall, run, wait;

        Account() throws IOException {
            String self = Files.readSymbolicLink(Paths.get("/proc/thread-self")).toString();
            tid = Integer.parseInt(self.substring(self.lastIndexOf('/') + 1));
            file = new RandomAccessFile("/proc/self/task/" + tid + "/schedstat", "r");
        }

        /** The second number of the file. */
        long waited() throws IOException {
            file.seek(0);
            int n = file.read(text), i = 0;
            while (text[i++] != ' ') { }
            long v = 0;
            for (; i < n && text[i] != ' '; i++) v = 10 * v + text[i] - '0';
            return v;
        }

        /** All three at once: in less than a millisecond, without a sleep or a wait between. */
        void take() throws IOException {
            long before;
            do {
                before = System.nanoTime();
                wait = waited();
                run = threads.getCurrentThreadCpuTime();
                wall = System.nanoTime();
            } while (wall - before > 1_000_000);
        }
    }

    static void live(String name, String method, Step work, Step step) throws Exception {
        Account a = new Account();
        a.take();
        work.run();
        ready.countDown();
        go.await();
        a.take();
        long begin = a.wall, run = a.run, wait = a.wait, asleep = 0, ran = 0;
        while (a.wall < until) {
            work.run();
            a.take();
            long before = a.wall - a.run - a.wait, ranBefore = a.run;
            step.run();
            a.take();
            ran += a.run - ranBefore;
            asleep += a.wall - a.run - a.wait - before;
        }
        System.out.println(name + " " + a.tid + " Shares." + method + " " + asleep + " " + ran
                + " " + begin + " " + a.wall + " " + (a.run - run) + " " + (a.wait - wait));
        ended.countDown();
        while (true) LockSupport.park();
    }

    static void thread(String name, Step body) {
        Thread t = new Thread(() -> {
            try {
                body.run();
            } catch (Exception e) {
                e.printStackTrace();
                System.exit(1);
            }
        }, name);
        t.setDaemon(true);
        t.start();
    }

    static void work(long time) {
        long e = threads.getCurrentThreadCpuTime() + time;
        double x = 1;
        while (threads.getCurrentThreadCpuTime() < e) {
            for (int i = 0; i < 1000; i++) x = Math.sqrt(x + i);
            sink = x;
        }
    }

    static void takeANap() throws Exception { Thread.sleep(16); }

    static void waitForMonitor() {
        synchronized (monitor) {
            sink++;
        }
    }

    static void waitForData(InputStream in) throws Exception {
        if (in.read() < 0) throw new IllegalStateException();
    }

    static void parkAWhile() { LockSupport.parkNanos(9_000_000); }

    static void saveToDisk(FileChannel file) throws Exception {
        file.write(ByteBuffer.allocate(1 << 16), 0);
        file.force(true);
    }

    static void compute() { work(10_000_000); }

    public static void main(String[] args) throws Exception {
        ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket to = new Socket(server.getInetAddress(), server.getLocalPort());
        to.setTcpNoDelay(true);
        InputStream in = server.accept().getInputStream();
        OutputStream out = to.getOutputStream();
        thread("napper", () -> live("napper", "takeANap", () -> work(4_000_000), Shares::takeANap));
        thread("locker", () -> live("locker", "waitForMonitor", () -> work(2_000_000), Shares::waitForMonitor));
        thread("reader", () -> live("reader", "waitForData", () -> work(1_000_000), () -> waitForData(in)));
        thread("parker", () -> live("parker", "parkAWhile", () -> work(1_000_000), Shares::parkAWhile));
        FileChannel file = FileChannel.open(Files.createTempFile("shares", null), StandardOpenOption.WRITE, StandardOpenOption.DELETE_ON_CLOSE);
        thread("saver", () -> live("saver", "saveToDisk", () -> work(1_000_000), () -> saveToDisk(file)));
        thread("worker", () -> live("worker", "compute", () -> { }, Shares::compute));
        thread("holder", () -> {
            go.await();
            while (true) {
                synchronized (monitor) {
                    LockSupport.parkNanos(20_000_000);
                }
                LockSupport.parkNanos(10_000_000);
            }
        });
        ready.await();
        while (System.in.available() == 0) Thread.sleep(5);
        until = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        go.countDown();
        while (ended.getCount() > 0) {
            Thread.sleep(7);
            out.write(1);
        }
    }
}
