package push

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// A process of its own that pushes until it is killed: CANDID_TEST_PUSH is the URL and the directory.
func TestMain(m *testing.M) {
	if url, dir, ok := strings.Cut(os.Getenv("CANDID_TEST_PUSH"), " "); ok {
		pushForever(url, dir)
	}
	os.Exit(m.Run())
}

func pushForever(url, dir string) {
	p, err := New(Config{Type: "pyroscope", URL: url, Every: time.Second, Buffer: Buffer{Dir: dir}}, Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := range 10 {
		if err := p.Add(window(fmt.Sprint("service", i))); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	for range 600 {
		time.Sleep(50 * time.Millisecond)
		if s := p.Stats(); s.Unsent == 10 {
			fmt.Println("buffered")
			time.Sleep(30 * time.Second)
		}
	}
	os.Exit(0)
}

// killed runs pushForever until everything is in the buffer, and kill happens.
func killed(t *testing.T, url, dir string, ready func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CANDID_TEST_PUSH="+url+" "+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 200)
	n, _ := out.Read(line)
	ready()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !strings.HasPrefix(string(line[:n]), "buffered") {
		t.Fatalf("%q", line[:n])
	}
}

// TestKilled: what was in the buffer when candid was killed is sent when it starts again; what was being
// sent is counted, and not sent again.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "buffer")
	hold := make(chan struct{})
	under := make(chan struct{}, 100)
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		under <- struct{}{}
		<-hold
	}))
	defer stuck.Close()
	killed(t, stuck.URL, dir, func() {
		<-under
	})
	close(hold)
	list, err := filepath.Glob(filepath.Join(dir, "*.push"))
	if err != nil || len(list) == 0 { // more than one if what was added did not all come at once
		t.Fatalf("%q, %v", list, err)
	}
	list = list[len(list)-1:]
	if st, err := os.Stat(list[0]); err != nil || runtime.GOOS != "windows" && st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	// The last write was cut off.
	f, err := os.OpenFile(list[0], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write(appendRecord(nil, recordMessage, 10, time.Now(), []byte("half of it"))[:recordHead+3])
	f.Close()
	server := &pyroscope{t: t}
	web := httptest.NewServer(server)
	defer web.Close()
	p, err := New(Config{Type: "pyroscope", URL: web.URL, Buffer: Buffer{Dir: dir}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s.Ambiguous["interrupted"] != 1 || s.Sent != 9 || len(server.got) != 9 || len(s.Dropped) > 0 {
		t.Errorf("%+v; %d arrived", s, len(server.got))
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "*.push")); len(list) > 0 {
		t.Errorf("left: %q", list)
	}
}

// TestOneOwner: two Pushers do not share a buffer.
func TestOneOwner(t *testing.T) {
	c := Config{Type: "pyroscope", URL: "http://127.0.0.1:1", Buffer: Buffer{Dir: t.TempDir()}}
	p, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	if q, err := New(c, Options{}); err == nil || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("%v", err)
		q.Close(t.Context())
	}
}

