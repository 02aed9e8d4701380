import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;

import jdk.internal.vm.Continuation;
import jdk.internal.vm.ContinuationScope;

/** The ways in which threads climb the Ladder. */
class Ladders {
    static void start(String mode, int count, long end) throws Exception {
        switch (mode) {
            case "nested": nested(end); break;
            case "short": shortOnes(end); break;
            default: long_(count, end);
        }
    }

    /** Threads that live as long as the program. */
    static void long_(int count, long end) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int thread = i;
            threads.add(Thread.ofVirtual().name("climber-" + i).start(() -> Ladder.run(thread, end)));
        }
        for (Thread t : threads) t.join();
    }

    /** A thread for each climb. */
    static void shortOnes(long end) throws Exception {
        Semaphore room = new Semaphore(50);
        try (var all = Executors.newVirtualThreadPerTaskExecutor()) {
            int[] depths = { 1, 3, 10, 40, 120, 199 };
            for (int i = 0; System.nanoTime() < end; i++) {
                int d = depths[i % depths.length];
                room.acquire();
                all.submit(() -> {
                    try { Ladder.h0(d); } finally { room.release(); }
                });
            }
        }
    }

    static final ContinuationScope outer = new ContinuationScope("outer"), inner = new ContinuationScope("inner");

    /** Continuations in continuations, in which both are left and entered again. */
    static void nested(long end) throws Exception {
        int[] depths = { 1, 3, 10, 40, 120, 199 };
        int[] turn = new int[1];
        Ladder.waits = () -> Continuation.yield((turn[0]++ & 1) == 0 ? inner : outer);
        for (int i = 0; System.nanoTime() < end; i++) {
            int d = depths[i % depths.length];
            Continuation out = new Continuation(outer, () -> {
                Continuation in = new Continuation(inner, () -> Ladder.h0(d));
                while (!in.isDone()) in.run();
            });
            while (!out.isDone()) out.run();
        }
    }
}
