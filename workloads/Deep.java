/**
 * A recursion of many frames (default 10,000) with work at its bottom. Run it
 * with -Xss64m. Arguments: seconds, frames.
 */
public class Deep {
    static volatile long sink;

    static long down(int n, long end) { return n == 0 ? spin(end) : down(n - 1, end) + 1; }

    static long spin(long end) {
        long x = end;
        while (System.nanoTime() < end) for (int i = 0; i < 1000; i++) x = x * 31 + i;
        return x;
    }

    public static void main(String[] args) {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 10;
        int frames = args.length > 1 ? Integer.parseInt(args[1]) : 10000;
        sink = down(frames, System.nanoTime() + (long) (seconds * 1e9));
    }
}
