package push

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	google "github.com/google/pprof/profile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// pushed is a profile that a server got.
type pushed struct {
	labels  map[string]string
	profile *google.Profile
}

// fields calls f for each field of a message.
func fields(t testing.TB, b []byte, f func(field int, value []byte)) {
	t.Helper()
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		m := protowire.ConsumeFieldValue(num, typ, b)
		if m < 0 {
			t.Fatal(protowire.ParseError(m))
		}
		value := b[:m]
		if typ == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(b)
		}
		f(int(num), value)
		b = b[m:]
	}
}

// pushRequest decodes the body of a request to Pyroscope.
func pushRequest(t testing.TB, body []byte) []pushed {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var out []pushed
	fields(t, b, func(_ int, series []byte) {
		one := pushed{labels: map[string]string{}}
		fields(t, series, func(field int, value []byte) {
			var name, text string
			fields(t, value, func(n int, v []byte) {
				switch {
				case field == seriesLabels && n == labelName:
					name = string(v)
				case field == seriesLabels && n == labelValue:
					text = string(v)
				case field == seriesSamples && n == rawProfile:
					if one.profile, err = google.ParseUncompressed(v); err != nil {
						t.Fatal(err)
					}
				}
			})
			if field == seriesLabels {
				one.labels[name] = text
			}
		})
		out = append(out, one)
	})
	return out
}

// pyroscope is a server that keeps what it gets.
type pyroscope struct {
	t    testing.TB
	mu   sync.Mutex
	got  []pushed
	ids  map[string]int // how often a stack with its value arrived
	head http.Header
}

func (s *pyroscope) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.URL.Path != "/push.v1.PusherService/Push" || r.Header.Get("Content-Type") != "application/proto" || r.Header.Get("Content-Encoding") != "gzip" {
		s.t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
	}
	list := pushRequest(s.t, body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(list) != 1 {
		s.t.Errorf("%d series in one request", len(list))
	}
	s.head = r.Header
	s.got = append(s.got, list...)
	w.Header().Set("Content-Type", "application/proto")
}

// sumsOf returns the weight of each stack, by the names of its functions, of a sample type.
func sumsOf(t testing.TB, sampleType string, list ...pushed) map[string]int64 {
	t.Helper()
	sums := map[string]int64{}
	for _, one := range list {
		at := slices.IndexFunc(one.profile.SampleType, func(v *google.ValueType) bool { return v.Type == sampleType })
		if at < 0 {
			continue
		}
		for _, s := range one.profile.Sample {
			var names []string
			for _, l := range s.Location {
				for _, line := range l.Line {
					names = append(names, line.Function.Name)
				}
			}
			sums[strings.Join(names, " < ")] += s.Value[at]
		}
	}
	return sums
}

// ours returns the same of a profile's event.
func ours(p *profile.Profile, event int) map[string]int64 {
	sums := map[string]int64{}
	p.Each(func(s *profile.Sample, _ uint64) {
		if int(s.Event) != event {
			return
		}
		var names []string
		for n := p.BeforeSkid(s.Node); n != profile.RootNode; n = p.Nodes[n].Parent {
			names = append(names, p.Funcs[p.Frames[p.Nodes[n].Frame].Func].Name)
		}
		sums[strings.Join(names, " < ")] += int64(s.Weight)
	})
	return sums
}

// same compares sums to the nanosecond.
func same(t testing.TB, got, want map[string]int64) {
	t.Helper()
	for stack, w := range want {
		if g := got[stack]; g != w {
			t.Errorf("%d ns instead of %d of %s", g, w, stack)
		}
	}
	for stack, g := range got {
		if _, ok := want[stack]; !ok {
			t.Errorf("%d ns of a stack that was not sampled: %s", g, stack)
		}
	}
}

func java(at time.Time) *profile.Profile {
	p := profiletest.Java()
	p.Meta.Start, p.Meta.Duration = at, 10*time.Second
	return p
}

// TestPyroscope: what the server gets are the sums of what was sampled, with the labels that it needs
// and no others.
func TestPyroscope(t *testing.T) {
	server := &pyroscope{t: t}
	web := httptest.NewServer(server)
	defer web.Close()
	var log []string
	p, err := New(Config{Type: "pyroscope", URL: web.URL, Tenant: "team", Buffer: Buffer{Dir: t.TempDir()}},
		Options{Labels: map[string]string{"host.name": "box", "env": "prod"}, Log: func(line string) { log = append(log, line) }})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(-20 * time.Second)
	sampled := java(start)
	for i := range 2 {
		one := java(start.Add(time.Duration(i) * 10 * time.Second))
		if err := p.Add(Window{Service: "shop", Labels: map[string]string{"container.id": "abc"}, Profile: one}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(server.got) != len(sampled.Events) || len(log) > 0 {
		t.Fatalf("%d profiles, want %d; %q", len(server.got), len(sampled.Events), log)
	}
	want := ours(sampled, 0)
	for stack := range want {
		want[stack] *= 2
	}
	same(t, sumsOf(t, "cpu", server.got...), want)
	one := server.got[0]
	if got, want := fmt.Sprint(one.labels), "map[__name__:process_cpu container_id:abc env:prod host_name:box service_name:shop]"; got != want {
		t.Errorf("labels %s, want %s", got, want)
	}
	if server.head.Get("X-Scope-OrgID") != "team" {
		t.Errorf("the tenant is %q", server.head.Get("X-Scope-OrgID"))
	}
	if one.profile.TimeNanos != start.UnixNano() || one.profile.DurationNanos != int64(20*time.Second) {
		t.Errorf("the profile is from %d, %d ns long", one.profile.TimeNanos, one.profile.DurationNanos)
	}
	if len(one.profile.Comments) > 0 {
		t.Errorf("comments %q", one.profile.Comments)
	}
	for _, s := range one.profile.Sample {
		if len(s.Label)+len(s.NumLabel) > 0 {
			t.Fatalf("a sample with labels %v %v", s.Label, s.NumLabel)
		}
	}
	if s := p.Stats(); s.Sent != uint64(len(server.got)) || s.Unsent != 0 || len(s.Dropped)+len(s.Retried)+len(s.Ambiguous) > 0 {
		t.Errorf("%+v", s)
	}
}
