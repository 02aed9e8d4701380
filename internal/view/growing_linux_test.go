package view

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// source presents a part of a profile's tables, as a recording that is being made has them.
type source struct {
	*profile.Profile
	nodes int
}

func (s source) At(n uint32) profile.Node     { return s.Profile.Nodes[n] }
func (s source) Nodes() int                   { return s.nodes }
func (s source) Meta() *profile.Meta          { return &s.Profile.Meta }
func (s source) Frames() []profile.Frame      { return s.Profile.Frames }
func (s source) Funcs() []profile.Func        { return s.Profile.Funcs }
func (s source) Threads() []profile.Thread    { return s.Profile.Threads }
func (s source) Processes() []profile.Process { return s.Profile.Processes }

// TestGrowingIsWhole asks a recording after each growth everything that a page can ask, and also
// one that was opened with the same samples at once: the answers are the same byte by byte, except
// for how often it has grown.
func TestGrowingIsWhole(t *testing.T) {
	asks := func(r *Recording) []url.Values {
		out := []url.Values{{"split": {"1"}}, {"merge": {"HashMap|Order"}}, {"recursion": {"."}, "split": {"1"}},
			{"collapse": {"package java.util", "module libc.so.6"}, "focus": {"Order"}, "threads": {"0-5.9"}}}
		for _, q := range questions(r) {
			out = append(out, q.ask)
		}
		return out
	}
	ctx := context.Background()
	for seed := range uint64(2) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := busy(t, 300+rnd.IntN(1500), 2500).p
		rnd.Shuffle(200, func(i, j int) { p.Samples[i], p.Samples[j] = p.Samples[j], p.Samples[i] }) // of a batch
		r := OpenGrowing("app.jfr")
		nodes, done := 0, 0
		for done < len(p.Samples) {
			fresh := p.Samples[done:min(len(p.Samples), done+rnd.IntN(900))]
			done += len(fresh)
			for _, s := range fresh {
				nodes = max(nodes, int(s.Node)+1)
			}
			r.Grow(Grown{Source: source{p, nodes}, Events: p.Events, Syscalls: p.Syscalls, Losses: p.Losses, Samples: fresh})
			part := *p
			part.Samples, part.Nodes = slices.Clone(p.Samples[:done]), p.Nodes[:nodes]
			whole, err := Open("app.jfr", &part)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range append(asks(r), url.Values{"starts": {"fold"}}, url.Values{"starts": {"fold"}, "merge": {"HashMap"}}) {
				for question := range map[string]answer{"counts": nil, "overview": nil, "lanes": nil, "tree": nil} {
					v.Set("lanes", "0-20")
					got, err1 := answers[question](ctx, r, v)
					want, err2 := answers[question](ctx, whole, v)
					if err1 != nil || err2 != nil {
						t.Fatalf("%s?%s: %v, %v", question, v.Encode(), err1, err2)
					}
					if question == "tree" { // symbols have another order: their names are compared
						got, want = named0(t, r, v), named0(t, whole, v)
					}
					if !bytes.Equal(got, want) {
						t.Fatalf("seed %d, after %d samples: %s?%s differs", seed, done, question, v.Encode())
					}
				}
			}
		}
	}
}

// named0 returns the tree that a page is shown, with names in place of numbers.
func named0(t *testing.T, r *Recording, v url.Values) []byte {
	t.Helper()
	w, err := rewriteOf(v)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.shapeFor(w)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for i, id := range s.tree.Order {
		name := ""
		if i > 0 {
			sym := s.tree.Symbols[s.sym[i]]
			if name = sym.End.String(); int(sym.Func) < len(s.funcs) {
				name = s.funcs[sym.Func].Name
			}
			name += fmt.Sprint(" ", sym.Kind)
		}
		fmt.Fprintln(&b, s.tree.Depth[i], name, s.tree.Samples[id], s.tree.Line[id], s.tree.Lines[id])
	}
	return b.Bytes()
}

// broken is a source with a node whose frame does not exist.
type broken struct{ source }

func (b broken) At(n uint32) profile.Node {
	x := b.source.At(n)
	x.Frame = 1 << 30
	return x
}

