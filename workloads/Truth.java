import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.zip.Deflater;

/**
 * A program whose split of time between methods is known: it runs phases in
 * random order and measures each one's own CPU time with the thread's CPU
 * clock. A profiler that sees truly gives every phase that share.
 *
 * Every phase is a class of its own that is called through an interface with
 * many implementations, so that no compiler inlines a phase into the loop that
 * calls it: its run() is on the stack in every sample of it.
 *
 * Arguments: seconds to run, then optionally "wait": warm up, print "ready",
 * and start when a line comes on standard input. The last line printed is the
 * truth: {"Phase": nanoseconds, ...}.
 */
public class Truth {
    interface Phase { long run(long seed) throws Exception; }

    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 30;
        Phase[] phases = {
            new CountedLoop(), new SmallInlined(), new Megamorphic(), new ArrayCopy(), new Sha256(), new IndexOf(),
            new Deflate(), new Exceptions(), new Syscalls(), new Allocation(), new Maps(), new Sorting(), new Recursion(),
        };
        long[] slice = new long[phases.length]; // how many rounds fill about 50 ms
        for (int i = 0; i < phases.length; i++) {
            slice[i] = 1;
            for (int warm = 0; warm < 3; warm++) {
                long t = THREADS.getCurrentThreadCpuTime(), n = 0;
                do {
                    sink += phases[i].run(n++);
                } while (THREADS.getCurrentThreadCpuTime() - t < 100_000_000L);
                slice[i] = Math.max(1, n / 2);
            }
        }
        if (args.length > 1 && args[1].equals("wait")) {
            System.out.println("ready");
            System.out.flush();
            System.in.read();
        }
        long[] truth = new long[phases.length];
        Random random = new Random(42);
        int[] order = new int[phases.length];
        for (int i = 0; i < order.length; i++) order[i] = i;
        long end = System.nanoTime() + (long) (seconds * 1e9);
        while (System.nanoTime() < end) {
            for (int i = order.length - 1; i > 0; i--) {
                int j = random.nextInt(i + 1), x = order[i];
                order[i] = order[j];
                order[j] = x;
            }
            for (int p : order) {
                Phase phase = phases[p];
                long n = slice[p] + random.nextInt((int) Math.max(1, slice[p] / 2));
                long t = THREADS.getCurrentThreadCpuTime();
                measured(phase, n);
                t = THREADS.getCurrentThreadCpuTime() - t;
                truth[p] += t;
                // Compilers make phases faster while they run: keep the slices long.
                slice[p] = Math.max(1, (long) Math.min(n * 4.0, n * 50e6 / Math.max(t, 1)));
            }
        }
        StringBuilder out = new StringBuilder("{");
        for (int i = 0; i < phases.length; i++) {
            if (i > 0) out.append(", ");
            out.append('"').append(phases[i].getClass().getSimpleName()).append("\": ").append(truth[i]);
        }
        System.out.println(out.append('}'));
    }

    /** Only what lies under this method was measured; warming up was not. */
    static void measured(Phase phase, long rounds) throws Exception {
        for (long i = 0; i < rounds; i++) sink += phase.run(i);
    }

    /** A counted loop has no safepoint poll: samplers that wait for one blame the call behind it. */
    static final class CountedLoop implements Phase {
        public long run(long seed) {
            int x = (int) seed | 1;
            for (int i = 0; i < 200_000; i++) {
                x ^= x << 13;
                x ^= x >>> 17;
                x ^= x << 5;
            }
            return afterTheLoop(x);
        }

        static long afterTheLoop(int x) { return Integer.bitCount(x) + (x % 7); }
    }

    static final class SmallInlined implements Phase {
        private long state;

        private long get() { return state; }
        private void set(long v) { state = v; }
        private static long mix(long v) { return (v ^ (v >>> 31)) * 0x9E3779B97F4A7C15L; }
        private void next(long i) { set(mix(get() + i)); }

        public long run(long seed) {
            set(seed);
            for (long i = 0; i < 50_000; i++) next(i);
            return get();
        }
    }

    static abstract class Shape { abstract long area(long x); }
    static final class S1 extends Shape { long area(long x) { return x * 3; } }
    static final class S2 extends Shape { long area(long x) { return x + 5; } }
    static final class S3 extends Shape { long area(long x) { return x ^ 7; } }
    static final class S4 extends Shape { long area(long x) { return x - 11; } }

    static final class Megamorphic implements Phase {
        private final Shape[] shapes = {new S1(), new S2(), new S3(), new S4(), new S2(), new S4(), new S1(), new S3()};

        public long run(long seed) {
            long x = seed;
            for (int i = 0; i < 40_000; i++) x = shapes[(int) (x ^ i) & 7].area(x);
            return x;
        }
    }

    static final class ArrayCopy implements Phase {
        private final byte[] from = new byte[256 << 10], to = new byte[256 << 10];

        public long run(long seed) {
            for (int i = 0; i < 10; i++) System.arraycopy(from, i, to, 7, from.length - 16);
            return to[(int) seed & 0xff];
        }
    }

    static final class Sha256 implements Phase {
        private final byte[] data = new byte[64 << 10];
        private final MessageDigest digest;

        Sha256() throws Exception { digest = MessageDigest.getInstance("SHA-256"); }

        public long run(long seed) {
            data[0] = (byte) seed;
            return digest.digest(data)[0];
        }
    }

    static final class IndexOf implements Phase {
        private final String text;

        IndexOf() {
            StringBuilder b = new StringBuilder();
            for (int i = 0; i < 4000; i++) b.append("haystack hays ");
            text = b.append("needle in it").toString();
        }

        public long run(long seed) { return text.indexOf("needle in it") + text.indexOf("hays needle"); }
    }

    static final class Deflate implements Phase {
        private final byte[] in = new byte[32 << 10], out = new byte[64 << 10];

        Deflate() {
            Random r = new Random(1);
            for (int i = 0; i < in.length; i++) in[i] = (byte) (r.nextInt(16) * r.nextInt(4));
        }

        public long run(long seed) {
            Deflater d = new Deflater(6);
            d.setInput(in);
            d.finish();
            int n = 0;
            while (!d.finished()) n += d.deflate(out);
            d.end();
            return n;
        }
    }

    static final class Exceptions implements Phase {
        private static int thrower(int depth) throws Exception {
            if (depth == 0) throw new Exception("deep");
            return thrower(depth - 1) + 1;
        }

        public long run(long seed) {
            long n = 0;
            for (int i = 0; i < 100; i++) {
                try {
                    n += thrower(20);
                } catch (Exception e) {
                    n += e.getMessage().length();
                }
            }
            return n;
        }
    }

    static final class Syscalls implements Phase {
        private final RandomAccessFile zero;
        private final byte[] buffer = new byte[4096];

        Syscalls() throws Exception { zero = new RandomAccessFile("/dev/zero", "r"); }

        public long run(long seed) throws Exception {
            long n = 0;
            for (int i = 0; i < 200; i++) n += zero.read(buffer);
            return n;
        }
    }

    static final class Allocation implements Phase {
        private Object[] keep = new Object[64];

        public long run(long seed) {
            for (int i = 0; i < 2000; i++) keep[i & 63] = new byte[200 + (i & 127)];
            return keep.length;
        }
    }

    static final class Maps implements Phase {
        public long run(long seed) {
            Map<Integer, Integer> m = new HashMap<Integer, Integer>();
            for (int i = 0; i < 2000; i++) m.merge((i * 31) & 511, 1, Integer::sum);
            return m.size();
        }
    }

    static final class Sorting implements Phase {
        private final long[] numbers = new long[5000];

        public long run(long seed) {
            long x = seed + 1;
            for (int i = 0; i < numbers.length; i++) numbers[i] = x = x * 6364136223846793005L + 1442695040888963407L;
            Arrays.sort(numbers);
            return numbers[0];
        }
    }

    static final class Recursion implements Phase {
        private static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

        public long run(long seed) { return fib(20); }
    }
}
