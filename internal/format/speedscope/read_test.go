package speedscope

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

// told returns a profile's samples as text, with everything that the format keeps.
func told(p *profile.Profile) []string {
	var out []string
	for _, s := range p.Samples {
		t := p.Threads[s.Thread]
		call := ""
		if s.Syscall > 0 {
			call = p.Syscalls[s.Syscall]
		}
		line := fmt.Sprintf("%v %s/%s/%s %d/%d %d %d %v %v %s", p.Events[s.Event], t.Name, t.OSName, t.Kind, t.PID, t.TID, s.Time, s.Weight, s.End, s.State, call)
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			f := p.Frames[p.Nodes[n].Frame]
			fn := p.Funcs[f.Func]
			line += fmt.Sprintf(" %s|%s|%s|%d|%v|%v", fn.Name, fn.Module, fn.File, f.Line, f.Kind, f.Prov)
		}
		out = append(out, line)
	}
	return out
}

func TestReadsBackWhatItWrites(t *testing.T) {
	p := profiletest.Java()
	p.Meta.Start, p.Meta.Duration, p.Losses.Lost = time.Unix(1700000000, 123456789).UTC(), 12345678901, 7
	p.Meta.Notes = []string{"a note with \"quotes\" and\nlines"}
	p.Syscalls = []string{"", "futex", "read"}
	for i := range p.Samples {
		if s := &p.Samples[i]; s.Thread%2 == 0 { // for the others it is not known
			s.State, s.Syscall = profile.State(i%profile.NumStates), uint16(i%3)
		}
	}
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	if !Is(b.Bytes()[:4096]) {
		t.Error("it is not recognised")
	}
	back, err := Read(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	// The file has one thread after the other.
	got, want := told(back), told(p)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("%d samples, want %d; sample %d:\n got %s\nwant %s", len(got), len(want), i, got[i], want[i])
			}
		}
		t.Fatalf("%d samples, want %d", len(got), len(want))
	}
	m := back.Meta
	if !m.Start.Equal(p.Meta.Start) || m.Duration != p.Meta.Duration || m.Command != p.Meta.Command || back.Losses.Lost != 7 || !slices.Equal(m.Notes, p.Meta.Notes) {
		t.Errorf("%+v", m)
	}
	var again bytes.Buffer
	if err := Write(&again, back); err != nil {
		t.Fatal(err)
	}
	twice, err := Read(&again)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(told(twice), told(back)) {
		t.Error("read twice it differs")
	}
}

const schemaKey = `"$schema":"https://www.speedscope.app/file-format-schema.json",`