// TestFollowSurvives: whatever goes wrong while a recording is followed, the page goes on with what
// it has, and says so.
func TestFollowSurvives(t *testing.T) {
	p := profiletest.Server(500, 2000, 20)
	r := OpenGrowing("app.jfr")
	grow := func(src Source, samples []profile.Sample) {
		r.Grow(Grown{Source: src, Events: p.Events, Syscalls: p.Syscalls, Samples: samples})
	}
	slices.SortStableFunc(p.Samples, func(a, b profile.Sample) int { return cmp.Compare(a.Node, b.Node) })
	grow(source{p, int(p.Samples[999].Node) + 1}, p.Samples[:1000])
	ask := func() []byte {
		t.Helper()
		data, err := countsMessage(t.Context(), r, url.Values{"split": {"1"}})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	before := ask()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a node of nothing is taken")
			}
		}()
		grow(broken{source{p, len(p.Nodes)}}, p.Samples[1000:])
	}()
	if !bytes.Equal(ask(), before) {
		t.Error("after a fault the recording is not what it was")
	}

	// A panic, a damaged file, and a file that does not exist.
	w := newWriter(t, p)
	w.to(len(p.Samples))
	looks := 0
	torn := filepath.Join(t.TempDir(), "torn.jfr")
	data, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data[100:5000] {
		data[100+i] = 0xff
	}
	if err := os.WriteFile(torn, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path    string
		written func() bool
		says    string
		samples int
	}{
		{w.path, func() bool {
			if looks++; looks > 1 {
				panic("out of order")
			}
			return true
		}, "fault, please report it: following " + w.path + ": out of order", len(p.Samples)},
		{torn, func() bool { return true }, "malformed", 0},
		{filepath.Join(t.TempDir(), "none.jfr"), func() bool { return true }, "no such file", 0},
	} {
		r := OpenGrowing("app.jfr")
		told := make(chan string, 1)
		go func() {
			for version := uint32(0); ; {
				data, err := waitMessage(t.Context(), r, url.Values{"version": {fmt.Sprint(version)}})
				if err != nil {
					told <- err.Error()
					return
				}
				r.lock.RLock()
				version = r.version
				over := !r.growing
				r.lock.RUnlock()
				if over {
					told <- string(data)
					return
				}
			}
		}()
		err := Follow(t.Context(), r, c.path, c.written)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Fatalf("following %s ends with %v", c.path, err)
		}
		if text := <-told; !strings.Contains(text, `"growing":false`) {
			t.Errorf("a page that waits is told %q", text)
		}
		tree, err := treeMessage(t.Context(), r, url.Values{})
		if err != nil || !strings.Contains(string(tree), `"growing":false`) || !strings.Contains(string(tree), c.says) {
			t.Errorf("the page is not told why: %v, %.300q", err, tree)
		}
		if len(r.p.Samples) != c.samples {
			t.Errorf("%d samples are left of %s, not %d", len(r.p.Samples), c.path, c.samples)
		}
		// record has the whole recording in the end, and the pages that wait get it.
		if err := r.Finish(p); err != nil || r.stopped != "" {
			t.Errorf("the whole recording: %v, stopped %q", err, r.stopped)
		}
	}
}

// TestFollowOthers follows a recording that candid did not write, chunk by chunk as other profilers
// write it.
func TestFollowOthers(t *testing.T) {
	p := profiletest.Java()
	var one bytes.Buffer
	if err := jfr.Write(&one, p); err != nil {
		t.Fatal(err)
	}
	// Without the names of candid's own types the file looks like that of any other profiler.
	part := bytes.ReplaceAll(one.Bytes(), []byte("candid.types."), []byte("unknown.type."))
	whole := append(bytes.Clone(part), part...)
	path := filepath.Join(t.TempDir(), "others.jfr")
	if err := os.WriteFile(path, whole[:len(part)+20], 0o600); err != nil { // a chunk, and an incomplete header
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if !jfr.NewTail(f).Others() {
		t.Error("it is taken for one of candid's")
	}
	f.Close()
	r := OpenGrowing(path)
	var counted []int
	err = Follow(t.Context(), r, path, func() bool {
		counted = append(counted, len(r.p.Samples))
		switch len(counted) {
		case 2:
			if err := errors.Join(os.WriteFile(path, whole, 0o600), os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour))); err != nil {
				t.Error(err)
			}
		case 4:
			return false
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(counted) != 4 || counted[0] != 0 || counted[1] != len(p.Samples) || counted[3] != 2*len(p.Samples) || r.growing || len(r.p.Samples) != counted[3] {
		t.Errorf("samples from look to look: %v, at the end %d, growing: %v", counted, len(r.p.Samples), r.growing)
	}
}
