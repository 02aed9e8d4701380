import java.util.Arrays;

/**
 * A thread that reads the clock over and over: whatever stops it shows as a gap between two
 * readings.
 *
 * Arguments: milliseconds of a window, how many gaps of a window to look at. Every window
 * prints a line "mean median p90" of its longest gaps, in nanoseconds. The first ones
 * warm up and are printed as "warm".
 */
public class Gaps {
    static int window(long nanos, long[] gaps) {
        int n = 0;
        long last = System.nanoTime(), end = last + nanos;
        while (last < end) {
            long now = System.nanoTime();
            if (now - last > 1000 && n < gaps.length) gaps[n++] = now - last;
            last = now;
        }
        return n;
    }

    public static void main(String[] args) {
        long nanos = Long.parseLong(args[0]) * 1_000_000;
        int most = Integer.parseInt(args[1]);
        long[] gaps = new long[1 << 20];
        for (int line = 0; ; line++) {
            int n = window(nanos, gaps);
            Arrays.sort(gaps, 0, n);
            int k = Math.min(n, most);
            long sum = 0;
            for (int i = n - k; i < n; i++) sum += gaps[i];
            String said = k == 0 ? "0 0 0" : sum / k + " " + gaps[n - k + k / 2] + " " + gaps[n - k + k * 9 / 10];
            System.out.println((line < 4 ? "warm " : "") + said);
        }
    }
}
