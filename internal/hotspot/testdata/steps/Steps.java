import java.math.BigInteger;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.zip.Adler32;
import java.util.zip.CRC32;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;

/** Code for a thread that is stepped one instruction at a time: whatever generated code can look like. */
public class Steps implements Runnable {
    interface Shape { int area(int x); }
    static class A implements Shape { public int area(int x) { return x + 1; } }
    static class B implements Shape { public int area(int x) { return x * 3; } }
    static class C implements Shape { public int area(int x) { return x ^ 5; } }
    static class D implements Shape { public int area(int x) { return x - 7; } }
    static abstract class Base { abstract long step(long v, int a, int b, int c, int d, int e, int f, int g); }
    static class S1 extends Base { long step(long v, int a, int b, int c, int d, int e, int f, int g) { return v + a + b + c + d + e + f + g; } }
    static class S2 extends Base { long step(long v, int a, int b, int c, int d, int e, int f, int g) { return v ^ a * b - c * d + e * f - g; } }
    static class S3 extends Base { long step(long v, int a, int b, int c, int d, int e, int f, int g) { return v - a - b - c - d - e - f - g; } }

    static final Shape[] SHAPES = {new A(), new B(), new C(), new D()};
    static final Base[] BASES = {new S1(), new S2(), new S3()};
    static volatile long sink;
    static volatile Object keep;
    static long plain;
    final String mode;
    final boolean trace;
    byte[] data = new byte[4096];
    byte[] more = new byte[4096];
    int[] ints = new int[512];
    double[] doubles = new double[100];
    MessageDigest sha, sha256, md5;
    Cipher aes;
    CRC32 crc = new CRC32();
    Adler32 adler = new Adler32();
    BigInteger big = new BigInteger("123456789012345678901234567890123456789012345678901234567890123456789");
    BigInteger mod = BigInteger.ONE.shiftLeft(521).subtract(BigInteger.ONE);
    StringBuilder text = new StringBuilder();

