package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

func textOf(t *testing.T, p *profile.Profile, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, p, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMethodsText(t *testing.T) {
	same(t, textOf(t, profiletest.Java(), Options{Top: 4, Width: 90}), `
java -Xmx2g -jar shop.jar --port 8080
  hotspot 17.0.15 · pid 4711 · build-7 · 2026-05-04 12:30:00 UTC
  perf cpu-clock on 2 CPUs, live stack copied by BPF
  10,000 samples of cpu · 10.0s in all · one each 1.00ms · recorded for 10.0s · 12 lost
  3 periods throttled
  stacks: 88.0% complete, 7.0% stitched, 4.0% heuristic, 0.6% truncated, 0.4% broken (mostly: bad pc)
  cost: copying 31.0ms (0.31% of the CPU time that was recorded)
        candid 142ms of CPU (14.2µs a sample) · 48.0 MiB of memory
        first sample walked after 60.0ms
  note: 1000 Hz keeps step with the kernel's tick: 997 Hz is used

  SELF            TOTAL           KIND     METHOD
 24.0%    2.40s   24.0%    2.40s  inlined  java.util.HashMap.hash
 15.0%    1.50s   39.0%    3.90s  inlined  java.util.HashMap.get
 15.0%    1.50s   15.0%    1.50s  native   …hreadState::trim_queue_to_threshold  libjvm.so
 12.0%    1.20s   15.0%    1.50s  C2       com.example.shop.Rules.evaluate
 34.0%    3.40s  and 28 methods more`)
}

// Sorted by total, callers come before callees, in text and JSON.
func TestMethodsByTotal(t *testing.T) {
	o := Options{Top: 2, ByTotal: true}
	p := profiletest.Java()
	var b bytes.Buffer
	if err := JSON(&b, p, o); err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal(b.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	for i := range r.Methods[1:] {
		if r.Methods[i].Total.Weight < r.Methods[i+1].Total.Weight {
			t.Fatalf("%s with %d is before %s with %d", r.Methods[i].Name, r.Methods[i].Total.Weight, r.Methods[i+1].Name, r.Methods[i+1].Total.Weight)
		}
	}
	lines := strings.Split(body(textOf(t, p, o)), "\n")
	for i := range 2 {
		if !strings.Contains(lines[i+1], r.Methods[i].Name) {
			t.Errorf("row %d is %q, and in JSON %s", i, lines[i+1], r.Methods[i].Name)
		}
	}
	if o.ByTotal = false; strings.Contains(body(textOf(t, p, o)), lines[1]) {
		t.Error("the order is the same by self")
	}
}

func body(text string) string {
	_, b, _ := strings.Cut(text, "\n\n")
	return b
}

func TestFilteredTextShowsBothShares(t *testing.T) {
	o := Options{Filter: profile.Filter{Thread: regexp.MustCompile("^GC|^C2")}, Top: 2}
	text := textOf(t, profiletest.Java(), o)
	if !strings.Contains(text, "of 10,000 samples, 1,800 (18.0%) pass") {
		t.Error(text)
	}
	same(t, body(text), `
  SELF  of all            TOTAL  of all           KIND    METHOD
 83.3%   15.0%    1.50s   83.3%   15.0%    1.50s  native  G1ParScanThreadState::trim_queue_to_threshold  libjvm.so
 16.7%    3.0%    300ms   16.7%    3.0%    300ms  native  PhaseIdealLoop::build_and_optimize  libjvm.so
  0.0%    0.0%        0  and 4 methods more`)
}

func TestTreeTextBranchesAndSumsUp(t *testing.T) {
	o := Options{View: ViewTree, MinPercent: 5, Filter: profile.Filter{Ignore: regexp.MustCompile("libzip|Tree|Json"), Hide: profile.Kinds(walk.KindNative)}}
	same(t, body(textOf(t, profiletest.Java(), o)), `
 TOTAL  of all             SELF  CALL TREE
 79.2%   70.0%    7.00s          call_stub
 79.2%   70.0%    7.00s          java.lang.Thread.run
 79.2%   70.0%    7.00s          com.example.shop.Worker.loop
 79.2%   70.0%    7.00s          com.example.shop.Handler.handle
 56.6%   50.0%    5.00s          ├ com.example.shop.Index.search
 56.6%   50.0%    5.00s          │ com.example.shop.Index.score
 44.1%   39.0%    3.90s   17.0%  │ ├ java.util.HashMap.get
 27.1%   24.0%    2.40s   27.1%  │ │ └ java.util.HashMap.hash
 12.4%   11.0%    1.10s   12.4%  │ └ java.lang.Math.fma
 17.0%   15.0%    1.50s          ├ com.example.shop.Rules.evaluate
 17.0%   15.0%    1.50s          │ com.example.shop.Rules.evaluate
 13.6%   12.0%    1.20s          │ ├ com.example.shop.Rules.evaluate
 13.6%   12.0%    1.20s   13.6%  │ │ com.example.shop.Rules.evaluate
  3.4%    3.0%    300ms          │ └ (1 more below 5.0% each)
  5.7%    5.0%    500ms          └ com.example.shop.Image$$Lambda.apply
  5.7%    5.0%    500ms    5.7%    jbyte_disjoint_arraycopy
  0.3%    0.3%   30.0ms          (1 more below 5.0% each)

Parts below 5.0% are summed up in lines in brackets.`)
}

// A tree has no more rows than are asked for, the largest ones.
func TestTreeTextKeepsTheLargest(t *testing.T) {
	o := Options{View: ViewTree, Top: 3, MinPercent: 5, Filter: profile.Filter{Ignore: regexp.MustCompile("libzip|Tree|Json|Image|Rules|fma")}}
	same(t, body(textOf(t, profiletest.Java(), o)), `
 TOTAL  of all             SELF  CALL TREE
 99.3%   57.0%    5.70s          (4 frames by which threads start)
 67.9%   39.0%    3.90s          java.lang.Thread.run
 67.9%   39.0%    3.90s          com.example.shop.Worker.loop

and 9 rows more: -n says how many are shown, the largest of them.

--unfold shows each of the frames by which threads start.`)
	for _, top := range []int{1, 2, 5, 8, 1000} {
		o.Top = top
		text := body(textOf(t, profiletest.Java(), o))
		table, _, _ := strings.Cut(text, "\n\n")
		if rows := strings.Count(strings.TrimSpace(table), "\n"); rows > top || top == 1000 && strings.Contains(text, "rows more") {
			t.Errorf("-n %d: %d rows\n%s", top, rows, text)
		}
	}
	o = Options{View: ViewCallers, Top: 2, Callers: regexp.MustCompile("HashMap.get|trim_queue")}
	same(t, body(textOf(t, profiletest.Java(), o)), `
 TOTAL           CALLERS OF HashMap.get|trim_queue
 39.0%    3.90s  java.util.HashMap.get
 39.0%    3.90s  ← com.example.shop.Index.score

and 9 rows more: -n says how many are shown, the largest of them.`)
}

func TestCallersText(t *testing.T) {
	o := Options{View: ViewCallers, Callers: regexp.MustCompile("HashMap"), Filter: profile.Filter{Hide: profile.Kinds(walk.KindNative, walk.KindStub)}}
	text := body(textOf(t, profiletest.Java(), o))
	if !strings.HasPrefix(text, " TOTAL           CALLERS OF HashMap\n 24.0%    2.40s  java.util.HashMap.hash\n 24.0%    2.40s  ← java.util.HashMap.get\n") {
		t.Error(text)
	}
	o.Callers = regexp.MustCompile("nothing is called so")
	if text := textOf(t, profiletest.Java(), o); !strings.Contains(text, "No method that was seen matches nothing is called so.") {
		t.Error(text)
	}
	o.Callers = nil
	if err := Text(&bytes.Buffer{}, profiletest.Java(), o); !errors.Is(err, ErrNoCallers) {
		t.Error(err)
	}
}

func TestThreadsText(t *testing.T) {
	p := profiletest.Java()
	if text := textOf(t, p, Options{View: ViewThreads}); !strings.Contains(text, "Every thread's share agrees") {
		t.Error(text)
	}
	p.Threads[0].KernelCPU /= 2
	text := body(textOf(t, p, Options{View: ViewThreads, Top: 2}))
	same(t, text, `
 SHARE            KERNEL  SAMPLES  COMPLETE      TID  KIND      THREAD
 47.0%    4.70s    30.7%    4,700    100.0%     4712  java      http-worker-1  ! 3,072 samples expected
 35.0%    3.50s    45.8%    3,500     85.7%     4713  java      http-worker-2  ! 4,575 samples expected
 18.0%    1.80s  in 2 threads more

! 4 threads got more or fewer samples than the CPU time that the kernel counted explains by chance (three standard deviations).`)
}

func TestWidthIsKept(t *testing.T) {
	p := profiletest.Java()
	p.Meta.Notes, p.Meta.Describe = nil, ""
	for _, v := range []View{ViewMethods, ViewTree} {
		for _, width := range []int{76, 120} {
			for l := range strings.Lines(body(textOf(t, p, Options{View: v, Width: width}))) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(l, "\n")); n > width {
					t.Errorf("%s, width %d: line of %d columns: %s", v, width, n, l)
				}
			}
		}
	}
}

