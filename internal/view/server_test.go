package view

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
)

// served starts a server of recordings, which ends with the test.
func served(t testing.TB, recordings ...*Recording) *Server {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(l, recordings...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Error("the server does not end")
		}
	})
	return s
}

// get requests an address of the server, with a Host if host is not "".
func get(t testing.TB, method, url, host string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

// TestWhoMayAsk tries every way in that must be closed.
func TestWhoMayAsk(t *testing.T) {
	s := served(t, busy(t, 500, 2000))
	other := served(t, busy(t, 500, 2000))
	base := strings.TrimSuffix(s.URL(), s.token+"/")
	if s.token == other.token || len(s.token) != 32 {
		t.Errorf("tokens %q and %q", s.token, other.token)
	}
	paths := []string{"", "view.js", "view.css", "recordings", "0/tree", "0/counts", "0/overview", "0/heatmap?cell=20000000&rows=50", "0/lanes?lanes=0", "0/about", "0/export?format=collapsed"}
	for _, path := range paths {
		res, body := get(t, "GET", s.URL()+path, "")
		if res.StatusCode != http.StatusOK || len(body) == 0 {
			t.Errorf("%s: %s", path, res.Status)
		}
		if _, port, _ := strings.Cut(s.hosts[0], ":"); true {
			if res, _ := get(t, "GET", s.URL()+path, "localhost:"+port); res.StatusCode != http.StatusOK {
				t.Errorf("%s for localhost: %s", path, res.Status)
			}
			for _, host := range []string{"evil.example:" + port, "evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:" + port, "[::1]:" + port} {
				res, body := get(t, "GET", s.URL()+path, host)
				if res.StatusCode != http.StatusMisdirectedRequest || bytes.Contains(body, []byte("HashMap")) {
					t.Errorf("%s for host %s: %s", path, host, res.Status)
				}
			}
		}
		for _, token := range []string{"", other.token, s.token[:31], s.token + "0", strings.ToUpper(s.token) + "x", "%00", ".."} {
			if res, _ := get(t, "GET", base+token+"/"+path, ""); res.StatusCode == http.StatusOK {
				t.Errorf("%s with token %q is answered", path, token)
			}
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
			if res, _ := get(t, method, s.URL()+path, ""); res.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %s", method, path, res.Status)
			}
		}
		if res.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s may be read by other sites", path)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		csp := res.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy %q lacks %s", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
			t.Errorf("%s: the policy is %q", path, csp)
		}
	}
	for _, path := range []string{"1/tree", "-1/tree", "x/tree", "0/", "0/nothing", "0/tree/x", "favicon.ico", "../view.js"} {
		if res, _ := get(t, "GET", s.URL()+path, ""); res.StatusCode == http.StatusOK {
			t.Errorf("%s is answered", path)
		}
	}
	if res, body := get(t, "GET", s.URL()+"0/counts?focus=(", ""); res.StatusCode != http.StatusBadRequest || !bytes.Contains(body, []byte("missing closing )")) {
		t.Errorf("a bad expression: %s %s", res.Status, body)
	}
	if host, _, _ := net.SplitHostPort(s.listener.Addr().String()); host != "127.0.0.1" {
		t.Errorf("it listens on %s", host)
	}
}

