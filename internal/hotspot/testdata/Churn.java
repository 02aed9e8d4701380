import java.io.*;

/** Loads the same classes again and again, runs them until they are compiled, and drops them. */
public class Churn {
    public static class Even implements Runnable {
        static int n;
        static int twice(int i) { return i * 2 + n; }
        public void run() { for (int i = 0; i < 2000; i++) n += twice(i); }
    }

    public static class Odd implements Runnable {
        static int n;
        static int thrice(int i) { return i * 3 - n; }
        public void run() { for (int i = 0; i < 2000; i++) n += thrice(i); }
    }

    static class Loader extends ClassLoader {
        Loader() { super(null); }
        Class<?> define(byte[] b) { return defineClass(null, b, 0, b.length); }
    }

    static byte[] bytes(String name) throws IOException {
        try (InputStream in = Churn.class.getResourceAsStream(name)) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            byte[] b = new byte[4096];
            for (int n; (n = in.read(b)) > 0; ) out.write(b, 0, n);
            return out.toByteArray();
        }
    }

    public static void main(String[] args) throws Exception {
        byte[][] code = {bytes("Churn$Even.class"), bytes("Churn$Odd.class")};
        System.out.println("ready");
        for (int i = 0; ; i++) {
            for (int k = 0; k < 20; k++) {
                Runnable r = (Runnable) new Loader().define(code[(i + k) % 2]).getDeclaredConstructor().newInstance();
                for (int n = 0; n < 300; n++) r.run();
            }
            Thread.sleep(5);
            System.gc();
        }
    }
}