    Steps(String mode) {
        this.mode = mode;
        this.trace = false;
        for (int i = 0; i < data.length; i++) data[i] = (byte) (i * 31);
        try {
            sha = MessageDigest.getInstance("SHA-1");
            sha256 = MessageDigest.getInstance("SHA-256");
            md5 = MessageDigest.getInstance("MD5");
            aes = Cipher.getInstance("AES/CBC/PKCS5Padding");
            aes.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(new byte[16], "AES"));
        } catch (Throwable t) {
            aes = null;
        }
    }

    public void run() { long n = 0; while (true) { sink = f1(n++); } }
    long f1(long n) { return f2(n) + 1; }
    long f2(long n) { return f3(n, 1, 2, 3, 4, 5, 6, 7, 8) + 1; }
    long f3(long n, int a, int b, int c, int d, int e, int f, int g, int h) { return f4(n + a + h) + b; }
    long f4(long n) { return f5(n) + 1; }
    long f5(long n) { synchronized (this) { return f6(n) + 1; } }
    long f6(long n) { return f7((int) n, n) + 1; }
    long f7(int i, long n) { return f8(n, i) + 1; }
    long f8(long n, int i) {
        if (mode.equals("basic")) return basic(n);
        if (mode.equals("intrinsics")) return intrinsics(n);
        if (mode.equals("poll")) return poll(n);
        if (mode.equals("vectors")) return vectors(n);
        if (mode.equals("handles")) return handles(n);
        if (mode.equals("entries")) return entries(n);
        if (mode.equals("locks")) return locking(n);
        switch ((int) n & 3) {
            case 0: return basic(n);
            case 1: return intrinsics(n);
            case 2: return vectors(n);
            default: return handles(n);
        }
    }

    long basic(long n) {
        long v = calls(n) + fib(9) + locking(n) + allocation(n) + arrays(n) + exceptions(n) + strings(n) + nativeCalls(n) + types(n);
        return v;
    }
    // Methods that have an entry of their own in the interpreter, without a frame.
    final java.lang.ref.WeakReference<?>[] refs = new java.lang.ref.WeakReference<?>[200];
    final Object[] referents = new Object[200];
    long entries(long n) {
        long v = n;
        for (int i = 0; i < 40; i++) {
            int at = (int) (n * 40 + i) % refs.length;
            if (refs[at] == null || (n & 63) == 5) refs[at] = new java.lang.ref.WeakReference<Object>(referents[at] = new Object());
            if (refs[at].get() != null) v++;
            v += (long) (Math.sin(i) + Math.cos(v) + Math.pow(i, 1.5) + Math.sqrt(i) + Math.abs(-1.5 * i));
            crc.update(i);
        }
        crc.update(data, 0, 9);
        return v + crc.getValue() + Thread.currentThread().getId();
    }
    long poll(long n) {
        long v = n;
        for (int i = 0; i < 300; i++) v = spin(v, 40);
        return v;
    }
    long spin(long v, int k) {
        for (int i = 0; i < k; i++) { v = v * 31 + plain; if ((v & 7) == 3) v = leaf(v); }
        return v;
    }
    static long leaf(long v) { return v + 3; }
    long calls(long n) {
        long v = 0;
        for (int i = 0; i < 12; i++) {
            v += SHAPES[i & 3].area(i);
            v = BASES[i % 3].step(v, i, 2, 3, 4, 5, 6, 7);
        }
        return v;
    }
    int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    long locking(long n) {
        synchronized (data) { sink = n; }
        return helper(n);
    }
    synchronized long helper(long n) { return n + 1; }
    long allocation(long n) {
        Object[] a = new Object[16];
        for (int i = 0; i < a.length; i++) a[i] = new long[i + 1];
        keep = a;
        Map<Integer, String> m = new HashMap<Integer, String>();
        for (int i = 0; i < 4; i++) m.put(i + (int) n, "x");
        ArrayList<Object> l = new ArrayList<Object>(m.values());
        keep = new int[3][5];
        return l.size();
    }
    long arrays(long n) {
        System.arraycopy(data, 3, more, 5, 1000);
        System.arraycopy(data, 0, data, 8, 200);
        System.arraycopy(ints, 1, ints, 2, 100);
        Object[] o = new Object[40];
        System.arraycopy(o, 0, new Object[40], 0, 40);
        System.arraycopy(SHAPES, 0, new Object[4], 0, 4);
        keep = data.clone();
        Arrays.fill(ints, 7);
        return Arrays.hashCode(ints) + (Arrays.equals(data, more) ? 1 : 0);
    }
    long exceptions(long n) {
        long v = 0;
        for (int i = 0; i < 3; i++) {
            try { v += thrower(i, n); } catch (IllegalStateException e) { v++; } catch (RuntimeException e) { v += 2; }
        }
        return v;
    }
    long thrower(int i, long n) {
        try {
            if (i == 1) throw new IllegalStateException();
            if (i == 2) { Object o = null; return n > 100 ? o.hashCode() : 0; }
            return ints[i];
        } finally { sink = i; }
    }
    interface Left { }
    interface Right { }
    interface Third { }
    static class Both implements Left, Right, Third { }
    static final Object[] OBJECTS = {new Both(), "text", new Both(), new ArrayList<Object>()};
    /** Type tests that the cache of the last answer never knows: the class's list is searched each time. */
    long types(long n) {
        long v = 0;
        for (int i = 0; i < 8; i++) {
            Object o = OBJECTS[i & 3];
            if (o instanceof Left) v += ((Left) o).hashCode() & 1;
            if (o instanceof Right) v += thrownAway((Right) o);
            if (o instanceof Third) v++;
            if (o instanceof java.util.RandomAccess) v += 2;
        }
        return v;
    }
    static int thrownAway(Right r) {
        try { throw new IllegalArgumentException(); } catch (IllegalStateException e) { return 1; } catch (RuntimeException e) { return rethrown(r); }
    }
    static int rethrown(Object r) {
        try { return thrower(r); } catch (ClassCastException e) { return 3; }
    }
    static int thrower(Object r) {
        Object s = OBJECTS[1];
        return r == null ? 0 : ((Left) s).hashCode();
    }
    long strings(long n) {
        text.setLength(0);
        text.append("candid ").append(n).append(' ').append(n * 7).append("é中");
        String s = text.toString();
        int v = s.indexOf("dong") + s.indexOf('中') + s.hashCode() + s.compareTo("candle");
        byte[] b = s.getBytes();
        return v + b.length + new String(b).length() + s.substring(3).replace('a', 'b').length() + (s.equals("x" + n) ? 1 : 0);
    }
    long nativeCalls(long n) {
        return System.nanoTime() + System.identityHashCode(new Object()) + Thread.currentThread().getPriority()
            + (keep.getClass() == Object.class ? 1 : 0) + Runtime.getRuntime().totalMemory() + "abc".intern().length();
    }
    long intrinsics(long n) {
        long v = 0;
        crc.update(data, 0, 1000);
        adler.update(data, 0, 900);
        v += crc.getValue() + adler.getValue();
        if (aes != null) {
            try {
                sha.update(data, 0, 256);
                sha256.update(data, 0, 256);
                md5.update(data, 0, 256);
                v += sha.digest()[0] + sha256.digest()[0] + md5.digest()[0];
                v += aes.doFinal(data, 0, 512).length;
            } catch (Exception e) { v++; }
        }
        BigInteger x = big.multiply(big).multiply(big).add(BigInteger.valueOf(n));
        v += x.mod(mod).intValue() + x.multiply(x).bitLength();
        if (n % 8 == 1) v += big.modPow(BigInteger.valueOf(65537), mod).intValue();
        for (int i = 0; i < doubles.length; i++) doubles[i] = Math.sin(i) + Math.log(i + 1) + Math.pow(i, 1.5) + Math.exp(i % 5);
        for (int i = 0; i < 200; i++) ints[i] = (int) ((i * 7919 + n) % 200);
        Arrays.sort(ints, 0, 200);
        byte[] b64 = java.util.Base64.getEncoder().encode(Arrays.copyOf(data, 300));
        v += java.util.Base64.getDecoder().decode(b64).length;
        v += new String(data, 0, 200, java.nio.charset.StandardCharsets.ISO_8859_1).indexOf("\u0001\u0002");
        v += strings(n);
        return v + ints[0];
    }

    long[] longs = new long[300];
    float[] floats = new float[300];
    char[] chars = new char[300];
    MessageDigest sha512, sha3;
    Cipher ctr, gcm;
    java.util.zip.Checksum crc32c;
    {
        try {
            sha512 = MessageDigest.getInstance("SHA-512");
            ctr = Cipher.getInstance("AES/CTR/NoPadding");
            ctr.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(new byte[16], "AES"), new javax.crypto.spec.IvParameterSpec(new byte[16]));
            gcm = Cipher.getInstance("AES/GCM/NoPadding");
        } catch (Exception e) { ctr = null; }
        try { sha3 = MessageDigest.getInstance("SHA3-256"); } catch (Exception e) { sha3 = null; }
        try { crc32c = (java.util.zip.Checksum) Class.forName("java.util.zip.CRC32C").getConstructor().newInstance(); } catch (Exception e) { crc32c = null; }
    }
    /** Loops and library calls that are compiled to vector code. */
    long vectors(long n) {
        Arrays.fill(longs, n);
        Arrays.fill(floats, 1.5f);
        Arrays.fill(chars, (char) ('a' + (n & 15)));
        Arrays.fill(more, 10, 3000, (byte) n);
        for (int i = 0; i < longs.length; i++) longs[i] = longs[i] * 3 + i;
        float f = 0;
        for (int i = 0; i < floats.length; i++) { floats[i] = floats[i] * 2f + i; f += floats[i]; }
        int v = 0;
        for (int i = 0; i < ints.length; i++) v += ints[i] * 31;
        for (int i = 0; i < data.length; i++) more[i] = (byte) (data[i] ^ more[i]);
        double d = 0;
        for (int i = 0; i < doubles.length; i++) d += Math.sqrt(doubles[i]) + Math.abs(doubles[i]);
        String s = new String(chars);
        String w = s.substring(0, 120) + "\u4e2d" + s.substring(121);
        v += s.compareTo(w) + (s.equalsIgnoreCase(w) ? 1 : 0) + (s.regionMatches(3, w, 3, 100) ? 1 : 0) + w.indexOf("\u4e2d" + "ab") + s.lastIndexOf('z');
        v += w.getBytes(java.nio.charset.StandardCharsets.UTF_8).length + s.getBytes(java.nio.charset.StandardCharsets.ISO_8859_1).length;
        v += new StringBuilder(w).reverse().length() + w.toCharArray().length + s.toUpperCase().hashCode() + s.trim().length();
        v += (Arrays.equals(longs, longs.clone()) ? 1 : 0) + (Arrays.equals(chars, s.toCharArray()) ? 2 : 0) + Arrays.hashCode(chars) + (Arrays.equals(data, more) ? 4 : 0);
        v += Long.bitCount(n) + Long.numberOfLeadingZeros(n) + Integer.reverse(v) + Integer.highestOneBit(v);
        if (sha512 != null) { sha512.update(data, 0, 256); v += sha512.digest()[0]; }
        if (sha3 != null) { sha3.update(data, 0, 272); v += sha3.digest()[0]; }
        if (crc32c != null) { crc32c.update(data, 0, 1500); v += (int) crc32c.getValue(); }
        if (ctr != null) {
            try {
                v += ctr.update(data, 0, 500).length;
                byte[] iv = new byte[12];
                iv[0] = (byte) n; iv[1] = (byte) (n >> 8); iv[2] = (byte) (n >> 16);
                gcm.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(new byte[16], "AES"), new javax.crypto.spec.GCMParameterSpec(128, iv));
                v += gcm.doFinal(data, 0, 700).length;
            } catch (Exception e) { v++; }
        }
        return v + (long) d + (long) f;
    }
    interface Fold { int fold(int a, int b); default int twice(int a) { return fold(a, fold(a, 1)); } }
    static final java.lang.invoke.MethodHandle PLUS, LENGTH, GUARD;
    static int plus(int a, int b) { return a + b; }
    static int minus(int a, int b) { return a - b; }
    static boolean even(int a, int b) { return (a & 1) == 0; }
    static {
        try {
            java.lang.invoke.MethodHandles.Lookup l = java.lang.invoke.MethodHandles.lookup();
            java.lang.invoke.MethodType t = java.lang.invoke.MethodType.methodType(int.class, int.class, int.class);
            PLUS = l.findStatic(Steps.class, "plus", t);
            LENGTH = l.findVirtual(String.class, "length", java.lang.invoke.MethodType.methodType(int.class));
            GUARD = java.lang.invoke.MethodHandles.guardWithTest(l.findStatic(Steps.class, "even", t.changeReturnType(boolean.class)), PLUS, l.findStatic(Steps.class, "minus", t));
        } catch (Exception e) { throw new Error(e); }
    }
    static java.lang.invoke.MethodHandle moving = null;
    /** Method handles, lambdas, default methods, deep recursion, nested monitors. */
    long handles(long n) {
        long v = 0;
        int k = (int) n;
        Fold[] folds = {(a, b) -> a + b, (a, b) -> a * b + k, Steps::minus, Math::max, Integer::compare};
        for (int i = 0; i < 10; i++) v += folds[i % folds.length].twice(i);
        try {
            moving = (n & 8) == 0 ? PLUS : GUARD;
            for (int i = 0; i < 6; i++) v += (int) PLUS.invokeExact(i, k) + (int) GUARD.invokeExact(i, k) + (int) moving.invokeExact(k, i) + (int) LENGTH.invokeExact("text");
            v += (int) PLUS.invokeWithArguments(1, 2);
        } catch (Throwable t) { v++; }
        v += java.util.stream.IntStream.range(0, 20).map(i -> i * k).filter(i -> (i & 1) == 0).sum();
        v += Arrays.asList("b", "a", "c").stream().sorted(java.util.Comparator.reverseOrder()).map(String::length).reduce(0, Integer::sum);
        v += deep(120, n) + nested(n, this, data) + (n % 16 == 3 ? down(40) : 0) + switches("word" + (n & 3), n);
        keep = Steps.class.getDeclaredClasses().length;
        try { v += (Integer) Steps.class.getDeclaredMethod("plus", int.class, int.class).invoke(null, 1, k); } catch (Exception e) { v++; }
        Runnable r = () -> sink = n;
        r.run();
        return v;
    }
    static long deep(int d, long n) { return d == 0 ? n : deep(d - 1, n * 3) + d; }
    static int down(int d) {
        if (d == 0) throw new UnsupportedOperationException();
        try { return down(d - 1) + 1; } catch (UnsupportedOperationException e) { if (d > 35) return d; throw e; } finally { plain++; }
    }
    static long nested(long n, Object a, Object b) {
        synchronized (a) { synchronized (b) { synchronized (a) { if ((n & 7) == 2) { try { throw new RuntimeException(); } catch (RuntimeException e) { n++; } } return n + plain; } } }
    }
    static int switches(String s, long n) {
        int v;
        switch (s) { case "word0": v = 1; break; case "word1": v = 2; break; case "word2": v = 3; break; default: v = 4; }
        switch ((int) n % 9) { case 0: v += 5; break; case 1: v += 6; break; case 2: v *= 7; break; case 3: v -= 8; break; case 4: v ^= 9; break; default: v++; }
        return v;
    }

    public static void main(String[] args) throws Exception {
        Steps s = new Steps(args[0]);
        Thread t = new Thread(s, "stepped");
        t.setDaemon(true);
        t.start();
        if (args[0].equals("entries")) {
            Thread p = new Thread(new Runnable() {
                public void run() {
                    while (true) System.gc();
                }
            }, "collecting");
            p.setDaemon(true);
            p.start();
        }
        if (args[0].equals("poll")) {
            Thread p = new Thread(new Runnable() {
                public void run() {
                    while (true) {
                        Thread.getAllStackTraces();
                        try { Thread.sleep(3); } catch (InterruptedException e) { return; }
                    }
                }
            }, "poller");
            p.setDaemon(true);
            p.start();
        }
        System.out.println("ready");
        System.out.flush();
        while (System.in.read() >= 0) { }
    }
}