// A command line that fills pages is cut to the length of record's if there is no width to cut it
// to; JSON has all of it.
func TestLongCommand(t *testing.T) {
	for _, n := range []int{600, 4096, 1 << 20} {
		p := profiletest.Java()
		p.Meta.Command = "java -cp " + strings.Repeat("é", n/2) + " Main"
		title, _, _ := strings.Cut(textOf(t, p, Options{}), "\n")
		if n == 600 && title != p.Meta.Command || n > 600 && (len(title) > 520 || !strings.HasSuffix(title, "é…") || !utf8.ValidString(title)) {
			t.Errorf("%d bytes: %d in the title, %q", len(p.Meta.Command), len(title), title)
		}
		var b bytes.Buffer
		if err := JSON(&b, p, Options{}); err != nil || !strings.Contains(b.String(), p.Meta.Command) {
			t.Errorf("%d bytes: not whole in JSON, %v", len(p.Meta.Command), err)
		}
	}
}

func TestNoEscapesFromTheTarget(t *testing.T) {
	p := profiletest.New([]profiletest.Stack{{Thread: "\x1b[31mred", Count: 1, Frames: []profiletest.Frame{{Name: "a\x1b]0;title\x07b\nc"}}}})
	for _, v := range []View{ViewMethods, ViewTree, ViewThreads} {
		if text := textOf(t, p, Options{View: v}); strings.ContainsAny(text, "\x1b\x07") {
			t.Errorf("%s: %q", v, text)
		}
	}
}

