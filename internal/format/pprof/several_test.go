package pprof

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	rpprof "runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// contents returns for each event, stack and labels the weight.
func contents(p *profile.Profile) map[string]uint64 {
	out := map[string]uint64{}
	p.Each(func(s *profile.Sample, _ uint64) {
		var b strings.Builder
		e := p.Events[s.Event]
		fmt.Fprintf(&b, "%s/%s %d %s", e.Name, e.Unit, e.Column, profile.FormatLabels(p.LabelsOf(s)))
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			f := p.Frames[p.Nodes[n].Frame]
			fmt.Fprintf(&b, " %s:%d", p.Funcs[f.Func].Name, f.Line)
		}
		out[b.String()] += s.Weight
	})
	return out
}

func parsed(t *testing.T, packed io.Reader) *profile.Profile {
	t.Helper()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var allocated [][]byte

// TestHeapProfileOfGo reads what Go writes of its heap, writes it, and reads it again.
func TestHeapProfileOfGo(t *testing.T) {
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 1
	for i := range 100 {
		allocated = append(allocated, make([]byte, 1000*(i%3+1)))
	}
	runtime.GC()
	var file, again bytes.Buffer
	if err := rpprof.Lookup("heap").WriteTo(&file, 0); err != nil {
		t.Fatal(err)
	}
	p := parsed(t, &file)
	allocated = nil
	var names []string
	for _, e := range p.Events {
		names = append(names, fmt.Sprint(e.Name, "/", e.Unit, e.Column))
	}
	if want := []string{"inuse_space/bytes4", "alloc_objects/count1", "alloc_space/bytes2", "inuse_objects/count3"}; !slices.Equal(names, want) {
		t.Errorf("the events are %v, want %v", names, want)
	}
	if err := Write(&again, p); err != nil {
		t.Fatal(err)
	}
	if got, want := contents(parsed(t, &again)), contents(p); !maps.Equal(got, want) {
		t.Errorf("written and read again:\n%v\nwant\n%v", got, want)
	}
	sizes := 0
	for _, l := range p.Select(profile.Filter{}).ByLabel() {
		if l.Key == "bytes" && (l.Number == 1024 || l.Number == 2048 || l.Number == 3072) { // the classes of these sizes
			sizes++
		}
	}
	if sizes != 3 {
		t.Errorf("%d of three sizes are among the labels", sizes)
	}
}

// TestLabelsOfGo has labels of a program in CPU samples.
func TestLabelsOfGo(t *testing.T) {
	var file, again bytes.Buffer
	if err := rpprof.StartCPUProfile(&file); err != nil {
		t.Fatal(err)
	}
	rpprof.Do(context.Background(), rpprof.Labels("tenant", "acme"), func(context.Context) {
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		}
	})
	rpprof.StopCPUProfile()
	p := parsed(t, &file)
	labeled := func(p *profile.Profile) (n uint64) {
		for _, l := range p.Select(profile.Filter{}).ByLabel() {
			if l.Label == profile.TextLabel("tenant", "acme") {
				n += l.Samples
			}
		}
		return n
	}
	if labeled(p) == 0 {
		t.Errorf("none of %d samples has the label", p.SampleCount())
	}
	if err := Write(&again, p); err != nil {
		t.Fatal(err)
	}
	if got := parsed(t, &again); labeled(got) != labeled(p) || !maps.Equal(contents(got), contents(p)) {
		t.Errorf("%d samples have the label, written and read again %d", labeled(p), labeled(got))
	}
}
