package format

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// skidding returns a profile in which most samples came late, where the kernel enables interrupts.
func skidding() *profile.Profile {
	b := profile.NewBuilder()
	th := b.NewThread(7, 7, "main")
	frame := func(name, module string, kind walk.Kind, flags walk.FrameFlags) uint32 {
		return b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: name, Module: module}), BCI: -1, Kind: kind, Flags: flags})
	}
	main := b.Node(profile.RootNode, frame("main", "prog", walk.KindNative, 0))
	read := b.Node(main, frame("vfs_read", "[kernel]", walk.KindKernel, 0))
	unlock := b.Node(read, frame("_raw_spin_unlock_irq", "[kernel]", walk.KindKernel, walk.Skid))
	enable := b.Node(unlock, frame("pvm_irq_enable", "[kernel]", walk.KindKernel, walk.Skid))
	for i, node := range []uint32{main, read, unlock, enable, enable, enable} {
		b.Add(profile.Sample{Time: uint64(i + 1), Weight: 1, Thread: th, Node: node})
	}
	p := b.Finish()
	p.Meta.Version = "test"
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1}}
	return p
}

// Every format counts a sample that came late for the function before, as reports do. Formats that
// can be read and can keep it retain where it came.
func TestSkid(t *testing.T) {
	lists := func(p *profile.Profile, raw bool) (out string) {
		s := p.Select(profile.Filter{Raw: raw})
		for _, m := range s.List() {
			if m.Self.Samples > 0 {
				out += s.Func(m.Method).Name + strings.Repeat("!", int(m.Self.Samples)) + " "
			}
		}
		return out
	}
	const shown = "vfs_read!!!!! main! "
	was := lists(skidding(), true)
	if got := lists(skidding(), false); got != shown {
		t.Fatalf("the profile has %q", got)
	}
	for name, keeps := range map[string]bool{"jfr": true, "jfr.gz": true, "jfr.zst": true, "pprof": true, "speedscope": true, "collapsed": false} {
		var b bytes.Buffer
		if err := Write(&b, name, skidding(), Options{}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Read(path)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := lists(p, false); got != shown {
			t.Errorf("%s, read again, has %q, want %q", name, got, shown)
		}
		if got := lists(p, true); keeps && got != was || !keeps && got != shown {
			t.Errorf("%s, read again, has %q raw, of %q", name, got, was)
		}
	}
	for name, marks := range map[string]string{"collapsed": "", "firefox": "", "otlp": "candid.skid", "speedscope": `"skid":[[`} {
		var b bytes.Buffer
		if err := Write(&b, name, skidding(), Options{}); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if !strings.Contains(text, marks) {
			t.Errorf("%s does not mark what came late", name)
		}
		if name == "collapsed" && text != "main 1\nmain;vfs_read 5\n" {
			t.Errorf("collapsed is %q", text)
		}
		p := skidding()
		p.ShowSkid()
		b.Reset()
		if err := Write(&b, name, p, Options{}); err != nil {
			t.Fatal(err)
		}
		if raw := b.String(); raw == text || !strings.Contains(raw, "pvm_irq_enable") || strings.Contains(raw, "candid.skid") || strings.Contains(raw, `"skid"`) {
			t.Errorf("%s, raw: %q", name, raw)
		}
	}
}
