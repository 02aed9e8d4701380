package pprof

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	google "github.com/google/pprof/profile"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

func written(t testing.TB, p *profile.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpacked(t testing.TB, gz []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(gz))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// stacks returns for every distinct stack, with everything that a file keeps of it, how many
// samples and how much weight it has.
func stacks(p *profile.Profile) map[string][2]uint64 {
	out := map[string][2]uint64{}
	for _, s := range p.Samples {
		th := p.Threads[s.Thread]
		key := []string{th.Name, th.Kind, p.Events[s.Event].Name, s.State.String(), qualityLabel(s.End, s.Flags)}
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			f := p.Frames[p.Nodes[n].Frame]
			fn := p.Funcs[f.Func]
			key = append(key, strings.Join([]string{fn.Name, fn.Raw, fn.Signature, fn.Module, fn.File, profile.KindName(f.Kind),
				placeOf(p, f).mappingName(), string(rune('0' + f.Line%10))}, "|"))
			if fn.NoName {
				key = append(key, "noname")
			}
		}
		k := strings.Join(key, "\n")
		v := out[k]
		out[k] = [2]uint64{v[0] + 1, v[1] + s.Weight}
	}
	return out
}

func TestReadsBackWhatItWrites(t *testing.T) {
	p := profiletest.Java()
	back, err := Parse(unpacked(t, written(t, p)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back.Meta, p.Meta) {
		t.Errorf("meta\n got %+v\nwant %+v", back.Meta, p.Meta)
	}
	for _, c := range [][2]any{
		{back.Losses, p.Losses}, {back.Events, p.Events}, {back.Processes, p.Processes},
		{back.Threads, p.Threads}, {back.Quality(), p.Quality()}, {stacks(back), stacks(p)},
	} {
		if !reflect.DeepEqual(c[0], c[1]) {
			t.Errorf("\n got %v\nwant %v", c[0], c[1])
		}
	}
}

func TestOutputDependsOnlyOnTheProfile(t *testing.T) {
	if a, b := written(t, profiletest.Java()), written(t, profiletest.Java()); !bytes.Equal(a, b) {
		t.Error("two files of the same profile differ")
	}
}

func TestSeveralEventsNamesAndSignatures(t *testing.T) {
	b := profile.NewBuilder()
	p := b.Profile()
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 10}, {Name: "cache-misses", Kind: profile.EventCounter, Unit: "count", Period: 1000}}
	f1 := b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: "a.B.c", Signature: "(I)V"}), BCI: 17, Kind: walk.KindInterpreted})
	f2 := b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: "a.B$$Lambda.run", Raw: "a.B$$Lambda$12/0x800.run", Signature: "()V"}), BCI: -1, Kind: walk.KindC2, Flags: walk.Coarse | walk.Virtual})
	f3 := b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: "f(int)", Raw: "_Z1fi", Module: "[vdso]"}), BCI: -1, Kind: walk.KindNative, Prov: walk.Derived})
	n := b.Node(b.Node(b.Node(0, f1), f2), f3)
	b.Add(profile.Sample{Weight: 25, Node: n, Thread: b.Thread(1, 2, "x")})
	b.Add(profile.Sample{Weight: 24, Node: n, Thread: b.Thread(1, 2, "x")})
	b.Add(profile.Sample{Weight: 1000, Node: n, Thread: b.Thread(1, 3, "\xff"), Event: 1}) // files are UTF-8: spelled out
	b.Add(profile.Sample{Weight: 0, Node: n, Thread: b.Thread(1, 3, ""), Event: 1})
	p = b.Profile()
	back, err := Parse(unpacked(t, written(t, p)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := stacks(back), stacks(p); !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %v\nwant %v", got, want)
	}
	if len(back.Threads) != len(p.Threads) {
		t.Errorf("%d threads, want %d", len(back.Threads), len(p.Threads))
	}
}