func TestTimesAreNeededForARange(t *testing.T) {
	p := profiletest.Java()
	for i := range p.Samples {
		p.Samples[i].Time = 0
	}
	if err := Text(&bytes.Buffer{}, p, Options{Filter: profile.Filter{To: time.Second}}); !errors.Is(err, ErrNoTimes) {
		t.Error(err)
	}
}

func TestEmptyProfile(t *testing.T) {
	p := profile.NewBuilder().Profile()
	for _, v := range []View{ViewMethods, ViewTree, ViewThreads} {
		if text := textOf(t, p, Options{View: v}); !strings.Contains(text, "No samples.") {
			t.Errorf("%s: %q", v, text)
		}
	}
	if err := Summary(&bytes.Buffer{}, p, Costs{}, Options{}); err != nil {
		t.Error(err)
	}
	if err := JSON(&bytes.Buffer{}, p, Options{View: ViewTree}); err != nil {
		t.Error(err)
	}
}

func TestJSON(t *testing.T) {
	p := profiletest.Java()
	var b bytes.Buffer
	if err := JSON(&b, p, Options{View: ViewTree, Callers: regexp.MustCompile("HashMap.hash")}); err != nil {
		t.Fatal(err)
	}
	var r Report
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if r.Schema != "candid.report/1" || r.All.Samples != 10000 || r.Event.Unit != "nanoseconds" || r.Lost != 12 || r.Quality.Reasons["bad pc"] != 30 {
		t.Errorf("%+v", r)
	}
	if m := r.Methods[0]; m.Name != "java.util.HashMap.hash" || m.Self.Weight != 2400*profiletest.Period || m.Kinds["inlined"] != 2400 {
		t.Errorf("%+v", m)
	}
	var self uint64
	for i, n := range r.Calls {
		self += n.Self.Samples
		if n.Parent >= i || i > 0 && (n.Method < 0 || n.Method >= len(r.Methods)) {
			t.Errorf("node %d: %+v", i, n)
		}
	}
	if self != 10000 || r.Callers[0].Total.Samples != 2400 || r.Methods[r.Callers[2].Method].Name != "java.util.HashMap.get" {
		t.Errorf("tree has %d samples, callers %+v", self, r.Callers)
	}
	if len(r.Threads) != 4 || *r.Threads[0].KernelShare != 0.47 {
		t.Errorf("%+v", r.Threads)
	}
}

