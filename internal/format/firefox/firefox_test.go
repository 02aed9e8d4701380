package firefox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

// file is version 61 of the format according to src/types/profile.ts of the Firefox Profiler.
type file struct {
	Meta struct {
		Interval, StartTime             float64
		ProcessType, Stackwalk, Version int
		PreprocessedProfileVersion      int
		Product                         string
		Categories                      []struct{ Name, Color string }
		MarkerSchema                    []any
		Symbolicated                    bool
		SampleUnits                     map[string]string
		SymbolicationNotSupported       bool
		UsesOnlyOneStackType            bool
		SourceCodeIsNotOnSearchfox      bool
		ImportedFrom                    string
	}
	Threads []struct {
		Name, Pid, ProcessName, ProcessType string
		Tid                                 int
		IsMainThread                        bool
		Samples                             struct {
			Stack        []*int
			Time, Weight []float64
			WeightType   string
			Length       int
		}
		Markers map[string]any
	}
	Shared struct {
		StackTable struct {
			Frame  []int
			Prefix []*int
			Length int
		}
		FrameTable struct {
			Address, InlineDepth, Category, Subcategory, Func []int
			NativeSymbol, InnerWindowID, Line, Column         []*int
			Length                                            int
		}
		FuncTable struct {
			Name, Resource                   []int
			IsJS, RelevantForJS              []bool
			Source, LineNumber, ColumnNumber []*int
			Length                           int
		}
		ResourceTable struct {
			Lib, Host  []*int
			Name, Type []int
			Length     int
		}
		NativeSymbols map[string]any
		Sources       struct {
			ID, SourceMapURL                 []*string
			Filename, StartLine, StartColumn []int
			Length                           int
		}
		StringArray []string
	}
}

func written(t *testing.T, p *profile.Profile) *file {
	t.Helper()
	var b, again bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	if err := Write(&again, p); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("two files of the same profile differ, %v", err)
	}
	var f file
	if err := json.Unmarshal(b.Bytes(), &f); err != nil {
		t.Fatal(err)
	}
	check(t, &f)
	return &f
}

// check tests what the profiler relies on: all columns of a table have the same length, and indices
// are valid.
func check(t *testing.T, f *file) {
	t.Helper()
	s := &f.Shared
	long := func(table string, want int, lengths ...int) {
		for i, n := range lengths {
			if n != want {
				t.Errorf("%s: column %d has %d of %d", table, i, n, want)
			}
		}
	}
	st, fr, fn, re, so := &s.StackTable, &s.FrameTable, &s.FuncTable, &s.ResourceTable, &s.Sources
	long("stackTable", st.Length, len(st.Frame), len(st.Prefix))
	long("frameTable", fr.Length, len(fr.Address), len(fr.InlineDepth), len(fr.Category), len(fr.Subcategory), len(fr.Func), len(fr.NativeSymbol), len(fr.InnerWindowID), len(fr.Line), len(fr.Column))
	long("funcTable", fn.Length, len(fn.Name), len(fn.Resource), len(fn.IsJS), len(fn.RelevantForJS), len(fn.Source), len(fn.LineNumber), len(fn.ColumnNumber))
	long("resourceTable", re.Length, len(re.Lib), len(re.Host), len(re.Name), len(re.Type))
	long("sources", so.Length, len(so.ID), len(so.SourceMapURL), len(so.Filename), len(so.StartLine), len(so.StartColumn))
	in := func(what string, i, n int) {
		if i < 0 || i >= n {
			t.Errorf("%s: %d of %d", what, i, n)
		}
	}
	for i := range st.Length {
		in("a stack's frame", st.Frame[i], fr.Length)
		if st.Prefix[i] != nil {
			in("a stack's prefix", *st.Prefix[i], i)
		}
	}
	for i := range fr.Length {
		in("a frame's function", fr.Func[i], fn.Length)
		in("a frame's category", fr.Category[i], len(f.Meta.Categories))
	}
	for i := range fn.Length {
		in("a function's name", fn.Name[i], len(s.StringArray))
		if fn.Resource[i] != -1 {
			in("a function's resource", fn.Resource[i], re.Length)
		}
		if fn.Source[i] != nil {
			in("a function's source", *fn.Source[i], so.Length)
		}
	}
	for i := range re.Length {
		in("a resource's name", re.Name[i], len(s.StringArray))
	}
	for i := range so.Length {
		in("a source's name", so.Filename[i], len(s.StringArray))
	}
	for _, th := range f.Threads {
		sa := &th.Samples
		long("samples", sa.Length, len(sa.Stack), len(sa.Time), len(sa.Weight))
		for i, n := range sa.Stack {
			if n != nil {
				in("a sample's stack", *n, st.Length)
			}
			if i > 0 && sa.Time[i] < sa.Time[i-1] {
				t.Errorf("%s: a sample at %v after %v", th.Name, sa.Time[i], sa.Time[i-1])
			}
		}
	}
	grey := 0
	for _, c := range f.Meta.Categories {
		if c.Color == "grey" {
			grey++
		}
	}
	if m := f.Meta; grey == 0 || m.PreprocessedProfileVersion != 61 || m.MarkerSchema == nil || m.Product == "" {
		t.Errorf("meta %+v", m)
	}
}