// TestListen takes the next free port.
func TestListen(t *testing.T) {
	first, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	a, b := first.Addr().(*net.TCPAddr).Port, second.Addr().(*net.TCPAddr).Port
	if a == b {
		t.Errorf("both on %d", a)
	}
	if l, err := Listen(a); err == nil {
		l.Close()
		t.Error("a port that is taken was taken")
	} else if !strings.Contains(err.Error(), "--port") {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

// TestMessage reads a message back by its description.
func TestMessage(t *testing.T) {
	m := &message{}
	m.u8("a", 3, func(i int) uint8 { return uint8(i + 1) })
	m.f64("b", 2, func(i int) float64 { return float64(i) + 0.5 })
	m.i32("c", 1, func(int) int32 { return -1 })
	m.f32("d", []float32{1})
	data, err := m.finish("head")
	if err != nil {
		t.Fatal(err)
	}
	n := int(binary.LittleEndian.Uint32(data))
	if (4+n)%8 != 0 || len(data)%8 != 0 {
		t.Errorf("columns begin at %d of %d", 4+n, len(data))
	}
	if want := `{"head":"head","columns":[{"name":"a","type":"u8","length":3,"at":0},{"name":"b","type":"f64","length":2,"at":8},{"name":"c","type":"i32","length":1,"at":24},{"name":"d","type":"f32","length":1,"at":32}]}`; strings.TrimRight(string(data[4:4+n]), " ") != want {
		t.Errorf("it is described as %s", data[4:4+n])
	}
	body := data[4+n:]
	if !bytes.Equal(body[:3], []byte{1, 2, 3}) || binary.LittleEndian.Uint64(body[16:]) != 0x3ff8000000000000 || binary.LittleEndian.Uint32(body[24:]) != 0xffffffff {
		t.Errorf("the columns are % x", body)
	}
}

// A message that is made while it is sent is the same as one that is made before.
func TestMessageSent(t *testing.T) {
	fill := func(m *message) *message {
		m.u8("a", 70_001, func(i int) uint8 { return uint8(i) })
		m.u8("none", 0, func(int) uint8 { return 0 })
		m.f64("b", 3, func(i int) float64 { return float64(i) + 0.5 })
		m.i32("c", 20_001, func(i int) int32 { return int32(i - 5) })
		m.f32("d", []float32{1, 2})
		return m
	}
	want, err := fill(&message{}).finish("head")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if err := fill(&message{later: true}).send(w, "head"); err != nil {
		t.Fatal(err)
	}
	if got := w.Body.Bytes(); !bytes.Equal(got, want) || w.Header().Get("Content-Length") != strconv.Itoa(len(want)) {
		t.Errorf("%d bytes, said to be %s, want %d", len(got), w.Header().Get("Content-Length"), len(want))
	}
	if fill(&message{later: true}).send(httptest.NewRecorder(), func() {}) == nil {
		t.Error("what cannot be encoded was sent")
	}
}

// The tree is sent as it is made.
func TestTreeSent(t *testing.T) {
	r := busy(t, 1000, 5000)
	for _, v := range []url.Values{{}, {"merge": {"^f"}}} {
		want, err := treeMessage(t.Context(), r, v)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if _, err := r.about(w, httptest.NewRequest(http.MethodGet, "/tree?"+v.Encode(), nil), "tree"); err != errSent {
			t.Fatal(err)
		}
		if !bytes.Equal(w.Body.Bytes(), want) {
			t.Errorf("%v: %d bytes, want %d that are the same", v, w.Body.Len(), len(want))
		}
	}
	w := httptest.NewRecorder()
	if _, err := r.about(w, httptest.NewRequest(http.MethodGet, "/tree?merge=(", nil), "tree"); !errors.Is(err, ErrQuery) || w.Body.Len() > 0 {
		t.Errorf("%v, and %d bytes", err, w.Body.Len())
	}
}

// TestExport reads back what the page saves.
func TestExport(t *testing.T) {
	r := busy(t, 1000, 5000)
	s := served(t, r)
	res, body := get(t, "GET", s.URL()+"0/export?format=pprof&focus=Order&states=running", "")
	p, err := format.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", res.Status, err)
	}
	q, _ := r.query(map[string][]string{"focus": {"Order"}, "states": {"running"}})
	want, err := r.Count(context.Background(), &q)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Select(profile.Filter{}).All; got != want.Chosen || got.Samples == 0 {
		t.Errorf("the file holds %+v, the page shows %+v", got, want.Chosen)
	}
	if d := res.Header.Get("Content-Disposition"); d != `attachment; filename="busy-part.pb.gz"` {
		t.Errorf("it is called %s", d)
	}
	for _, f := range []string{"jfr", "collapsed", "speedscope", "firefox", "otlp", "html", "json", "text"} {
		if res, body := get(t, "GET", s.URL()+"0/export?format="+f, ""); res.StatusCode != http.StatusOK || len(body) < 100 {
			t.Errorf("%s: %s, %d bytes", f, res.Status, len(body))
		}
	}
	for in, want := range map[string]string{"/a/b/app.pb.gz": "app-part", "x\"; evil=\r\n.jfr": "x___evil___-part", "": "_-part", "日本.jfr": "__-part"} {
		if got := fileStem(in); got != want && in != "" {
			t.Errorf("fileStem(%q) = %q, want %q", in, got, want)
		}
	}
}
