package push

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// services are what the tests push: each is a part of one profile of several processes.
var services = []string{"shop", "search", "ünïcode svc"}

// pushServices pushes three windows of three services to a server, and returns what each is the sum
// of.
func pushServices(t *testing.T, c Config) (want map[string]map[string]int64, start time.Time) {
	t.Helper()
	c.Buffer.Dir = t.TempDir()
	var log []string
	p, err := New(c, Options{Labels: map[string]string{"host.name": "box"}, Log: func(line string) { log = append(log, line) }})
	if err != nil {
		t.Fatal(err)
	}
	start = time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	want = map[string]map[string]int64{}
	for i := range 3 {
		whole := java(start.Add(time.Duration(i) * 10 * time.Second))
		err := p.Add(Window{Profile: whole, Of: func(th *profile.Thread) (string, map[string]string, bool) {
			return services[th.TID%3], map[string]string{"container.id": "c" + fmt.Sprint(th.TID%3)}, true
		}})
		if err != nil {
			t.Fatal(err)
		}
		whole.Each(func(s *profile.Sample, _ uint64) {
			_, value := whole.Events[s.Event].TypeName()
			key := services[whole.Threads[s.Thread].TID%3] + " " + value
			if want[key] == nil {
				want[key] = map[string]int64{}
			}
			var names []string
			for n := whole.BeforeSkid(s.Node); n != profile.RootNode; n = whole.Nodes[n].Parent {
				names = append(names, whole.Funcs[whole.Frames[whole.Nodes[n].Frame].Func].Name)
			}
			want[key][strings.Join(names, " < ")] += int64(s.Weight)
		})
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s.Sent == 0 || s.Unsent != 0 || len(s.Dropped)+len(s.Retried)+len(s.Ambiguous) > 0 {
		t.Errorf("%+v; %q", s, log)
	}
	return want, start
}

// compare compares what a server has with what was sampled, to the nanosecond.
func compare(t *testing.T, got fixture.Arrived, want map[string]map[string]int64, service string, start time.Time) {
	t.Helper()
	if len(got.Refused) > 0 || got.Truncated > 0 {
		t.Errorf("the server refused %v", got.Refused)
	}
	sums := map[string]map[string]int64{}
	for _, s := range got.Series {
		for value, list := range s.Sums {
			if value == "samples" {
				continue
			}
			key := s.Labels[service] + " " + value
			if sums[key] == nil {
				sums[key] = map[string]int64{}
			}
			for stack, v := range list {
				sums[key][stack] += v
			}
		}
		if s.Time < start.UnixNano() || s.Time+s.Duration > start.Add(30*time.Second).UnixNano() {
			t.Errorf("a profile from %v, %v long", time.Unix(0, s.Time), time.Duration(s.Duration))
		}
		if s.Labels["host.name"]+s.Labels["host_name"] != "box" || !strings.HasPrefix(s.Labels["container.id"]+s.Labels["container_id"], "c") {
			t.Errorf("labels %v", s.Labels)
		}
	}
	if len(sums) != len(want) {
		t.Errorf("%d series of services and values, want %d", len(sums), len(want))
	}
	for key := range want {
		same(t, sums[key], want[key])
	}
}

// TestWirePyroscope pushes by Pyroscope's own API to a server with its rules.
func TestWirePyroscope(t *testing.T) {
	t.Parallel()
	server := fixture.StartServer(t, "pyroscope")
	want, start := pushServices(t, Config{Type: "pyroscope", URL: server.URL})
	got, err := server.Arrived()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got, want, "service_name", start)
	for _, s := range got.Series {
		if len(s.Labels) != 4 {
			t.Errorf("labels %v", s.Labels)
		}
	}
}

// TestWireParca pushes to Google's implementation of gRPC, with the checks of Parca's.
func TestWireParca(t *testing.T) {
	t.Parallel()
	server := fixture.StartServer(t, "parca")
	want, start := pushServices(t, Config{Type: "parca", URL: server.URL})
	got, err := server.Arrived()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got, want, "service_name", start)
}

// freePort returns the address of a port that was free.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startCollector starts OpenTelemetry's Collector, which exports what it gets to a server. It returns the
// addresses at which it takes gRPC and HTTP, and what it printed.
func startCollector(t *testing.T, to string) (grpc, http string, printed func() string) {
	t.Helper()
	program := fixture.Servers(t)
	grpc, http = freePort(t), freePort(t)
	dir := t.TempDir()
	config := fmt.Sprintf(`
receivers:
  otlp:
    protocols:
      grpc: {endpoint: %s}
      http: {endpoint: %s}
exporters:
  debug: {verbosity: detailed}
  otlp_http: {endpoint: %s}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles: {receivers: [otlp], exporters: [debug, otlp_http]}
`, grpc, http, to)
	file, output := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "output")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(output)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(program, "collector", "--config=file:"+file, "--feature-gates=service.profilesSupport")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed = func() string {
		b, _ := os.ReadFile(output)
		return string(b)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	deadline := time.After(time.Minute)
	for !strings.Contains(printed(), "Everything is ready") {
		select {
		case <-ended:
			t.Fatalf("the Collector ends:\n%s", printed())
		case <-deadline:
			t.Fatalf("the Collector does not start:\n%s", printed())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return grpc, http, printed
}

// TestWireCollector pushes to OpenTelemetry's Collector by both of its protocols. What it exports again,
// and what its pdata decodes of that, are the sums of what was sampled.
func TestWireCollector(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"otlp", "otlp-grpc"} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			server := fixture.StartServer(t, "sink")
			grpc, http, printed := startCollector(t, server.URL)
			url := "http://" + http
			if typ == "otlp-grpc" {
				url = "http://" + grpc
			}
			want, start := pushServices(t, Config{Type: typ, URL: url})
			var got fixture.Arrived
			for deadline := time.Now().Add(30 * time.Second); len(got.Series) < len(want) && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
				var err error
				if got, err = server.Arrived(); err != nil {
					t.Fatal(err)
				}
			}
			compare(t, got, want, "service.name", start)
			for _, s := range got.Series {
				if s.Labels["scope"] != "process_cpu" {
					t.Errorf("the scope is %q", s.Labels["scope"])
				}
			}
			if out := printed(); !strings.Contains(out, "service.name: Str(shop)") || !strings.Contains(out, "com.example.shop.Rules.evaluate") {
				t.Errorf("the Collector prints\n%s", out)
			}
		})
	}
}

// TestFileByPdata: a file that convert writes is what the Collector's decoder accepts, with one value and
// no times for each sample, and holds the sums of the recording.
func TestFileByPdata(t *testing.T) {
	t.Parallel()
	program := fixture.Servers(t)
	p := profiletest.Java()
	p.Meta.Start = time.Now()
	var b bytes.Buffer
	if err := format.Write(&b, "otlp", p, format.Options{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.otlp")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "decode", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got fixture.Arrived
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, s := range got.Series {
		for stack, v := range s.Sums["cpu"] {
			sums[stack] += v
		}
		if s.Labels["scope"] != "process_cpu" || s.Time != p.Meta.Start.UnixNano() {
			t.Errorf("scope %q, time %d", s.Labels["scope"], s.Time)
		}
	}
	if len(got.Refused) > 0 {
		t.Errorf("%v", got.Refused)
	}
	same(t, sums, ours(p, 0))
}
