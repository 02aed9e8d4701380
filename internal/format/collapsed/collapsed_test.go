package collapsed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

func written(t testing.TB, p *profile.Profile, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// parse reads as flamegraph.pl and speedscope do: a line is split at its last space.
func parse(t *testing.T, text string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		at := strings.LastIndexByte(l, ' ')
		n, err := strconv.Atoi(l[at+1:])
		if err != nil {
			t.Fatalf("line %q: %v", l, err)
		}
		if _, ok := out[l[:at]]; ok {
			t.Errorf("stack %q is there twice", l[:at])
		}
		out[l[:at]] += n
	}
	return out
}

// want computes the lines directly from the stacks.
func want(o Options) map[string]int {
	suffix := map[walk.Kind]string{walk.KindKernel: "_[k]", walk.KindInterpreted: "_[0]", walk.KindC1: "_[1]",
		walk.KindC2: "_[j]", walk.KindInlined: "_[i]", walk.KindNativeMethod: "_[j]"}
	tids := map[string]int{}
	out := map[string]int{}
	for _, s := range profiletest.JavaStacks() {
		if _, ok := tids[s.Thread]; !ok {
			tids[s.Thread] = 4712 + len(tids)
		}
		var parts []string
		if o.Threads {
			parts = append(parts, fmt.Sprintf("[%s tid=%d]", s.Thread, tids[s.Thread]))
		}
		switch s.End {
		case walk.EndComplete:
		case walk.EndTruncated:
			parts = append(parts, "[truncated]")
		default:
			parts = append(parts, "[broken: "+s.End.String()+"]")
		}
		for _, f := range s.Frames {
			name := f.Name
			if o.Kinds {
				name += suffix[f.Kind]
			}
			parts = append(parts, name)
		}
		n := s.Count
		if o.Weights {
			n *= int(profiletest.Period)
		}
		out[strings.Join(parts, ";")] += n
	}
	return out
}

func TestWrite(t *testing.T) {
	for _, o := range []Options{{}, {Threads: true}, {Kinds: true}, {Threads: true, Kinds: true, Weights: true}} {
		text := written(t, profiletest.Java(), o)
		if got := parse(t, text); !maps.Equal(got, want(o)) {
			t.Errorf("%+v:\n got %v\nwant %v", o, got, want(o))
		}
		if text != written(t, profiletest.Java(), o) {
			t.Errorf("%+v: two files of the same profile differ", o)
		}
	}
}

func TestReadsBackWhatItWrites(t *testing.T) {
	o := Options{Threads: true, Kinds: true}
	text := written(t, profiletest.Java(), o)
	p, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := parse(t, written(t, p, o)); !maps.Equal(got, want(o)) {
		t.Errorf("\n got %v\nwant %v", got, want(o))
	}
	if q := p.Quality(); q.Samples != 10000 || q.Truncated != 60 || q.Broken != 40 {
		t.Errorf("quality %+v", q)
	}
}

func TestEscapesWhatWouldSplit(t *testing.T) {
	b := profile.NewBuilder()
	b.Profile().Events = []profile.Event{{Name: "cpu"}}
	f := b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: "f(a; b)\nx 7"})})
	b.Add(profile.Sample{Node: b.Node(0, f), Thread: b.Thread(1, 1, "a;b\n")})
	b.Add(profile.Sample{Node: 0, Thread: b.Thread(1, 1, "")})
	got := parse(t, written(t, b.Profile(), Options{Threads: true}))
	if !maps.Equal(got, map[string]int{`[a,b\n tid=1];f(a, b)\nx 7`: 1, `[a,b\n tid=1]`: 1}) {
		t.Errorf("got %v", got)
	}
	if got := parse(t, written(t, b.Profile(), Options{})); got["[no stack]"] != 1 {
		t.Errorf("got %v", got)
	}
}

func TestReadForeign(t *testing.T) {
	p, err := Read(strings.NewReader("# a comment\n\nmain;a b;c_[j] 3\nmain 2.0\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := parse(t, written(t, p, Options{Kinds: true})); !maps.Equal(got, map[string]int{"main;a b;c_[j]": 3, "main": 2}) {
		t.Errorf("got %v", got)
	}
	for _, bad := range []string{"main", "main;x y", "main;x -1", "main 1\nmain;cut", "x NaN", "x 1e99"} {
		if _, err := Read(strings.NewReader(bad)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("main;a;b_[j] 3\n[x tid=3];[truncated];c 4\n")
	f.Add(written(f, profiletest.New(profiletest.JavaStacks()[10:]), Options{Threads: true, Kinds: true}))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Read(strings.NewReader(text))
		if err != nil || len(p.Samples) > 10000 {
			return
		}
		o := Options{Threads: true, Kinds: true}
		once := written(t, p, o)
		back, err := Read(strings.NewReader(once))
		if err != nil {
			t.Fatalf("%q: %v", once, err)
		}
		if len(back.Samples) != len(p.Samples) {
			t.Fatalf("%d samples, was %d", len(back.Samples), len(p.Samples))
		}
	})
}

// TestReusedNumber checks that two threads that had the same number one after the other stay
// separate.
func TestReusedNumber(t *testing.T) {
	p := profiletest.Reused()
	if len(p.Threads) != 2 {
		t.Fatalf("threads %+v", p.Threads)
	}
	back, err := Read(strings.NewReader(written(t, p, Options{Threads: true})))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, s := range back.Samples {
		got[back.Threads[s.Thread].Name]++
	}
	if len(back.Threads) != 2 || got["first"] != 2 || got["second"] != 3 || back.Threads[0].TID != 12 || back.Threads[1].TID != 12 {
		t.Errorf("read back are %v of threads %+v", got, back.Threads)
	}
}

// TestManySamples reads more samples than are kept one by one: the rest is added up by stack and
// thread, and nothing is lost.
func TestManySamples(t *testing.T) {
	want := map[string]uint64{}
	var b strings.Builder
	for i, n := range []uint64{maxUnfolded - 1, 1, 1, 3, 1 << 61, 1, 5} {
		line := fmt.Sprintf("[t%d tid=%d];a;b%d", i%2, i%2, i%3)
		fmt.Fprintf(&b, "%s %d\n", line, n)
		want[line] += n
	}
	for range 3 {
		b.WriteString("[t0 tid=0];a;b0 1\n")
		want["[t0 tid=0];a;b0"]++
	}
	p, err := Read(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, s := range p.Samples {
		th := p.Threads[s.Thread]
		leaf := p.Funcs[p.Frames[p.Nodes[s.Node].Frame].Func].Name
		got[fmt.Sprintf("[%s tid=%d];a;%s", th.Name, th.TID, leaf)] += s.Weight
	}
	if !maps.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	if len(p.Samples) > maxUnfolded+6 || !strings.Contains(strings.Join(p.Meta.Notes, " "), "too many to count one by one") {
		t.Errorf("%d samples, notes %q", len(p.Samples), p.Meta.Notes)
	}
	if _, err := Read(strings.NewReader(strings.Repeat(fmt.Sprintf("a;b %d\n", uint64(1)<<62), 5))); !errors.Is(err, errTooMuch) {
		t.Errorf("counts beyond 2^64: %v", err)
	}
}

// A line without an end is not read to its end, and the error says which line it is.
func TestLongLine(t *testing.T) {
	long := io.MultiReader(strings.NewReader("a;b 1\n\n"), strings.NewReader(strings.Repeat("x", maxLine+1)))
	const want = "read collapsed stacks: line 3 is longer than 16 MiB, the most that candid takes for a stack"
	if _, err := Read(long); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
