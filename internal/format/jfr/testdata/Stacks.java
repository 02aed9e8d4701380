import java.nio.file.Path;
import java.util.TreeMap;
import jdk.jfr.consumer.*;

/** Prints how often each stack is in a recording, by type of event: what the JDK's own reader makes of it. */
public class Stacks {
    public static void main(String[] args) throws Exception {
        TreeMap<String, Integer> stacks = new TreeMap<>();
        try (RecordingFile file = new RecordingFile(Path.of(args[0]))) {
            while (file.hasMoreEvents()) {
                RecordedEvent e = file.readEvent();
                String thread = e.hasField("sampledThread") ? "sampledThread" : e.hasField("eventThread") ? "eventThread" : null;
                if (thread == null || !e.hasField("stackTrace")) continue;
                StringBuilder b = new StringBuilder(e.getEventType().getName()).append('\t');
                RecordedThread t = e.getValue(thread);
                b.append(t == null ? "" : t.getJavaName() != null ? t.getJavaName() : t.getOSName()).append('\t');
                RecordedStackTrace s = e.getStackTrace();
                if (s != null) {
                    for (RecordedFrame f : s.getFrames()) {
                        RecordedMethod m = f.getMethod();
                        b.append(m.getType().getName()).append('|').append(m.getName()).append('|').append(f.getType());
                        b.append('|').append(Math.max(f.getLineNumber(), 0)).append(';');
                    }
                }
                stacks.merge(b.toString(), 1, Integer::sum);
            }
        }
        stacks.forEach((stack, n) -> System.out.println(n + "\t" + stack));
    }
}