func TestReadForeign(t *testing.T) {
	const frames = `"shared":{"frames":[{"name":"main"},{"name":"f","file":"f.py","line":3,"col":1},{"name":"\u0067"}]}`
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"sampled, with seconds", `{` + schemaKey + `"exporter":"py-spy",` + frames + `,"profiles":[{"type":"sampled","name":"Thread 1 (tid 42) x","unit":"seconds","startValue":0.0,"endValue":0.5,` +
			`"samples":[[0,1],[0],[0,1,2]],"weights":[0.1,0.2,2e-1]}]}`,
			[]string{"time Thread 1/42 0 100000000 main;f@3", "time Thread 1/42 100000000 200000000 main", "time Thread 1/42 300000000 200000000 main;f@3;g"}},
		{"evented, the frames last", `{"profiles":[{"events":[{"type":"O","frame":0,"at":10},{"type":"O","frame":1,"at":12},{"type":"C","frame":1,"at":15.4},{"type":"C","frame":0,"at":16},` +
			`{"type":"O","frame":2,"at":30},{"type":"C","frame":2,"at":31}],"type":"evented","name":"t","unit":"microseconds","startValue":10,"endValue":40}],` + schemaKey + frames + `}`,
			[]string{"time t/0 0 2000 main", "time t/0 2000 3400 main;f@3", "time t/0 5400 600 main", "time t/0 20000 1000 g"}},
		{"several, of several units", `{` + schemaKey + frames + `,"other":{"a":[1,{"b":null}]},"profiles":[` +
			`{"type":"sampled","name":"a","unit":"none","startValue":0,"endValue":2,"samples":[[0],[]],"weights":[1,1]},` +
			`{"type":"sampled","name":"b","unit":"bytes","startValue":0,"endValue":2,"samples":[[1]],"weights":[4096]}]}`,
			[]string{"samples a/0 0 1 main", "samples a/0 0 1 ", "bytes b/0 0 4096 f@3"}},
		{"nothing", `{}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Read(strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range p.Samples {
				var names []string
				for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
					f := p.Frames[p.Nodes[n].Frame]
					name := p.Funcs[f.Func].Name
					if f.Line > 0 {
						name += fmt.Sprintf("@%d", f.Line)
					}
					names = append(names, name)
				}
				slices.Reverse(names)
				th := p.Threads[s.Thread]
				got = append(got, fmt.Sprintf("%s %s/%d %d %d %s", p.Events[s.Event].Name, th.Name, th.TID, s.Time, s.Weight, strings.Join(names, ";")))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestWrong(t *testing.T) {
	head := `{` + schemaKey + `"shared":{"frames":[{"name":"a"}]},"profiles":[`
	for name, text := range map[string]string{
		"no object":              `[]`,
		"cut off":                head,
		"a frame that is not":    head + `{"type":"sampled","name":"a","unit":"none","samples":[[1]],"weights":[1]}]}`,
		"weights are missing":    head + `{"type":"sampled","name":"a","unit":"none","samples":[[0],[0]],"weights":[1]}]}`,
		"another type":           head + `{"type":"x","name":"a","unit":"none"}]}`,
		"another unit":           head + `{"type":"sampled","name":"a","unit":"miles"}]}`,
		"not the innermost":      head + `{"type":"evented","name":"a","unit":"none","events":[{"type":"O","frame":0,"at":0},{"type":"C","frame":1,"at":1}]}]}`,
		"nothing to leave":       head + `{"type":"evented","name":"a","unit":"none","events":[{"type":"C","frame":0,"at":1}]}]}`,
		"a frame below nothing":  head + `{"type":"sampled","name":"a","unit":"none","samples":[[-1]],"weights":[1]}]}`,
		"a frame beyond numbers": head + `{"type":"sampled","name":"a","unit":"none","samples":[[99999999999999999999999]],"weights":[1]}]}`,
		"a state that is not":    head + `{"type":"sampled","name":"a","unit":"none","samples":[[0]],"weights":[1],"candid":{"event":0,"states":[["running",""]],"state":[1]}}]}`,
		"states are missing":     head + `{"type":"sampled","name":"a","unit":"none","samples":[[0],[0]],"candid":{"event":0,"states":[["running",""]],"state":[0]}}]}`,
		"not a number":           head + `{"type":"sampled","name":"a","unit":"none","samples":[[0]],"weights":[NaN]}]}`,
		"lists without end":      `{"x":` + strings.Repeat("[", 1000),
		"a string without end":   `{"` + strings.Repeat("x", 2<<20),
	} {
		_, err := Read(strings.NewReader(text))
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "read speedscope: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(strings.NewReader(head + `{"type":"x"}]}`)); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
}

func TestEndsOnlyOfOurs(t *testing.T) {
	for exporter, want := range map[string]walk.End{"candid 1": walk.EndTruncated, "py-spy": walk.EndComplete} {
		p, err := Read(strings.NewReader(`{"exporter":"` + exporter + `","shared":{"frames":[{"name":"[truncated]"},{"name":"a"}]},"profiles":[{"type":"sampled","name":"a","unit":"none","samples":[[0,1]]}]}`))
		if err != nil || p.Samples[0].End != want {
			t.Errorf("%s: %v, %v", exporter, err, p.Samples[0].End)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{` + schemaKey + `"profiles":[{"events":[{"type":"O","frame":0,"at":10},{"type":"C","frame":0,"at":12}],"type":"evented","name":"t","unit":"seconds"}],"shared":{"frames":[{"name":"a"}]}}`)
	f.Add(`{"exporter":"candid 1","shared":{"frames":[{"name":"a","kind":"C2","line":3}]},"profiles":[{"type":"sampled","name":"a","unit":"none","samples":[[0]],"weights":[1],"candid":{"event":0,"pid":1,"tid":2,"times":[3],"states":[["sleeping","futex"]],"state":[0]}}],"candid":{"events":[{"name":"cpu","unit":"nanoseconds","period":3}],"start":"5"}}`)
	var b bytes.Buffer
	if err := Write(&b, profiletest.New(profiletest.JavaStacks()[10:])); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Read(strings.NewReader(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Write(&out, p); err != nil {
			t.Fatal(err)
		}
		back, err := Read(&out)
		if err != nil {
			t.Fatal(err)
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
	var file bytes.Buffer
	if err := Write(&file, p); err != nil {
		t.Fatal(err)
	}
	back, err := Read(&file)
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

// TestSameNumberAndName checks that two threads that had the same number and name stay separate.
func TestSameNumberAndName(t *testing.T) {
	p := profiletest.Again()
	var file bytes.Buffer
	if err := Write(&file, p); err != nil {
		t.Fatal(err)
	}
	back, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	count := func(p *profile.Profile) (n []int) {
		by := map[uint32]int{}
		for _, s := range p.Samples {
			by[s.Thread]++
		}
		for _, k := range by {
			n = append(n, k)
		}
		slices.Sort(n)
		return n
	}
	if got, want := count(back), count(p); !slices.Equal(got, want) || len(want) != 3 {
		t.Errorf("threads have %v samples, want %v", got, want)
	}
}
