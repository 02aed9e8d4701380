package engines

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/bpfcopy"
	"github.com/candid-profiler/candid/internal/fixture"
)

const deepJava = `
public class Deep {
  static volatile long sink;
  static long down(int n, long x) { return n == 0 ? burn(x) : down(n - 1, x + 1) + 1; }
  static long burn(long x) { for (int i = 0; i < 2000000; i++) x = x * 31 + i; return x; }
  public static void main(String[] a) {
    for (int t = 0; t < 2; t++) { Thread th = new Thread(() -> { for (;;) sink += down(100, sink); }); th.setDaemon(true); th.start(); }
    System.out.println("ready");
    for (;;) sink += down(50, sink);
  }
}`

func TestJava(t *testing.T) {
	source := filepath.Join(t.TempDir(), "Deep.java")
	if err := os.WriteFile(source, []byte(deepJava), 0o644); err != nil {
		t.Fatal(err)
	}
	classes := fixture.Classes(t, 17, source)
	for _, v := range []bpfcopy.Variant{bpfcopy.Exact, bpfcopy.Sized} {
		t.Run(v.String(), func(t *testing.T) {
			p := start(t, fixture.JDKTool(t, 17, "java"), "-cp", classes, "Deep")
			time.Sleep(500 * time.Millisecond)
			e, err := bpfcopy.Open(options(1000, p.PID()), v)
			if err != nil {
				t.Skip(err)
			}
			defer e.Close()
			r := newRecorder()
			holes, cut := 0, 0
			r.look = func(s *capture.Snapshot) {
				end := s.StackAddr + uint64(len(s.Stack))
				if s.Flags&capture.StackHoles != 0 {
					holes++
				}
				if s.Flags&capture.StackCut != 0 {
					cut++
				}
				if s.StackTop == 0 || end != s.StackTop || s.StackAddr > s.Regs.SP() {
					t.Errorf("pc %x sp %x copy %x+%d top %x flags %x", s.Regs.PC, s.Regs.SP(), s.StackAddr, len(s.Stack), s.StackTop, s.Flags)
				}
			}
			record(t, e, r, time.Second)
			runs, ns, err := e.ProgramCost()
			if err != nil || r.samples == 0 || runs == 0 {
				t.Fatalf("%d samples, %d runs, %v", r.samples, runs, err)
			}
			st := e.Stats()
			t.Logf("%d samples from %d threads, %d bytes each, lost %d, %d with holes; %d copies of %d ns each",
				r.samples, len(r.count), r.bytes/r.samples, st.Lost, holes, runs, ns/runs)
			if st.Lost > 0 || cut > 0 {
				t.Errorf("%d lost, %d cut", st.Lost, cut)
			}
		})
	}
}
