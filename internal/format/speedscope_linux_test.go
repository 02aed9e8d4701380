package format

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/chromium"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// row is a line of speedscope's table, which prints values as "2,400 (24%)".
type row struct{ total, self float64 }

var shares = regexp.MustCompile(`\((<?)([0-9.]+)%\)`)

// table reads the page's table of functions.
func table(t *testing.T, text string) map[string]row {
	t.Helper()
	_, text, ok := strings.Cut(text, "Symbol Name\n")
	if !ok {
		t.Fatalf("no table in %q", text)
	}
	var cells []string
	for _, cell := range strings.Split(text, "\n") {
		if cell = strings.TrimSpace(cell); cell != "" {
			cells = append(cells, cell)
		}
	}
	share := func(s string) float64 {
		m := shares.FindStringSubmatch(s)
		if m == nil {
			t.Fatalf("no share in %q", s)
		}
		if m[1] != "" {
			return 0
		}
		f, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	rows := map[string]row{}
	for ; len(cells) >= 3; cells = cells[3:] {
		rows[cells[2]] = row{share(cells[0]), share(cells[1])}
	}
	return rows
}

// shownAs reports whether a share was rounded to two digits, as speedscope does.
func shownAs(share, shown float64) bool {
	if share == 0 || shown == 0 {
		return share < 0.01 && shown < 0.01
	}
	half := math.Pow(10, math.Floor(math.Log10(share))-1) / 2
	return math.Abs(share-shown) <= half*1.001
}

// TestSpeedscopeReadsThem: speedscope's published package, in a browser, shows the same self and
// total of every function as candid's own method list.
func TestSpeedscopeReadsThem(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what starts a browser")
	}
	app, err := filepath.Abs("../../web/node_modules/speedscope/dist/release/index.html")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(app); err != nil {
		fixture.Missing(t, app)
	}
	p := profiletest.Java()
	for _, c := range []struct {
		file   string
		filter profile.Filter
	}{
		{"java.collapsed", profile.Filter{}},
		// One profile for each thread; the first is shown.
		{"java.speedscope.json", profile.Filter{Thread: regexp.MustCompile("^http-worker-1$")}},
	} {
		t.Run(c.file, func(t *testing.T) {
			kind, err := ForPath(c.file, "")
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := Write(&out, kind, p, Options{}); err != nil {
				t.Fatal(err)
			}
			script := filepath.Join(t.TempDir(), "profile.js")
			load := fmt.Sprintf("speedscope.loadFileFromBase64(%q, %q)", c.file, base64.StdEncoding.EncodeToString(out.Bytes()))
			if err := os.WriteFile(script, []byte(load), 0o600); err != nil {
				t.Fatal(err)
			}
			b := chromium.Open(t, 1600, 4000) // all rows fit on the page
			b.Show("file://"+app+"#localProfilePath="+script, "document.body && document.body.innerText.includes('Sandwich')")
			b.Key("3")
			b.Until("document.body.innerText.includes('Symbol Name\\n')")
			got := table(t, b.Text("document.body.innerText"))
			sel := p.Select(c.filter)
			n := 0
			for _, m := range sel.List() {
				name := sel.Func(m.Method).Name
				want := row{100 * float64(m.Total.Weight) / float64(sel.Chosen.Weight), 100 * float64(m.Self.Weight) / float64(sel.Chosen.Weight)}
				g, ok := got[name]
				if !ok {
					t.Errorf("%s is not shown", name)
					continue
				}
				if n++; !shownAs(want.total, g.total) || !shownAs(want.self, g.self) {
					t.Errorf("%s: %v, want %v", name, g, want)
				}
			}
			if n < 10 {
				t.Errorf("%d functions compared", n)
			}
		})
	}
}
