import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;

/** Deep stacks of every kind of frame, whose outer part stays and whose inner part changes all the time. */
public class Deep {
    static volatile long sink;

    interface Step {
        long go(int n) throws Exception;
    }

    static long burn(long x) {
        for (int i = 0; i < 3000; i++) x = x * 31 + i;
        return x;
    }

    static long plain(int n) throws Exception {
        return n <= 0 ? burn(n) : 1 + next(n - 1);
    }

    static synchronized long locked(int n) throws Exception {
        return 1 + next(n - 1);
    }

    public static long reflected(Integer n) throws Exception {
        return 1 + next(n - 1);
    }

    static long sorted(final int n) throws Exception {
        Integer[] a = {3, 1, 2, 5, 4};
        final long[] sum = {0};
        Arrays.sort(a, new Comparator<Integer>() {
            public int compare(Integer x, Integer y) {
                try {
                    sum[0] += burn(n) + (x == 3 && y == 1 ? next(n - 20) : 0);
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
                return x - y;
            }
        });
        return sum[0];
    }

    static long thrown(int n) throws Exception {
        try {
            if (n % 3 == 0) throw new IllegalStateException("n");
            return next(n - 1);
        } catch (IllegalStateException e) {
            return e.getStackTrace().length + next(n - 2);
        }
    }

    static long garbage(int n) throws Exception {
        List<String> l = new ArrayList<String>();
        for (int i = 0; i < 50; i++) l.add(String.format("%d-%s", i, n));
        Collections.sort(l);
        return l.get(0).length() + next(n - 1);
    }

    static Method method;

    static long next(int n) throws Exception {
        if (n <= 0) return burn(n);
        switch ((int) ((n * 2654435761L >>> 7) % 12)) {
            case 0: return locked(n);
            case 1: return (Long) method.invoke(null, n);
            case 2: return sorted(n);
            case 3: return thrown(n);
            case 4: return garbage(n);
            case 5: return lambda(n);
            default: return plain(n);
        }
    }

    static long lambda(final int n) throws Exception {
        Step s = m -> 1 + next(m - 1);
        return s.go(n);
    }

    static void work(int depth) {
        try {
            for (int i = 0; ; i++) sink += next(depth + i % 30);
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        method = Deep.class.getMethod("reflected", Integer.class);
        for (int i = 0; i < 2; i++) {
            final int depth = 40 + 100 * i;
            Runnable r = () -> work(depth);
            if (args.length > 0) {
                Class.forName("java.lang.Thread").getMethod("startVirtualThread", Runnable.class).invoke(null, r);
                continue;
            }
            Thread t = new Thread(r, "deep " + depth);
            t.setDaemon(true);
            t.start();
        }
        System.out.println("ready");
        System.out.flush();
        Thread.sleep(600000);
    }
}
