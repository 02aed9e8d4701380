package pprof

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	google "github.com/google/pprof/profile"

	"github.com/candid-profiler/candid/internal/format/protobuf"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// foreign returns a file of another program, of one sample with labels.
func foreign(t *testing.T, label map[string][]string, number map[string][]int64) []byte {
	t.Helper()
	f := &google.Function{ID: 1, Name: "main.run"}
	l := &google.Location{ID: 1, Line: []google.Line{{Function: f}}}
	g := &google.Profile{
		SampleType: []*google.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Function:   []*google.Function{f}, Location: []*google.Location{l},
		Sample: []*google.Sample{{Location: []*google.Location{l}, Value: []int64{1, 100}, Label: label, NumLabel: number}},
	}
	var b bytes.Buffer
	if err := g.Write(&b); err != nil {
		t.Fatal(err)
	}
	return unpacked(t, b.Bytes())
}

// Labels of other programs whose keys are candid's own mean nothing to candid, also when it has
// written them.
func TestLabelsNamedLikeOwn(t *testing.T) {
	theirs := map[string][]string{
		"event": {"alloc"}, "stack": {"truncated, heuristic"}, "skid": {"vfs_write"}, "thread_kind": {"gc"}, "state": {"confused"}, "thread": {"worker"},
		"tid": {"main"}, "thread_id": {"first"}, "process_id": {"web"}, "label.x": {"y"}, "tenant": {"acme"},
	}
	p, err := Parse(foreign(t, theirs, map[string][]int64{"pid": {7}, "syscall": {3}}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		s := p.Samples[0]
		var got []string
		for _, l := range p.LabelsOf(&s) {
			got = append(got, l.Key+"="+l.Value())
		}
		want := []string{"event=alloc", "label.x=y", "process_id=web", "skid=vfs_write", "stack=truncated, heuristic", "state=confused", "syscall=3", "tenant=acme", "thread_id=first", "thread_kind=gc", "tid=main"}
		th := p.Threads[s.Thread]
		if !slices.Equal(got, want) || th.Name != "worker" || th.Kind != "" || th.PID != 7 || th.TID != 0 {
			t.Errorf("read %d times: %q of %+v, want %q", i+1, got, th, want)
		}
		if depth := len(p.Nodes) - 1; depth != 1 || s.End != walk.EndComplete || s.Flags != 0 || s.State != profile.StateUnknown || len(p.Events) != 1 {
			t.Errorf("read %d times: %d frames, %+v", i+1, depth, s)
		}
		if p, err = Parse(unpacked(t, written(t, p))); err != nil {
			t.Fatal(err)
		}
	}
}

// A file can refer to the same long texts in very many samples.
func TestLongLabelsOften(t *testing.T) {
	long := strings.Repeat("x\x01", profile.MaxLabelText)
	label := map[string][]string{}
	for i := range 40 {
		key := fmt.Sprint("key", i)
		label[key] = []string{long[i:]}
	}
	data := foreign(t, label, nil)
	var sample protobuf.Message
	for c := (cursor{rest: data}); c.next(); {
		if c.field == profileSample {
			sample.Bytes(profileSample, c.data)
		}
	}
	data = append(data, bytes.Repeat(sample, 20_000)...)
	start := time.Now()
	p, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.LabelsOf(&p.Samples[0])); n == 0 || n > 4 || len(p.Samples) != 20_001 {
		t.Errorf("%d samples have %d labels", len(p.Samples), n)
	}
	if !slices.ContainsFunc(p.Meta.Notes, func(n string) bool { return strings.Contains(n, "20001 samples lost") }) {
		t.Errorf("the notes are %q", p.Meta.Notes)
	}
	t.Logf("read in %v", time.Since(start))
}

// TestSumsOfSeveralValues has sums of a profile whose samples have several values: sums have two.
func TestSumsOfSeveralValues(t *testing.T) {
	b := profile.NewBuilder()
	p := b.Profile()
	for i, name := range []string{"inuse_space", "alloc_space", "alloc_objects"} {
		e := profile.NamedEvent(name, "bytes", 1)
		e.Column = uint16(i + 1)
		p.Events = append(p.Events, e)
	}
	n := b.Node(profile.RootNode, b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: "f"})}))
	var out bytes.Buffer
	if err := WriteSums(&out, b.Profile(), []Sum{{Node: n, Count: profile.Count{Samples: 2, Weight: 30}}}); err != nil {
		t.Fatal(err)
	}
	g, err := google.ParseUncompressed(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := g.CheckValid(); err != nil || len(g.SampleType) != 2 || g.SampleType[0].Type != "samples" || g.SampleType[1].Type != "inuse_space" || !slices.Equal(g.Sample[0].Value, []int64{2, 30}) {
		t.Errorf("%v", g)
	}
}
