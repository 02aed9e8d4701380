package push

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// network connects a Pusher and a server within the process, so that both live in the time of synctest.
type network struct {
	conns  chan net.Conn
	down   atomic.Bool
	breaks atomic.Int32 // so many connections end before anything is read
	done   chan struct{}
}

func newNetwork() *network {
	return &network{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if n.down.Load() {
		return nil, syscall.ECONNREFUSED
	}
	ours, theirs := net.Pipe()
	select {
	case n.conns <- theirs:
		return ours, nil
	case <-n.done:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		if n.breaks.Add(-1) >= 0 {
			c.Close()
		}
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error   { close(n.done); return nil }
func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

// serve serves a handler in the network, until the returned function is called.
func (n *network) serve(h http.Handler) (stop func()) {
	s := &http.Server{Handler: h, ErrorLog: nil, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(n) }()
	return func() { _ = s.Close() }
}

// window returns a window of few samples that ends now.
func window(service string) Window {
	p := profiletest.New(profiletest.JavaStacks()[:4])
	p.Meta.Start, p.Meta.Duration = time.Now().Add(-10*time.Second), 10*time.Second
	return Window{Service: service, Profile: p}
}

// TestAway: a server that is away for 40 minutes and then back has everything, once, even if candid was
// started again in between.
func TestAway(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n, server := newNetwork(), &pyroscope{t: t}
		defer n.serve(server)()
		open := func() *Pusher {
			p, err := New(Config{Type: "pyroscope", URL: "http://server", Buffer: Buffer{Dir: dir}}, Options{dial: n.dial})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p := open()
		want := map[string]int64{}
		for minute := range 60 {
			if minute == 10 || minute == 50 {
				n.down.Store(minute == 10)
			}
			if minute == 30 {
				if err := p.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				p = open()
			}
			w := window("shop")
			if err := p.Add(w); err != nil {
				t.Fatal(err)
			}
			for stack, v := range ours(w.Profile, 0) {
				want[stack] += v
			}
			time.Sleep(time.Minute)
		}
		if s := p.Stats(); s.Unsent > 1 || len(s.Dropped)+len(s.Ambiguous) > 0 || s.Retried["connection"] == 0 {
			t.Errorf("%+v", s)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		same(t, sumsOf(t, "cpu", server.got...), want)
	})
}

// TestTooLongAway: what is older than the server accepts is dropped and counted, the rest arrives.
func TestTooLongAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, server := newNetwork(), &pyroscope{t: t}
		defer n.serve(server)()
		p, err := New(Config{Type: "pyroscope", URL: "http://server"}, Options{dial: n.dial})
		if err != nil {
			t.Fatal(err)
		}
		n.down.Store(true)
		for range 90 {
			if err := p.Add(window("shop")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if s := p.Stats(); s.OldestUnsent() > DefaultAge+time.Minute || s.Unsent < 45 || s.Dropped["too-old"] < 35 {
			t.Errorf("%+v, the oldest is from %v ago", s, s.OldestUnsent())
		}
		n.down.Store(false)
		time.Sleep(2 * time.Minute)
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if s := p.Stats(); s.Sent+s.Dropped["too-old"] < 89 || s.Sent != uint64(len(server.got)) {
			t.Errorf("%+v", s)
		}
	})
}

// raw writes bytes as a reply and ends the connection.
func raw(t *testing.T, w http.ResponseWriter, r *http.Request, reply string) {
	_, _ = io.Copy(io.Discard, r.Body)
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.WriteString(c, reply)
	c.Close()
}

// faults are what a server does wrong at first, and what becomes of a profile then.
var faults = []struct {
	name  string
	typ   string
	times int // how often it does, before it accepts everything
	fault func(t *testing.T, w http.ResponseWriter, r *http.Request)
	// what Stats says, and how many requests there were in all
	want     string
	requests int
}{
	{"429", "pyroscope", 5, status(429), "sent 1 retried http-429 5", 6},
	{"503", "pyroscope", 2, status(503), "sent 1 retried http-503 2", 3},
	{"408", "pyroscope", 2, status(408), "sent 1 retried http-408 2", 3},
	{"500 twice", "pyroscope", 2, status(500), "sent 1 retried http-500 2", 3},
	{"500", "pyroscope", 99, status(500), "sent 0 dropped http-500 1 retried http-500 2", 3},
	{"400", "pyroscope", 99, status(400), "sent 0 dropped http-400 1", 1},
	{"401", "otlp", 99, status(401), "sent 0 dropped http-401 1", 1},
	{"a redirect", "pyroscope", 99, func(_ *testing.T, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere/", http.StatusTemporaryRedirect)
	}, "sent 0 dropped redirect 1", 1},
	{"death before the reply", "pyroscope", 1, func(t *testing.T, w http.ResponseWriter, r *http.Request) { raw(t, w, r, "") }, "sent 0 ambiguous no-reply 1", 1},
	{"death in the middle of the reply's head", "otlp", 1, func(t *testing.T, w http.ResponseWriter, r *http.Request) {
		raw(t, w, r, "HTTP/1.1 200 OK\r\nContent-Ty")
	}, "sent 0 ambiguous no-reply 1", 1},
	{"death in the middle of the reply's body", "pyroscope", 1, func(t *testing.T, w http.ResponseWriter, r *http.Request) {
		raw(t, w, r, "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 100\r\n\r\nxyz")
	}, "sent 1", 1},
	{"garbage", "pyroscope", 1, func(t *testing.T, w http.ResponseWriter, r *http.Request) { raw(t, w, r, "\x00\x01garbage\r\n\r\n") }, "sent 0 ambiguous no-reply 1", 1},
	{"a head without end", "pyroscope", 1, func(t *testing.T, w http.ResponseWriter, r *http.Request) {
		raw(t, w, r, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X-Y: "+strings.Repeat("z", 1000)+"\r\n", 1000))
	}, "sent 0 ambiguous no-reply 1", 1},
	{"another kind of server", "pyroscope", 1, func(_ *testing.T, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, "<html>please log in")
	}, "sent 0 ambiguous reply 1", 1},
	{"no reply for minutes", "pyroscope", 1, func(_ *testing.T, _ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Minute):
		}
	}, "sent 0 ambiguous timeout 1", 1},
	{"a slow reply", "pyroscope", 1, func(_ *testing.T, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(50 * time.Second)
		w.Header().Set("Content-Type", "application/proto")
	}, "sent 1", 1},
	{"partial success", "otlp", 1, func(_ *testing.T, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write([]byte("\x0a\x06\x08\x01\x12\x02no"))
	}, "sent 1 dropped rejected 1", 1},
	{"gRPC UNAVAILABLE", "otlp-grpc", 3, grpcStatus("14"), "sent 1 retried grpc-14 3", 4},
	{"gRPC RESOURCE_EXHAUSTED", "parca", 3, grpcStatus("8"), "sent 1 retried grpc-8 3", 4},
	{"gRPC INTERNAL", "parca", 99, grpcStatus("13"), "sent 0 dropped grpc-13 1 retried grpc-13 2", 3},
	{"gRPC INVALID_ARGUMENT", "parca", 99, grpcStatus("3"), "sent 0 dropped grpc-3 1", 1},
	{"gRPC without a status", "parca", 1, grpcStatus(""), "sent 0 ambiguous reply 1", 1},
	{"gRPC behind a proxy that is down", "parca", 2, status(503), "sent 1 retried http-503 2", 3},
}