// sums adds up self and total of each function.
func sums(f *file) (self, total map[string]float64) {
	self, total = map[string]float64{}, map[string]float64{}
	s := &f.Shared
	for _, th := range f.Threads {
		for i, n := range th.Samples.Stack {
			seen := map[string]bool{}
			for at := n; at != nil; at = s.StackTable.Prefix[*at] {
				name := s.StringArray[s.FuncTable.Name[s.FrameTable.Func[s.StackTable.Frame[*at]]]]
				if len(seen) == 0 {
					self[name] += th.Samples.Weight[i]
				}
				if !seen[name] {
					total[name] += th.Samples.Weight[i]
				}
				seen[name] = true
			}
		}
	}
	return self, total
}

func TestWrite(t *testing.T) {
	p := profiletest.Java()
	p.Meta.Start = time.UnixMilli(1700000000123)
	f := written(t, p)
	if len(f.Threads) != 4 || f.Threads[0].Pid != "4711" || f.Meta.StartTime != 1700000000123 || f.Meta.Interval != 1 {
		t.Errorf("%d threads, first %+v, meta %+v", len(f.Threads), f.Threads[0].Name, f.Meta)
	}
	self, total := sums(f)
	sel := p.Select(profile.Filter{})
	n := 0
	for _, m := range sel.List() {
		name := sel.Func(m.Method).Name
		n++
		if math.Abs(self[name]-float64(m.Self.Weight)/1e6) > 1e-6 || math.Abs(total[name]-float64(m.Total.Weight)/1e6) > 1e-6 {
			t.Errorf("%s: self %v, total %v ms; want %d, %d ns", name, self[name], total[name], m.Self.Weight, m.Total.Weight)
		}
	}
	if n < 10 || total["[truncated]"] != 60 || total["[broken: bad pc]"] != 30 {
		t.Errorf("%d functions; ends %v, %v", n, total["[truncated]"], total["[broken: bad pc]"])
	}
	times := map[string]bool{}
	for _, th := range f.Threads {
		if th.Samples.WeightType != "tracing-ms" {
			t.Errorf("%s: weights of %s", th.Name, th.Samples.WeightType)
		}
		for i := range th.Samples.Time {
			times[fmt.Sprint(th.Tid, th.Samples.Time[i])] = true
		}
	}
	for _, s := range p.Samples {
		if key := fmt.Sprint(p.Threads[s.Thread].TID, float64(s.Time)/1e6); !times[key] {
			t.Fatalf("no sample at %s", key)
		}
	}
}

// TestOther: events are tracks, kinds are categories, and samples without times follow each other.
func TestOther(t *testing.T) {
	b := profile.NewBuilder()
	b.Profile().Events = []profile.Event{{Name: "samples", Kind: profile.EventSamples, Unit: "count", Period: 1}, {Name: "alloc", Kind: profile.EventAlloc, Unit: "bytes"}}
	var node uint32
	for k := range walk.NumKinds {
		node = b.Node(node, b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: "f", File: "f.c", Module: fmt.Sprint("m", k)}), Kind: k, Line: 7, BCI: -1}))
	}
	for range 3 {
		b.Add(profile.Sample{Node: node, Thread: b.Thread(5, 5, "main"), Weight: 2})
	}
	b.Add(profile.Sample{Node: node, Thread: b.Thread(5, 6, "\"<script>\x00\xff"), Event: 1, Weight: 4096})
	b.Add(profile.Sample{Thread: b.Thread(5, 6, ""), Event: 0, Weight: 1, End: walk.EndUnread})
	f := written(t, b.Profile())
	if len(f.Threads) != 3 {
		t.Fatalf("%d threads", len(f.Threads))
	}
	first := f.Threads[0]
	if first.Name != "main" || !first.IsMainThread || first.Samples.WeightType != "samples" || fmt.Sprint(first.Samples.Time, first.Samples.Weight) != "[0 1 2] [2 2 2]" {
		t.Errorf("%+v", first)
	}
	if last := f.Threads[2]; last.Name != `"<script>\u0000\xff (alloc)` || last.Samples.WeightType != "bytes" || last.Samples.Weight[0] != 4096 {
		t.Errorf("%+v", last)
	}
	colours := map[int]bool{}
	for _, c := range f.Shared.FrameTable.Category {
		colours[c] = true
	}
	if len(colours) != len(categories) {
		t.Errorf("categories %v of %d", colours, len(categories))
	}
}

func TestEmpty(t *testing.T) {
	if f := written(t, profile.NewBuilder().Profile()); len(f.Threads) != 0 {
		t.Errorf("%+v", f.Threads)
	}
}
