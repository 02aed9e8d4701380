package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
)

// TestPictures takes screenshots for people into the directory that CANDID_PICTURES names: of every
// tab in both themes, at 200 % and in a narrow window. The recording is the one that
// CANDID_RECORDING names (of two, separated like PATH, the comparison) or a made-up one.
func TestPictures(t *testing.T) {
	dir := os.Getenv("CANDID_PICTURES")
	if dir == "" {
		t.Skip("set CANDID_PICTURES to a directory to have pictures taken")
	}
	s, first := served(t), ""
	if files := filepath.SplitList(os.Getenv("CANDID_RECORDING")); len(files) > 0 {
		var list []*profile.Profile
		for _, file := range files {
			p, err := format.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, p)
		}
		if len(list) == 2 {
			first = Compared + "&"
			if err := s.Compare([2]string{filepath.Base(files[0]), filepath.Base(files[1])}, list[0], list[1], nil); err != nil {
				t.Fatal(err)
			}
		} else {
			r, err := Open(filepath.Base(files[0]), list[0])
			if err != nil {
				t.Fatal(err)
			}
			s = served(t, r)
		}
	} else {
		s = served(t, busy(t, 4000, 40_000))
	}
	b := openView(t, s)
	shot := func(name, hash, script string) {
		if first != "" {
			hash = first + strings.TrimPrefix(hash, "#")
		}
		b.usual(hash)
		// Some things are drawn later than what was asked for: lanes, the hottest method, the key
		// of colours.
		b.Until("(document.querySelector('.hottest').textContent !== '' || candid.compared()) && performance.now() > 1000")
		if script != "" {
			b.Eval(script, nil)
			b.settled()
		}
		b.Eval("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(0))))", nil)
		b.Picture(filepath.Join(dir, name+".png"))
	}
	// Other views than the usual ones: name=hash, separated by spaces.
	if views := os.Getenv("CANDID_PICTURES_VIEWS"); views != "" {
		for _, v := range strings.Fields(views) {
			name, hash, _ := strings.Cut(v, "=")
			if b.Size(1280, 720, 1); strings.HasSuffix(name, "-twice") {
				b.Size(640, 400, 2)
			} else if strings.HasSuffix(name, "-800") {
				b.Size(800, 720, 1)
			}
			b.Dark(strings.HasSuffix(name, "-dark"))
			shot(name, hash, "")
		}
		return
	}
	all := func(suffix string) {
		for _, tab := range []string{"flame", "tree", "methods", "callers", "timeline", "heatmap", "threads", "events", "about"} {
			shot(tab+suffix, "#tab="+tab, "")
		}
		shot("export"+suffix, "#tab=methods", "document.querySelector('.holder > button').click()")
	}
	b.Size(1280, 720, 1)
	all("")
	b.Dark(true)
	all("-dark")
	b.Dark(false)
	b.Size(640, 400, 2) // 200 %
	all("-twice")
	b.Size(400, 800, 1)
	all("-narrow")
	b.quiet()
}
