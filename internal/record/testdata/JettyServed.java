import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.AbstractHandler;
import org.eclipse.jetty.util.thread.ThreadPool;

/** The requests of Served to Jetty, all of whose threads are virtual. */
public class JettyServed {
    static class Pool implements ThreadPool {
        final ExecutorService all = Executors.newVirtualThreadPerTaskExecutor();
        public void execute(Runnable r) { all.execute(r); }
        public void join() { }
        public int getThreads() { return 1; }
        public int getIdleThreads() { return 1; }
        public boolean isLowOnThreads() { return false; }
    }

    public static void main(String[] args) throws Exception {
        Server server = new Server(new Pool());
        ServerConnector connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.setHandler(new AbstractHandler() {
            public void handle(String target, Request base, HttpServletRequest q, HttpServletResponse r) {
                try { r.getWriter().print(Served.request(q.getQueryString())); } catch (Exception e) { throw new RuntimeException(e); }
                base.setHandled(true);
            }
        });
        server.start();
        Served.load(connector.getLocalPort(), Integer.parseInt(args[0]));
        server.stop();
        System.exit(0);
    }
}