// The library of go tool pprof decides whether the output is pprof.
func TestGoogleLibraryReadsIt(t *testing.T) {
	p := profiletest.Java()
	g, err := google.ParseData(written(t, p))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.CheckValid(); err != nil {
		t.Fatal(err)
	}
	if g.SampleType[0].Type != "samples" || g.SampleType[1].Type != "cpu" || g.SampleType[1].Unit != "nanoseconds" || g.DefaultSampleType != "cpu" {
		t.Errorf("sample types %v, default %s", g.SampleType, g.DefaultSampleType)
	}
	if g.PeriodType.Type != "cpu" || g.Period != int64(profiletest.Period) || g.DurationNanos != int64(p.Meta.Duration) || g.TimeNanos != p.Meta.Start.UnixNano() {
		t.Errorf("period %v %d, duration %d, time %d", g.PeriodType, g.Period, g.DurationNanos, g.TimeNanos)
	}
	if g.Mapping[0].File != "java" {
		t.Errorf("first mapping is %q", g.Mapping[0].File)
	}
	var counts, weight int64
	quality := map[string]int64{}
	inlinedLines := false
	for _, s := range g.Sample {
		counts += s.Value[0]
		weight += s.Value[1]
		quality[s.Label["stack"][0]] += s.Value[0]
		if len(s.Label["thread"]) != 1 || len(s.NumLabel["tid"]) != 1 || s.NumLabel["pid"][0] != 4711 || s.Label["state"][0] != "running" {
			t.Fatalf("labels %v %v", s.Label, s.NumLabel)
		}
		for _, l := range s.Location {
			if len(l.Line) == 4 && l.Line[0].Function.Name == "java.util.HashMap.hash" && l.Line[3].Function.Name == "com.example.shop.Index.search" {
				inlinedLines = l.Mapping.File == "[C2]" && l.Line[3].Line == 210
			}
		}
	}
	if counts != 10000 || weight != 10000*int64(profiletest.Period) {
		t.Errorf("%d samples, weight %d", counts, weight)
	}
	want := map[string]int64{"complete": 8800, "stitched": 700, "heuristic": 400, "truncated": 60, "broken: bad pc": 30, "broken: no rule, heuristic": 10}
	if !reflect.DeepEqual(quality, want) {
		t.Errorf("quality %v, want %v", quality, want)
	}
	if !inlinedLines {
		t.Error("no Location holds the frame of Index.search with the three that are inlined into it")
	}
}

func TestGoToolPprofOpensIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "java.pb.gz")
	if err := os.WriteFile(file, written(t, profiletest.Java()), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		cmd := exec.Command("go", append([]string{"tool", "pprof"}, append(args, file)...)...)
		cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go tool pprof %v: %v\n%s", args, err, errs.String())
		}
		if errs.Len() > 0 {
			t.Errorf("go tool pprof %v complains: %s", args, errs.String())
		}
		return string(out)
	}
	top := run("-top")
	for _, want := range []string{"File: java", "Type: cpu", "Duration: 10s, Total samples = 10s", "2.40s 24.00% 24.00%      2.40s 24.00%  java.util.HashMap.hash (inline)"} {
		if !strings.Contains(top, want) {
			t.Errorf("-top lacks %q:\n%s", want, top)
		}
	}
	if strings.Contains(top, "candid: thread") {
		t.Errorf("-top lists all threads:\n%s", top)
	}
	// Recursion counts once: 1.2 s + 0.3 s.
	if !strings.Contains(top, "1.20s 12.00%") || !strings.Contains(top, "1.50s 15.00%  com.example.shop.Rules.evaluate") {
		t.Errorf("-top: wrong Rules.evaluate:\n%s", top)
	}
	if out := run("-traces"); !strings.Contains(out, "http-worker-1") || !strings.Contains(out, "vfs_write") {
		t.Errorf("-traces:\n%s", out)
	}
	if out := run("-raw"); !strings.Contains(out, "[C2]") || !strings.Contains(out, "candid: losses 12 3") {
		t.Errorf("-raw:\n%s", out)
	}
	if out := run("-top", "-tagfocus=thread=GC Thread#0"); !strings.Contains(out, "1.50s") {
		t.Errorf("-tagfocus:\n%s", out)
	}
}

