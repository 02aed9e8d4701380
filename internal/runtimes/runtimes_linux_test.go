package runtimes

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/target"
)

// start runs a program until the test ends and waits for its first line.
func start(t testing.TB, name string, args ...string) (*target.Process, string) {
	t.Helper()
	started := fixture.Start(t, exec.Command(name, args...))
	said := started.Line()
	p, err := target.Open(started.PID())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p, said
}

// A program that prints the version of Java that it runs on and waits.
const sleeper = `public class Sleeper {
  public static void main(String[] a) throws Exception {
    System.out.println(System.getProperty("java.version"));
    Thread.sleep(100000);
  }
}`

func TestHotspotVersions(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "Sleeper.java")
	if err := os.WriteFile(src, []byte(sleeper), 0o644); err != nil {
		t.Fatal(err)
	}
	classes := fixture.Classes(t, 8, src) // all can run it
	for _, v := range fixture.JDKs(t, 8) {
		t.Run(strconv.Itoa(v), func(t *testing.T) {
			p, said := start(t, fixture.JDKTool(t, v, "java"), "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Xmx64m", "-cp", classes, "Sleeper")
			r, err := Of(p)
			if err != nil || r.Kind != Hotspot || r.Version != said || said == "" || filepath.Base(r.Path) != "libjvm.so" {
				t.Errorf("%+v, %v; java says %q", r, err, said)
			}
			// For a JDK without a release file, the text compiled into the VM must agree.
			f, err := os.Open(r.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got := compiledVersion(f); got != said {
				t.Errorf("compiled into it: %q, java says %q", got, said)
			}
		})
	}
}

// The VM is recognised by what it exports, not by its name.
func TestHotspotByAnotherName(t *testing.T) {
	home := fixture.JDK(t, 17)
	b, err := os.ReadFile(home + "/lib/server/libjvm.so")
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.so")
	if err := os.WriteFile(other, b, 0o755); err != nil {
		t.Fatal(err)
	}
	release, err := os.ReadFile(home + "/release")
	if err != nil {
		t.Fatal(err)
	}
	p, said := start(t, fixture.Tool(t, "/usr/bin/python3", "python3"), "-c", "import ctypes, time; ctypes.CDLL('"+other+"'); print('up', flush=True); time.sleep(100)")
	if said != "up" {
		t.Fatalf("python3, which loads the library, says %q", said)
	}
	r, err := Of(p)
	if want := (Detected{Hotspot, parseRelease(release), other}); err != nil || r != want {
		t.Errorf("got %+v, %v, want %+v", r, err, want)
	}
}

func TestNameAloneIsNotEnough(t *testing.T) {
	b, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	fake := filepath.Join(t.TempDir(), "libjvm.so")
	if err := os.WriteFile(fake, b, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(fake, "100")
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if r, err := Of(p); err != nil || r != (Detected{Kind: Native, Path: fake}) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestGo(t *testing.T) {
	p, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want, _, _ := strings.Cut(strings.TrimPrefix(runtime.Version(), "go"), " ")
	if r, err := Of(p); err != nil || r.Kind != Go || r.Version != want || r.Path != p.Exe() {
		t.Errorf("%+v, %v, want version %s", r, err, want)
	}
}

func TestPython(t *testing.T) {
	interpreters, _ := filepath.Glob("/usr/bin/python3.*[0-9]")
	if home, err := os.UserHomeDir(); err == nil {
		more, _ := filepath.Glob(home + "/.pyenv/versions/*/bin/python")
		interpreters = append(interpreters, more...)
	}
	if len(interpreters) == 0 {
		fixture.Missing(t, "a python")
	}
	for _, name := range interpreters {
		p, said := start(t, name, "-c", "import sys,time; sys.stdout.write('.'.join(str(n) for n in sys.version_info[:3])+'\\n'); sys.stdout.flush(); time.sleep(100)")
		r, err := Of(p)
		if err != nil || r.Kind != Python || r.Version == "" || !strings.HasPrefix(said, r.Version) {
			t.Errorf("%s: %+v, %v, it says %s", name, r, err, said)
		}
	}
}

func TestNode(t *testing.T) {
	name := fixture.Tool(t, "node")
	p, said := start(t, name, "-e", "console.log(process.versions.node); setTimeout(() => {}, 100000)")
	r, err := Of(p)
	if err != nil || r.Kind != Node || r.Version != "" && r.Version != said {
		t.Errorf("%+v, %v, it says %s", r, err, said)
	}
	t.Logf("%v", r)
}

func TestListHasSelf(t *testing.T) {
	begin := time.Now()
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d processes in %v", len(all), time.Since(begin))
	for _, p := range all {
		if p.PID == os.Getpid() {
			if p.Runtime.Kind != Go || p.Reason != target.ReasonNone {
				t.Errorf("%+v", p)
			}
			return
		}
	}
	t.Error("this process is not listed")
}

func TestVersionTexts(t *testing.T) {
	for in, want := range map[string]string{
		"IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\nJAVA_VERSION_DATE=\"2025\"\n": "17.0.15",
		"JAVA_VERSION=\"1.8.0_412\"\r\n":                                            "1.8.0_412", "JAVA_VERSION=21": "21", "JAVA_VERSION=\"25-ea\"": "25",
		"": "", "JAVA_VERSION=": "", "JAVA_VERSION=\"x\"": "", "XJAVA_VERSION=\"1\"": "",
	} {
		if got := parseRelease([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.11/libcoreclr.so": "8.0.11",
		"/usr/lib/x86_64-linux-gnu/libpython3.9.so.1.0":                       "3.9",
		"/usr/bin/python3.6m": "3.6", "/usr/bin/python": "", "": "",
	} {
		if got := versionInPath(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for k := Kind(0); k < numKinds; k++ {
		if k.String() == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
}

func FuzzLearn(f *testing.F) {
	// The vdso is a small, whole library with hash tables.
	if p, err := target.Open(os.Getpid()); err == nil {
		if image, _, err := p.VDSO(); err == nil {
			f.Add(image)
		}
		p.Close()
	}
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var facts fileFacts
		facts.learn(bytes.NewReader(b), "/x")
		compiledVersion(bytes.NewReader(b))
		if len(facts.version) > maxVersion {
			t.Fatalf("version of %d bytes", len(facts.version))
		}
	})
}

func BenchmarkList(b *testing.B) {
	n := 0
	for b.Loop() {
		all, err := List()
		if err != nil {
			b.Fatal(err)
		}
		n = len(all)
	}
	b.ReportMetric(float64(n), "processes")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/process")
}
