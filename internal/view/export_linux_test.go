package view

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/candid-profiler/candid/internal/chromium"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
)

// TestPageExports saves what filters leave, by the page's menu, in every format: each file holds
// what `candid report --json` says of the same filters.
func TestPageExports(t *testing.T) {
	t.Parallel()
	r := busy(t, 1500, 12_000)
	b := openView(t, served(t, r))
	end := time.Duration(r.end)
	whole := func(data []byte) (report.Count, error) {
		p, err := format.Decode(bytes.NewReader(data))
		if err != nil {
			return report.Count{}, err
		}
		return report.Count(p.Select(profile.Filter{}).All), nil
	}
	// The total of a file of each format. If the format counts only samples, or only weights, the
	// other is 0.
	sums := map[string]func(data []byte) (report.Count, error){
		"jfr": whole, "pprof": whole, "speedscope": whole,
		"collapsed": func(data []byte) (n report.Count, err error) {
			for line := range strings.Lines(string(data)) {
				line = strings.TrimSpace(line)
				v, err := strconv.ParseUint(line[strings.LastIndexByte(line, ' ')+1:], 10, 64)
				if err != nil {
					return n, err
				}
				n.Samples += v
			}
			return n, nil
		},
		"firefox": func(data []byte) (n report.Count, err error) {
			var file struct {
				Threads []struct {
					Samples struct {
						Length     uint64
						Weight     []float64
						WeightType string
					}
				}
			}
			err = json.Unmarshal(data, &file)
			for _, t := range file.Threads {
				n.Samples += t.Samples.Length
				for _, w := range t.Samples.Weight {
					if t.Samples.WeightType == "tracing-ms" {
						w *= 1e6
					}
					n.Weight += uint64(w + 0.5)
				}
			}
			return n, err
		},
		"otlp": func(data []byte) (n report.Count, err error) {
			var file otlp.ProfilesData
			err = proto.Unmarshal(data, &file)
			for _, rp := range file.ResourceProfiles {
				for _, sp := range rp.ScopeProfiles {
					for _, p := range sp.Profiles {
						for _, s := range p.Samples {
							n.Samples += uint64(len(s.Values))
							for _, v := range s.Values {
								n.Weight += uint64(v)
							}
						}
					}
				}
			}
			return n, err
		},
		"json": func(data []byte) (report.Count, error) {
			var rep report.Report
			err := json.Unmarshal(data, &rep)
			return rep.All, err
		},
		"text": func(data []byte) (n report.Count, err error) {
			m := regexp.MustCompile(`([\d,]+) samples`).FindSubmatch(data)
			if m == nil {
				return n, fmt.Errorf("it does not say how many samples: %.200s", data)
			}
			n.Samples, err = strconv.ParseUint(strings.ReplaceAll(string(m[1]), ",", ""), 10, 64)
			return n, err
		},
	}
	file := chromium.Open(t, 1280, 800)
	sums["html"] = func(data []byte) (report.Count, error) {
		name := filepath.Join(t.TempDir(), "saved.html")
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return report.Count{}, err
		}
		file.Show("file://"+name, "document.documentElement?.dataset.ready")
		var s struct{ Samples, Total float64 }
		file.Eval("candid.sums()", &s)
		return report.Count{Samples: uint64(s.Samples), Weight: uint64(s.Total)}, nil
	}

	for _, c := range []struct {
		hash   string
		filter profile.Filter
	}{
		{"", profile.Filter{}},
		{fmt.Sprintf("#tab=methods&from=%d&to=%d&states=running,sleeping&ignore=NioEventLoop", end/5, end*4/5), profile.Filter{
			From: end / 5, To: end * 4 / 5, Ignore: regexp.MustCompile("NioEventLoop"), States: profile.StateSet(0).With(profile.StateRunning).With(profile.StateSleeping)}},
		{"#event=1&focus=HashMap", profile.Filter{Event: 1, Focus: regexp.MustCompile("HashMap")}},
	} {
		b.open(c.hash)
		want := b.same(c.hash, c.filter).Shown
		if want.Samples == 0 {
			t.Fatalf("%q leaves nothing", c.hash)
		}
		b.Eval("document.querySelector('.holder > button').click()", nil)
		var offered []string
		b.Eval("[...document.querySelectorAll('.holder [role=menuitem]')].map(a => a.href)", &offered)
		if len(offered) != len(exports) {
			t.Errorf("%d formats are offered, there are %d", len(offered), len(exports))
		}
		for _, href := range offered {
			to := href[strings.LastIndex(href, "format=")+len("format="):]
			var raw string
			b.Eval(fmt.Sprintf(`fetch(%s).then(r => r.blob()).then(b => new Promise(done => { const f = new FileReader(); f.onload = () => done(f.result.split(",")[1]); f.readAsDataURL(b); }))`, quoted(href)), &raw)
			data, err := base64.StdEncoding.DecodeString(raw)
			if err != nil {
				t.Fatal(err)
			}
			read := sums[to]
			if read == nil {
				t.Errorf("nothing reads %q", to)
				continue
			}
			got, err := read(data)
			if err != nil {
				t.Errorf("%q as %s: %v", c.hash, to, err)
				continue
			}
			expected := want
			switch {
			case to == "text" || to == "collapsed":
				expected.Weight = 0
			case to == "speedscope" || to == "otlp":
				expected.Samples, got.Samples = 0, 0 // equal stacks are merged, all or those that follow each other
			}
			if got != expected {
				t.Errorf("%q as %s: the file holds %+v, the report says %+v", c.hash, to, got, expected)
			}
		}
		b.Eval("document.querySelector('.holder > button').click()", nil)
	}
	for f := range exports {
		if !slices.Contains(exportNames(b), f) {
			t.Errorf("%s is not offered", f)
		}
	}
	b.quiet()
}

// exportNames returns the formats that the page offers.
func exportNames(b *viewPage) (list []string) {
	b.t.Helper()
	b.Eval("(document.querySelector('.holder > button').click(), [...document.querySelectorAll('.holder [role=menuitem]')].map(a => new URL(a.href).searchParams.get('format')))", &list)
	return list
}