func status(code int) func(*testing.T, http.ResponseWriter, *http.Request) {
	return func(_ *testing.T, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		http.Error(w, "no", code)
	}
}

// grpcStatus replies with a code; "": without one.
func grpcStatus(code string) func(*testing.T, http.ResponseWriter, *http.Request) {
	return func(_ *testing.T, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		if code != "" {
			w.Header().Set("Trailer", "Grpc-Status")
		}
		w.WriteHeader(http.StatusOK)
		if code == "0" {
			_, _ = w.Write(frame(nil, false))
		}
		if code != "" {
			w.Header().Set("Grpc-Status", code)
		}
	}
}

// TestFaults: whatever a server does, a profile is sent until it is certain that the server has it or
// that it cannot have it, and never again if it may have it.
func TestFaults(t *testing.T) {
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				requests := 0
				defer n.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Host != "server" {
						t.Errorf("a request to %s", r.Host)
					}
					if requests++; requests <= c.times {
						c.fault(t, w, r)
						return
					}
					if c.typ == "parca" || c.typ == "otlp-grpc" {
						grpcStatus("0")(t, w, r)
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", protocolOf(c.typ).replyType)
				}))()
				p, err := New(Config{Type: c.typ, URL: "http://server"}, Options{dial: n.dial})
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Add(window("shop")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(15 * time.Minute)
				s := p.Stats()
				got := fmt.Sprint("sent ", s.Sent)
				for i, m := range []map[string]uint64{s.Dropped, s.Retried, s.Ambiguous} {
					for reason, n := range m {
						got += fmt.Sprintf(" %s %s %d", []string{"dropped", "retried", "ambiguous"}[i], reason, n)
					}
				}
				if got != c.want || requests != c.requests || s.Unsent != 0 {
					t.Errorf("%s after %d requests, want %s after %d; %d unsent; %s", got, requests, c.want, c.requests, s.Unsent, s.LastError)
				}
				if err := p.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestBrokenConnection: if the connection ends before everything was sent, the server cannot have it.
func TestBrokenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, server := newNetwork(), &pyroscope{t: t}
		defer n.serve(server)()
		n.breaks.Store(2)
		p, err := New(Config{Type: "pyroscope", URL: "http://server"}, Options{dial: n.dial})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Add(window("shop")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if s := p.Stats(); s.Sent != 1 || len(server.got) != 1 || s.Retried["connection"] != 2 || len(s.Ambiguous)+len(s.Dropped) > 0 {
			t.Errorf("%+v", s)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestStorm: while a server refuses, there is one attempt at a time, less and less often, and the pause
// that it asks for is kept.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		var at []time.Time
		ok := &pyroscope{t: t}
		begin := time.Now()
		defer n.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if time.Since(begin) > 20*time.Minute {
				ok.ServeHTTP(w, r)
				return
			}
			at = append(at, time.Now())
			w.Header().Set("Retry-After", "100")
			status(429)(t, w, r)
		}))()
		p, err := New(Config{Type: "pyroscope", URL: "http://server"}, Options{dial: n.dial})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			if err := p.Add(window(fmt.Sprint("service", i))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(25 * time.Minute)
		late := 0
		for i := 1; i < len(at); i++ {
			if d := at[i].Sub(at[i-1]); d >= 100*time.Second {
				late++
			}
		}
		// The first attempts of all workers are under way before the first reply.
		if len(at) < 10 || len(at) > 20 || late < len(at)-workers-1 {
			t.Errorf("%d attempts in 20 minutes, %d of them after the pause that the server asked for", len(at), late)
		}
		if s := p.Stats(); s.Sent != 50 || len(ok.got) != 50 || s.Unsent != 0 {
			t.Errorf("%+v, %d arrived", s, len(ok.got))
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
