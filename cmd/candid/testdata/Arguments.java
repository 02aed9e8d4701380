import java.lang.management.ManagementFactory;

/** Prints what it was given, by the JVM's own account. */
public class Arguments {
    public static void main(String[] args) {
        for (String a : ManagementFactory.getRuntimeMXBean().getInputArguments()) System.out.println(a);
        for (String a : args) System.out.println("[" + a + "]");
    }
}