// For several events the summary says how many samples each has: the first may have none.
func TestSummaryOfEvents(t *testing.T) {
	p := profiletest.Server(500, 2000, 10)
	var b bytes.Buffer
	if err := Summary(&b, p, Costs{OwnCPU: time.Second}, Options{}); err != nil {
		t.Fatal(err)
	}
	n := map[string]uint64{}
	for _, s := range p.Samples {
		n[p.Events[s.Event].Name]++
	}
	for i, e := range p.Events {
		want := e.Name + " " + grouped(n[e.Name])
		if i == 0 {
			want += " (shown)"
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, b.String())
		}
	}
	if want := duration(time.Second/time.Duration(len(p.Samples))) + " a sample"; len(p.Events) < 2 || !strings.Contains(b.String(), want) {
		t.Errorf("%d events, %q is missing in:\n%s", len(p.Events), want, b.String())
	}
}

func TestSummary(t *testing.T) {
	p := profiletest.Java()
	p.Threads[0].KernelCPU /= 2
	var b bytes.Buffer
	err := Summary(&b, p, Costs{Idle: 7, Target: 31 * time.Millisecond, TargetCPU: 10 * time.Second, OwnCPU: 142 * time.Millisecond,
		MaxRSS: 48 << 20, File: "app.pb.gz", FileSize: 123456}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, b.String(), `
samples  10,000 samples of 4 threads in 10.0s · 12 lost · 3 periods throttled · 7 idle
stacks   88.0% complete · 7.0% stitched · 4.0% heuristic · 0.6% truncated · 0.4% broken (mostly: bad pc)
hottest    self   total
          24.0%   24.0%  java.util.HashMap.hash
          15.0%   39.0%  java.util.HashMap.get
          15.0%   15.0%  G1ParScanThreadState::trim_queue_to_threshold  libjvm.so
          12.0%   15.0%  com.example.shop.Rules.evaluate
          11.0%   11.0%  java.lang.Math.fma
warning  4 threads got another share of samples than of the CPU time that the kernel counted · most of all http-worker-1: 4,700 samples where 3,072 were expected
cost     copying 31.0ms (0.31% of the CPU time that was recorded) · candid 142ms of CPU (14.2µs a sample) · 48.0 MiB of memory
note     1000 Hz keeps step with the kernel's tick: 997 Hz is used
written  app.pb.gz (121 KiB)`)
}

func TestByThread(t *testing.T) {
	text := body(textOf(t, profiletest.Java(), Options{ByThread: true, Top: 1, Filter: profile.Filter{Thread: regexp.MustCompile("C2|GC")}}))
	same(t, text, `
GC Thread#0  tid 4714  83.3%   15.0%    1.50s
  SELF  of all            TOTAL  of all           KIND    METHOD
100.0%   15.0%    1.50s  100.0%   15.0%    1.50s  native  G1ParScanThreadState::trim_queue_to_threshold  libjvm.so
  0.0%    0.0%        0  and 3 methods more

C2 CompilerThread0  tid 4715  16.7%    3.0%    300ms
  SELF  of all            TOTAL  of all           KIND    METHOD
100.0%    3.0%    300ms  100.0%    3.0%    300ms  native  PhaseIdealLoop::build_and_optimize  libjvm.so
  0.0%    0.0%        0  and 3 methods more`)
}

