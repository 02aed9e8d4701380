import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/** Many threads work on sums that depend on every step; what is printed is always the same. */
public class Output {
    static long work(int seed, int depth) {
        if (depth == 0) return seed * 31L + 7;
        long sum = seed;
        for (int i = 0; i < 3; i++) sum = sum * 1000003 + work(seed ^ i, depth - 1);
        return sum;
    }

    public static void main(String[] args) throws Exception {
        final TreeMap<String, Long> results = new TreeMap<>();
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 12; n++) {
            final int id = n;
            Thread t = new Thread(() -> {
                StringBuilder text = new StringBuilder();
                long sum = 0;
                for (int round = 0; round < 60; round++) {
                    sum += work(id * 1000 + round, 8);
                    text.append(sum).append(',');
                    if (text.length() > 500) text.setLength(100);
                    try {
                        if (round % 20 == 0) throw new IllegalStateException("round " + round);
                    } catch (IllegalStateException e) {
                        sum += e.getMessage().hashCode();
                    }
                }
                synchronized (results) {
                    results.put("worker-" + id, sum ^ text.toString().hashCode());
                }
            }, "worker-" + n);
            t.start();
            threads.add(t);
        }
        for (Thread t : threads) t.join();
        results.forEach((k, v) -> System.out.println(k + " " + v));
        System.out.println("end");
    }
}