// A profile that the Go runtime wrote has no kinds and no labels.
func TestReadsForeign(t *testing.T) {
	g := &google.Profile{
		SampleType: []*google.ValueType{{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"}},
		PeriodType: &google.ValueType{Type: "space", Unit: "bytes"}, Period: 512 << 10,
	}
	m := &google.Mapping{ID: 1, File: "/usr/bin/app", Limit: 1 << 20}
	f := &google.Function{ID: 1, Name: "main.(*T).run", SystemName: "main.(*T).run", Filename: "main.go"}
	l := &google.Location{ID: 7, Mapping: m, Address: 0x1234, Line: []google.Line{{Function: f, Line: 12}}}
	none := &google.Location{ID: 8, Mapping: m, Address: 0x4321}
	g.Mapping, g.Function, g.Location = []*google.Mapping{m}, []*google.Function{f}, []*google.Location{l, none}
	g.Sample = []*google.Sample{{Location: []*google.Location{none, l}, Value: []int64{3, 4096}}}
	var buf bytes.Buffer
	if err := g.Write(&buf); err != nil {
		t.Fatal(err)
	}
	p, err := Parse(unpacked(t, buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Events) != 2 || p.Events[0].Name != "alloc_space" || len(p.Samples) != 2 {
		t.Fatalf("events %v, %d samples", p.Events, len(p.Samples))
	}
	leaf := p.Frames[p.Nodes[p.Samples[0].Node].Frame]
	if fn := p.Funcs[leaf.Func]; fn.Name != "app+0x4321" || !fn.NoName || leaf.Kind != walk.KindNative {
		t.Errorf("leaf %+v %+v", leaf, fn)
	}
	outer := p.Frames[p.Nodes[p.Nodes[p.Samples[0].Node].Parent].Frame]
	if fn := p.Funcs[outer.Func]; fn.Name != "main.(*T).run" || fn.Signature != "" || fn.Raw != "" || outer.Line != 12 {
		t.Errorf("outer %+v %+v", outer, fn)
	}
}

func TestTruncatedInput(t *testing.T) {
	raw := unpacked(t, written(t, profiletest.Java()))
	bad := 0
	for cut := 1; cut < len(raw); cut += 97 {
		if _, err := Parse(raw[:cut]); err != nil {
			bad++
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("error of more than a line: %q", err)
			}
		}
	}
	if bad == 0 {
		t.Error("no cut was noticed")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(unpacked(f, written(f, profiletest.New(profiletest.JavaStacks()[5:7]))))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse(data)
		if err != nil {
			return
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		if len(p.Samples) > 1000 || len(p.Events) > 8 {
			return
		}
		again, err := Parse(unpacked(t, written(t, p)))
		if err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
		if a, b := p.Quality(), again.Quality(); len(p.Events) == len(again.Events) && a != b {
			t.Fatalf("quality %+v, was %+v", b, a)
		}
	})
}

// TestStartLines checks that a function keeps the line of its declaration: the Go compiler refuses
// profiles without.
func TestStartLines(t *testing.T) {
	b := profile.NewBuilder()
	p := b.Profile()
	p.Meta.Version, p.Events = "1", []profile.Event{{Name: "cpu", Unit: "nanoseconds", Period: 1}}
	fn := b.Func(profile.Func{Name: "main.work", Module: "prog", File: "main.go", Start: 17})
	frame := b.Frame(profile.Frame{Func: fn, Line: 20, BCI: -1, Kind: walk.KindNative})
	b.Add(profile.Sample{Weight: 1, Node: b.Node(profile.RootNode, frame), Thread: b.Thread(1, 1, "main")})
	file := written(t, b.Finish())
	theirs, err := google.ParseData(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := theirs.Function[0].StartLine; got != 17 {
		t.Errorf("pprof reads that the function starts on line %d, not 17", got)
	}
	ours, err := Parse(unpacked(t, file))
	if err != nil {
		t.Fatal(err)
	}
	if got := ours.Funcs[0].Start; got != 17 {
		t.Errorf("read back, the function starts on line %d, not 17", got)
	}
}