func TestViewNames(t *testing.T) {
	for _, name := range ViewNames() {
		if v, err := ParseView(name); err != nil || string(v) != name {
			t.Error(name, v, err)
		}
	}
	if _, err := ParseView("nope"); err == nil || !strings.Contains(err.Error(), "methods, tree, callers, threads") {
		t.Error(err)
	}
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0": duration(0), "1.50µs": duration(1500), "1.00ms": duration(999_999), "61.0s": duration(61 * time.Second), "0:10:00": duration(10 * time.Minute),
		"100h": duration(100 * time.Hour), "1,234,567": grouped(1234567), "999": grouped(999), "1.0 KiB": size(1024), "512 B": size(512),
		"99.960%": finePercent(0.9996), "100.0%": finePercent(1), "99.999%": finePercent(1 - 1.0/8_000_000), "0.001%": finePercent(1.0 / 8_000_000), "0.0%": finePercent(0), "…bcd": shorten("xabcd", 4),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The frames by which threads start are one line in trees, with all that they call below it; on
// request they are shown.
func TestFramesOfStartAreOneLine(t *testing.T) {
	o := Options{View: ViewTree, MinPercent: 20, Filter: profile.Filter{Ignore: regexp.MustCompile("libzip|Tree|Json|Image|Rules|fma")}}
	same(t, body(textOf(t, profiletest.Java(), o)), `
 TOTAL  of all             SELF  CALL TREE
 99.3%   57.0%    5.70s          (4 frames by which threads start)
 67.9%   39.0%    3.90s          ├ java.lang.Thread.run
 67.9%   39.0%    3.90s          │ com.example.shop.Worker.loop
 67.9%   39.0%    3.90s          │ com.example.shop.Handler.handle
 67.9%   39.0%    3.90s          │ com.example.shop.Index.search
 67.9%   39.0%    3.90s          │ com.example.shop.Index.score
 67.9%   39.0%    3.90s   26.1%  │ java.util.HashMap.get
 41.8%   24.0%    2.40s   41.8%  │ └ java.util.HashMap.hash
 26.1%   15.0%    1.50s          ├ GCTaskThread::run  libjvm.so
 26.1%   15.0%    1.50s   26.1%  │ G1ParScanThreadState::trim_queue_to_threshold  libjvm.so
  5.2%    3.0%    300ms          └ (1 more below 20.0% each)
  0.7%    0.4%   40.0ms          (2 more below 20.0% each)

Parts below 20.0% are summed up in lines in brackets.
--unfold shows each of the frames by which threads start.`)
	o.Unfold = true
	if text := textOf(t, profiletest.Java(), o); !strings.Contains(text, "start_thread") || !strings.Contains(text, "call_stub") || strings.Contains(text, "unfold") {
		t.Error(text)
	}
	// With lines and signatures shown the functions are still recognized.
	lined := profiletest.Java()
	for i := range lined.Frames {
		lined.Frames[i].Line = 442
	}
	o.Unfold, o.Filter.Lines, o.Filter.Signatures = false, true, true
	if text := textOf(t, lined, o); !strings.Contains(text, "(4 frames by which threads start)") || !strings.Contains(text, "HashMap.get:442") {
		t.Error(text)
	}
	o = Options{View: ViewCallers, Callers: regexp.MustCompile("HashMap.get|trim_queue")}
	same(t, body(textOf(t, profiletest.Java(), o)), `
 TOTAL           CALLERS OF HashMap.get|trim_queue
 39.0%    3.90s  java.util.HashMap.get
 39.0%    3.90s  ← com.example.shop.Index.score
 39.0%    3.90s  ← com.example.shop.Index.search
 39.0%    3.90s  ← com.example.shop.Handler.handle
 39.0%    3.90s  ← com.example.shop.Worker.loop
 39.0%    3.90s  ← java.lang.Thread.run
 39.0%    3.90s  ← (4 frames by which threads start)
 15.0%    1.50s  G1ParScanThreadState::trim_queue_to_threshold  libjvm.so
 15.0%    1.50s  ← GCTaskThread::run  libjvm.so
 15.0%    1.50s  ← thread_native_entry  libjvm.so
 15.0%    1.50s  ← start_thread  libc.so.6

--unfold shows each of the frames by which threads start.`)
}
