import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.lang.reflect.Method;

/**
 * Very many compiled methods: 10,000 methods in 100 classes that are written,
 * loaded and called until they are compiled, then called for ever. For
 * measuring how fast candid attaches to a large program.
 *
 * Run it with -XX:TieredStopAtLevel=1 -Xbatch to have all compiled quickly.
 * Arguments: methods, seconds to run. Prints "ready" when warmed up.
 */
public class Many extends ClassLoader {
    /** One class with n methods "static int mI(int)", each of some arithmetic, and one that calls them all. */
    static byte[] classFile(String name, int n) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(0xCAFEBABE);
        out.writeShort(0);
        out.writeShort(49); // class files of Java 5 need no stack maps
        out.writeShort(7 + 3 * n + 1 + 1);
        utf(out, name);                          // 1
        out.writeByte(7); out.writeShort(1);     // 2 this class
        utf(out, "java/lang/Object");            // 3
        out.writeByte(7); out.writeShort(3);     // 4
        utf(out, "(I)I");                        // 5
        utf(out, "Code");                        // 6
        utf(out, "all");                         // 7
        for (int i = 0; i < n; i++) {            // 8+3i name, 9+3i name and type, 10+3i method
            utf(out, "m" + i);
            out.writeByte(12); out.writeShort(8 + 3 * i); out.writeShort(5);
            out.writeByte(10); out.writeShort(2); out.writeShort(9 + 3 * i);
        }
        utf(out, "Many.java");
        out.writeShort(0x21); out.writeShort(2); out.writeShort(4);
        out.writeShort(0); out.writeShort(0);
        out.writeShort(n + 1);
        for (int i = 0; i < n; i++) {
            byte[] code = {0x1a, 0x10, (byte) (i % 100 + 1), 0x60, 0x1a, 0x68, 0x10, (byte) (i % 50 + 3), (byte) 0x82, (byte) 0xac};
            method(out, 8 + 3 * i, code, 2);
        }
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.write(0x1a); // iload_0; then invokestatic each; ireturn
        for (int i = 0; i < n; i++) {
            body.write(0xb8);
            body.write((10 + 3 * i) >> 8);
            body.write(10 + 3 * i);
        }
        body.write(0xac);
        method(out, 7, body.toByteArray(), 1);
        out.writeShort(0);
        return bytes.toByteArray();
    }

    static void utf(DataOutputStream out, String s) throws Exception { out.writeByte(1); out.writeUTF(s); }

    static void method(DataOutputStream out, int name, byte[] code, int stack) throws Exception {
        out.writeShort(9); out.writeShort(name); out.writeShort(5); out.writeShort(1);
        out.writeShort(6);
        out.writeInt(12 + code.length);
        out.writeShort(stack + 1); out.writeShort(1);
        out.writeInt(code.length);
        out.write(code);
        out.writeShort(0); out.writeShort(0);
    }

    static volatile int sink;

    public static void main(String[] args) throws Exception {
        int methods = args.length > 0 ? Integer.parseInt(args[0]) : 10000;
        double seconds = args.length > 1 ? Double.parseDouble(args[1]) : 10;
        int classes = (methods + 99) / 100;
        Method[] all = new Method[classes];
        Many loader = new Many();
        for (int c = 0; c < classes; c++) {
            byte[] b = classFile("Gen" + c, 100);
            all[c] = loader.defineClass("Gen" + c, b, 0, b.length).getMethod("all", int.class);
        }
        for (int round = 0; round < 3000; round++) for (Method m : all) sink += (Integer) m.invoke(null, round);
        System.out.println("ready");
        System.out.flush();
        long end = System.nanoTime() + (long) (seconds * 1e9);
        while (System.nanoTime() < end) for (Method m : all) sink += (Integer) m.invoke(null, 7);
    }
}
