import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.nio.file.Files;
import java.util.concurrent.Executors;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

/** The requests of Served to Tomcat, each on a virtual thread. */
public class TomcatServed {
    public static class Page extends HttpServlet {
        protected void doGet(HttpServletRequest q, HttpServletResponse r) {
            try { r.getWriter().print(Served.request(q.getQueryString())); } catch (Exception e) { throw new RuntimeException(e); }
        }
    }

    public static void main(String[] args) throws Exception {
        File base = Files.createTempDirectory("tomcat").toFile();
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(base.getPath());
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        tomcat.getConnector().getProtocolHandler().setExecutor(Executors.newVirtualThreadPerTaskExecutor());
        Context context = tomcat.addContext("", base.getPath());
        Tomcat.addServlet(context, "page", new Page());
        context.addServletMappingDecoded("/*", "page");
        tomcat.start();
        Served.load(tomcat.getConnector().getLocalPort(), Integer.parseInt(args[0]));
        tomcat.stop();
        Files.walk(base.toPath()).sorted(java.util.Comparator.reverseOrder()).forEach(p -> p.toFile().delete());
    }
}
