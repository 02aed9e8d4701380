import java.io.File;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.file.Files;
import java.util.TreeMap;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

/**
 * Tomcat 10 under load from threads of its own, on 127.0.0.1: a servlet that
 * builds a page from a sorted map. Argument: seconds to run.
 */
public class Web {
    public static class Page extends HttpServlet {
        protected void doGet(HttpServletRequest q, HttpServletResponse r) throws java.io.IOException {
            TreeMap<String, String> m = new TreeMap<>();
            for (int i = 0; i < 200; i++) m.put("key" + (i * 7919 % 1009), "value " + i);
            r.setContentType("text/html");
            r.getWriter().println("<html>" + m + "</html>");
        }
    }

    public static void main(String[] args) throws Exception {
        double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 10;
        File base = Files.createTempDirectory("web").toFile();
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(base.getPath());
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        Context ctx = tomcat.addContext("", base.getPath());
        Tomcat.addServlet(ctx, "page", new Page());
        ctx.addServletMappingDecoded("/*", "page");
        tomcat.start();
        final int port = tomcat.getConnector().getLocalPort();
        final long end = System.nanoTime() + (long) (seconds * 1e9);
        Thread[] load = new Thread[4];
        for (int i = 0; i < load.length; i++) {
            load[i] = new Thread("load-" + i) {
                public void run() {
                    byte[] b = new byte[8192];
                    while (System.nanoTime() < end) {
                        try {
                            HttpURLConnection c = (HttpURLConnection) new URL("http://127.0.0.1:" + port + "/x").openConnection();
                            try (InputStream in = c.getInputStream()) {
                                while (in.read(b) > 0) { }
                            }
                        } catch (java.io.IOException e) {
                            throw new RuntimeException(e);
                        }
                    }
                }
            };
            load[i].start();
        }
        for (Thread t : load) t.join();
        tomcat.stop();
    }
}
