import java.io.File;
import java.util.Arrays;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordingFile;

/** Opens each file of a directory and prints how many samples it has, or why it cannot be read. */
public class Openable {
    public static void main(String[] args) {
        File[] files = new File(args[0]).listFiles();
        Arrays.sort(files);
        for (File f : files) {
            System.out.println(f.getName() + "\t" + read(f));
        }
    }

    static String read(File f) {
        int n = 0;
        try (RecordingFile r = new RecordingFile(f.toPath())) {
            while (r.hasMoreEvents()) {
                RecordedEvent e = r.readEvent();
                if (!e.getEventType().getName().equals("jdk.ExecutionSample")) {
                    continue;
                }
                n++;
                for (RecordedFrame frame : e.getStackTrace().getFrames()) {
                    frame.getMethod().getType().getName().length();
                    frame.getMethod().getName().length();
                }
                e.getThread("sampledThread").getOSName().length();
            }
        } catch (Throwable t) {
            return t.toString();
        }
        return Integer.toString(n);
    }
}