// TestFullBuffer: what came first is dropped, and the size is kept.
func TestFullBuffer(t *testing.T) {
	dropped := 0
	c, err := Config{Type: "pyroscope", URL: "http://x", Buffer: Buffer{Dir: t.TempDir(), Max: 1 << 20}}.complete()
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := openBuffer(&c, func(n int, reason string) { dropped += n }, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for range 50 {
		b.put([]message{{time.Now(), make([]byte, 50<<10)}, {time.Now(), make([]byte, 50<<10)}})
	}
	list, _ := filepath.Glob(filepath.Join(c.Buffer.Dir, "*.push"))
	size := int64(0)
	for _, f := range list {
		st, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		size += st.Size()
	}
	if size > 1<<20 || size < 800<<10 || size != b.bytes || dropped+len(b.items) != 100 {
		t.Errorf("%d bytes in files, %d counted, %d dropped, %d left", size, b.bytes, dropped, len(b.items))
	}
}

// TestLimits: what is too large for the server is sent in parts, and all of it arrives.
func TestLimits(t *testing.T) {
	t.Parallel()
	server := fixture.StartServer(t, "pyroscope", "unlimited")
	b := profile.NewBuilder()
	at := b.Profile()
	at.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1}}
	thread := b.Thread(1, 1, "main")
	frame := func(i int) uint32 {
		fn := b.Func(profile.Func{Name: fmt.Sprintf("function%d%s", i, strings.Repeat("x", i%300)), Module: "app"})
		return b.Frame(profile.Frame{Func: fn, Line: int32(i), Kind: walk.KindNative})
	}
	want := int64(0)
	for i := range 40_000 {
		n := b.Node(b.Node(profile.RootNode, frame(i%100)), frame(100+i))
		b.Add(profile.Sample{Weight: uint64(i) << 20, Node: n, Thread: thread})
		want += int64(i) << 20
	}
	n := uint32(profile.RootNode)
	for i := range 5000 {
		n = b.Node(n, frame(i%7))
	}
	n = b.Node(n, frame(12345))
	b.Add(profile.Sample{Weight: 1 << 50, Node: n, Thread: thread})
	want += 1 << 50
	p, err := New(Config{Type: "pyroscope", URL: server.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Add(Window{Service: "large", From: time.Now().Add(-time.Minute), To: time.Now(), Profile: b.Finish()}); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := server.Arrived()
	if err != nil {
		t.Fatal(err)
	}
	sum, deep := int64(0), ""
	for _, s := range got.Series {
		for stack, v := range s.Sums["cpu"] {
			if sum += v; v == 1<<50 {
				deep = stack
			}
		}
	}
	if sum != want || len(got.Refused) > 0 || got.Truncated > 0 || got.Requests < 3 {
		t.Errorf("%d ns in %d requests, want %d; refused %v, truncated %d", sum, got.Requests, want, got.Refused, got.Truncated)
	}
	if !strings.HasPrefix(deep, "function12345") || !strings.Contains(deep, "[frames left out]") {
		t.Errorf("the deep stack is %.100s", deep)
	}
}

// TestProbability: some hosts push, always the same ones, and their values stand for all.
func TestProbability(t *testing.T) {
	taken := 0
	for i := range 10_000 {
		if sampled(0.1, fmt.Sprint("host", i)) {
			taken++
		}
	}
	if taken < 850 || taken > 1150 {
		t.Errorf("%d of 10000 hosts push, want some 1000", taken)
	}
	server := &pyroscope{t: t}
	web := httptest.NewServer(server)
	defer web.Close()
	for i := range 20 {
		p, err := New(Config{Type: "pyroscope", URL: web.URL, Probability: 0.25}, Options{Host: fmt.Sprint("host", i)})
		if err != nil {
			t.Fatal(err)
		}
		w := window("shop")
		if err := p.Add(w); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := p.Stats(); s.Sampled != sampled(0.25, fmt.Sprint("host", i)) || (s.Sent > 0) != s.Sampled {
			t.Errorf("%+v", s)
		}
		if len(server.got) > 0 {
			want, got := int64(0), int64(0)
			for _, v := range ours(w.Profile, 0) {
				want += v
			}
			for _, v := range sumsOf(t, "cpu", server.got[0]) {
				got += v
			}
			if got < 4*want-1 || got > 4*want {
				t.Errorf("%d ns, want four times %d", got, want)
			}
		}
	}
	if len(server.got) == 0 || len(server.got) > 12 {
		t.Errorf("%d of 20 hosts pushed", len(server.got))
	}
}

// certificate returns a certificate and its key, in PEM, signed by a parent or by itself.
func certificate(t *testing.T, name string, parent *tls.Certificate) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: parent == nil, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	by, signer := c, any(k)
	if parent != nil {
		by, signer = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &k.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// TestTLS: TLS, certificates of candid's own, tokens that are replaced while it runs, and clear errors.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pair := func(cert, key []byte) tls.Certificate {
		c, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	caPEM, caKey := certificate(t, "authority", nil)
	ca := pair(caPEM, caKey)
	serverCert := pair(certificate(t, "profiles.example", &ca))
	cert, key := certificate(t, "host", &ca)
	good := TLS{CA: put("ca.pem", caPEM), Cert: put("host.pem", cert), Key: put("host.key", key)}
	token := put("token", []byte("first\n"))
	server := &pyroscope{t: t}
	web := httptest.NewUnstartedServer(server)
	roots := x509.NewCertPool()
	roots.AddCert(ca.Leaf)
	web.TLS = &tls.Config{Certificates: []tls.Certificate{serverCert}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert}
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	defer web.Close()
	try := func(tls TLS, url string) (Stats, error) {
		p, err := New(Config{Type: "pyroscope", URL: url, TLS: tls, TokenFile: token}, Options{})
		if err != nil {
			return Stats{}, err
		}
		if err := p.Add(window("shop")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = p.Close(ctx)
		return p.Stats(), err
	}
	for i, word := range []string{"first", "second"} {
		put("token", []byte(word+"\n"))
		if s, err := try(good, web.URL); err != nil || s.Sent != 1 || server.head.Get("Authorization") != "Bearer "+word {
			t.Errorf("%d: %v %+v, %q", i, err, s, server.head)
		}
	}
	got := len(server.got)
	for name, c := range map[string]struct {
		tls  TLS
		url  string
		want string
	}{
		"another name":      {good, strings.Replace(web.URL, "127.0.0.1", "localhost", 1), "is for another name"},
		"another authority": {TLS{Cert: good.Cert, Key: good.Key}, web.URL, "is signed by an authority that is not trusted here"},
		"no certificate":    {TLS{CA: good.CA}, web.URL, "certificate required"},
		"no file":           {TLS{CA: filepath.Join(dir, "none")}, web.URL, "tls: ca: open"},
		"no PEM":            {TLS{CA: token}, web.URL, "has no certificate in PEM"},
	} {
		s, err := try(c.tls, c.url)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if s.Sent > 0 || len(server.got) != got {
			t.Errorf("%s: something was sent", name)
		}
	}
}

// TestConfig: mistakes are told in one line that names the key, and no password.
func TestConfig(t *testing.T) {
	for want, c := range map[string]Config{
		"type is missing":                   {URL: "http://x"},
		`type "prometheus" is not known`:    {Type: "prometheus", URL: "http://x"},
		"url is missing":                    {Type: "parca"},
		"url: it must begin with http://":   {Type: "parca", URL: "ftp://x"},
		"url: it names no host":             {Type: "parca", URL: "http://"},
		"every: 1ms is not between":         {Type: "otlp", URL: "http://x", Every: time.Millisecond},
		"probability: 2":                    {Type: "otlp", URL: "http://x", Probability: 2},
		"buffer: age: 2h0m0s is more than":  {Type: "pyroscope", URL: "http://x", Buffer: Buffer{Age: 2 * time.Hour}},
		"tls: cert and key belong together": {Type: "otlp", URL: "https://x", TLS: TLS{Cert: "a"}},
		"tls: the url begins with http://":  {Type: "otlp", URL: "http://x", TLS: TLS{CA: "a"}},
		"url: nothing may follow":           {Type: "otlp", URL: "http://u:secret@x/?a=b"},
		"url: it cannot be read":            {Type: "otlp", URL: "http://u:secret@x:port/"},
	} {
		err := c.Check()
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := (Config{Type: "pyroscope", URL: "https://x/y"}).Check(); err != nil {
		t.Error(err)
	}
}

// FuzzScan: whatever is in a file of the buffer, reading it ends, and bodies are what was written.
func FuzzScan(f *testing.F) {
	b := segmentHeader("pyroscope")
	for i := range 3 {
		b = appendRecord(b, recordMessage, uint32(i), time.Unix(1700000000, 0), []byte("body"))
	}
	b = appendRecord(b, recordSending, 1, time.Time{}, nil)
	b = appendRecord(b, recordSettled, 0, time.Time{}, nil)
	f.Add(b)
	f.Add(b[:len(b)-5])
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		s, ok := scan(r, int64(len(data)), "pyroscope")
		if !ok {
			return
		}
		if s.end > int64(len(data)) {
			t.Fatalf("it ends at %d of %d", s.end, len(data))
		}
		for i := range s.messages {
			if body, ok := readBody(r, &s.messages[i]); ok && len(body) != s.messages[i].size {
				t.Fatal("another size")
			}
		}
	})
}

// FuzzReply: whatever a server replies, it is judged, in one line.
func FuzzReply(f *testing.F) {
	f.Add(200, "application/grpc", "0", "", []byte{0, 0, 0, 0, 0})
	f.Add(200, "application/x-protobuf", "", "5", []byte("\x0a\x06\x08\x01\x12\x02no"))
	f.Add(429, "text/html", "", "Wed, 21 Oct 2015 07:28:00 GMT", []byte("no\n"))
	f.Fuzz(func(t *testing.T, code int, typ, status, after string, body []byte) {
		for i := range protocols {
			c := client{protocol: &protocols[i]}
			o := c.judge(&http.Response{StatusCode: code, Status: status, Header: http.Header{"Content-Type": {typ}, "Retry-After": {after}, "Location": {status}},
				Trailer: http.Header{"Grpc-Status": {status}, "Grpc-Message": {after}}}, body, nil)
			if o.after < 0 || o.after > maxAfter || o.err != nil && strings.ContainsAny(o.err.Error(), "\n\r\x1b") || o.verdict != sent && o.err == nil {
				t.Fatalf("%+v", o)
			}
		}
	})
}
