import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
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
            case "server": server(end); break;
            case "structured": structured(end); break;
            case "million": million(); break;
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

    /** A million threads, of which one in fifty climbs a few steps. */
    static void million() throws Exception {
        Semaphore room = new Semaphore(200);
        int[] depths = { 1, 3, 10 };
        try (var all = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < 1_000_000; i++) {
                int d = depths[i % depths.length];
                boolean waits = i % 50 == 0;
                room.acquire();
                all.submit(() -> {
                    try { if (waits) Ladder.h0(d); else Ladder.sink++; } finally { room.release(); }
                });
            }
        }
    }

    /**
     * Structured concurrency: a climb that waits for climbs of threads of its own, which do
     * likewise. Its class has not been the same in any two releases.
     */
    static void structured(long end) throws Exception {
        Class<?> scope = Class.forName("java.util.concurrent.StructuredTaskScope");
        Method fork = scope.getMethod("fork", Callable.class), join = scope.getMethod("join");
        int[] depths = { 1, 3, 10, 40, 120, 199 };
        while (System.nanoTime() < end) {
            try (AutoCloseable outer = open(scope)) {
                for (int d : depths) fork.invoke(outer, (Callable<Object>) () -> {
                    try (AutoCloseable inner = open(scope)) {
                        fork.invoke(inner, (Callable<Object>) () -> { Ladder.h0(depths[5]); return null; });
                        Ladder.h0(d);
                        join.invoke(inner);
                    }
                    return null;
                });
                join.invoke(outer);
            }
        }
    }
    static AutoCloseable open(Class<?> scope) throws Exception {
        try {
            return (AutoCloseable) scope.getMethod("open").invoke(null);
        } catch (NoSuchMethodException e) {
            return (AutoCloseable) scope.getConstructor().newInstance();
        }
    }

    static byte[] pinned;

    /** Waits below a frame of the VM's own, which calls a class's initializer: such a thread cannot leave its carrier. */
    static void below() {
        try {
            if (pinned == null) pinned = Ladders.class.getResourceAsStream("Pinned.class").readAllBytes();
            MethodHandles.lookup().defineHiddenClass(pinned, true);
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    /** A server with a virtual thread for each request, and clients that ask it all the time. */
    static void server(long end) throws Exception {
        int[] depths = { 1, 3, 10, 40, 120, 199 };
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 64);
        server.setExecutor(Executors.newVirtualThreadPerTaskExecutor());
        server.createContext("/", exchange -> {
            exchange.getRequestBody().readAllBytes();
            Ladder.h0(Integer.parseInt(exchange.getRequestURI().getPath().substring(1)));
            byte[] answer = new byte[100];
            exchange.sendResponseHeaders(200, answer.length);
            try (OutputStream to = exchange.getResponseBody()) { to.write(answer); }
        });
        server.start();
        List<Thread> clients = new ArrayList<>();
        for (int c = 0; c < 8; c++) {
            int client = c;
            clients.add(Thread.ofPlatform().start(() -> {
                for (int i = client; System.nanoTime() < end; i++) {
                    try (InputStream in = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/" + depths[i % depths.length]).toURL().openStream()) {
                        in.readAllBytes();
                    } catch (IOException e) {
                        throw new UncheckedIOException(e);
                    }
                }
            }));
        }
        for (Thread t : clients) t.join();
        server.stop(0);
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

class Pinned {
    static { Ladder.waits.nap(); }
}
