package symbol

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/walk"
)

// A file that is still being read when the recording has ended is used with what is there: its
// functions without lines, or nothing.
func TestGivenUp(t *testing.T) {
	path, at := buildC(t, "-g", "-O2")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := Open(f, Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, early := range []bool{true, false} {
		b := NewBudget(time.Hour, nil)
		n := NewNative(oneFile{path, "t"}, nil)
		n.Budget = b
		nf := &nativeFile{name: "t", coming: make(chan opened), early: make(chan opened, 1)} // it never comes
		if early {
			nf.early <- opened{f: file.withoutLines(), brief: true}
		}
		p, ok := n.loc.Locate(walk.Frame{PC: at["main"]})
		if !ok {
			t.Fatal("the file of main is not known")
		}
		if p.File == (fileid.ID{}) {
			p.File = n.unnumbered(p.Name)
		}
		n.files[p.File] = nf
		b.Hurry()
		b.GiveUp()
		b.GiveUp()
		fr := n.Resolve(walk.Frame{PC: at["main"], Kind: walk.KindNative}, nil)
		if len(fr) != 1 || (fr[0].Function == "main") != early || fr[0].Line != 0 || fr[0].NoName == early {
			t.Errorf("early %v: %+v", early, fr)
		}
		if note := b.Note(); !strings.Contains(note, "still being read") {
			t.Errorf("early %v: %q", early, note)
		}
	}
}

// Source lines are not read once reading symbols has taken too long, and not when the recording has
// ended; tables of symbols are not read where there is no room.
func TestOverBudget(t *testing.T) {
	path, at := buildC(t, "-g", "-O2")
	for name, c := range map[string]struct {
		b    *Budget
		says string
		line bool
	}{
		"none":    {nil, "", true},
		"enough":  {NewBudget(time.Hour, func(uint64) bool { return true }), "", true},
		"no time": {NewBudget(0, nil), "CPU time", false},
		"ended":   {ended(), "had ended", false},
	} {
		n := NewNative(oneFile{path, "t"}, nil)
		n.Budget = c.b
		fr := n.Resolve(walk.Frame{PC: at["main"], Kind: walk.KindNative}, nil)
		if last := fr[len(fr)-1]; last.Function != "main" || (last.Line != 0) != c.line {
			t.Errorf("%s: %+v", name, last)
		}
		n.Close()
		if c.b != nil && !strings.Contains(c.b.Note(), c.says) || c.b != nil && c.says == "" && c.b.Note() != "" {
			t.Errorf("%s: %q", name, c.b.Note())
		}
		if name == "enough" && c.b.Spent() <= 0 {
			t.Error("reading took no CPU time")
		}
	}
}

func ended() *Budget {
	b := NewBudget(time.Hour, nil)
	b.Hurry()
	return b
}

// The maps of all processes share one budget of memory.
func TestPerfMapsShareRoom(t *testing.T) {
	const line = "7f0000000000 10 a function with a name\n"
	file := filepath.Join(t.TempDir(), "perf.map")
	if err := os.WriteFile(file, []byte(strings.Repeat(line, 3<<14)), 0o600); err != nil {
		t.Fatal(err)
	}
	left := uint64(4 * perfRoom)
	b := NewBudget(time.Hour, func(bytes uint64) bool {
		if bytes > left {
			return false
		}
		left -= bytes
		return true
	})
	read := 0
	for i := range 3 {
		p := perfMap{open: func() (*os.File, error) { return os.Open(file) }, budget: func() *Budget { return b }}
		p.find(0x7f0000000000, time.Now())
		read += len(p.all)
		if (p.problem != nil) != (i > 0) {
			t.Errorf("map %d: %v", i, p.problem)
		}
	}
	if read > 4<<14 || read < 3<<14 {
		t.Errorf("%d lines of three maps were read", read)
	}
	if !strings.Contains(b.Note(), "memory") {
		t.Errorf("%q", b.Note())
	}
}
