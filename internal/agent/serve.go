package agent

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/agent/config"
)

// servers are what the agent answers on: its own socket, and the address of the file.
type servers struct {
	control *http.Server
	public  *http.Server
	address string // of public, as it listens
	paths   []string
}

const (
	headerTimeout = 5 * time.Second
	idleTimeout   = time.Minute
	answerTimeout = time.Minute
	maxHeader     = 16 << 10
	maxOpen       = 64 // connections of a listener
	socketMode    = 0o660
)

// serve opens the socket and the address of a file.
func (a *Agent) serve(c *config.Config) (s servers, err error) {
	s.control = a.server(a.controls(), 0)
	var why []error
	for _, path := range SocketPaths(c) {
		l, err := listenUnix(path)
		if err != nil {
			why = append(why, err)
			continue
		}
		s.paths = append(s.paths, path)
		go s.control.Serve(limit(l))
	}
	if len(s.paths) == 0 {
		return s, errors.Join(why...)
	}
	a.o.Log("candid agent status asks through " + strings.Join(s.paths, " or "))
	if err = s.open(a, c); err != nil {
		s.close()
		return servers{}, err
	}
	return s, nil
}

func (a *Agent) server(h http.Handler, answer time.Duration) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: answerTimeout, IdleTimeout: idleTimeout, WriteTimeout: answer, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0), // what clients do wrong
	}
}

// open listens on the address of a file.
func (s *servers) open(a *Agent, c *config.Config) error {
	if c.Listen.Address == "" {
		return nil
	}
	guard, err := newGuard(c.Listen)
	if err != nil {
		return err
	}
	var l net.Listener
	if c.Listen.Unix() {
		if l, err = listenUnix(c.Listen.Address); err == nil {
			s.paths = append(s.paths, c.Listen.Address)
		}
	} else {
		l, err = net.Listen("tcp", c.Listen.Address)
	}
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.address = l.Addr().String()
	l = limit(l)
	if guard.tls != nil {
		l = tls.NewListener(l, guard.tls)
	}
	s.public = a.server(guard.handler(a.pages()), answerTimeout)
	go s.public.Serve(l)
	a.o.Log("metrics are at " + s.address)
	return nil
}

// change listens on the address of a new file, if that is another one.
func (s *servers) change(a *Agent, old, conf *config.Config) error {
	if old.Socket != conf.Socket {
		return errors.New("socket cannot be changed while the agent runs: restart it")
	}
	was := old.Listen
	was.Line = conf.Listen.Line
	// Certificates and tokens are read again, whatever the file says.
	if was == conf.Listen && conf.Listen.TLS == (config.TLS{}) && conf.Listen.TokenFile == "" {
		return nil
	}
	if _, err := newGuard(conf.Listen); err != nil {
		return err
	}
	before := s.public
	if before != nil {
		_ = before.Close() // the address may be the same
	}
	s.public = nil
	if err := s.open(a, conf); err != nil {
		if back := s.open(a, old); back != nil {
			a.o.Log(back.Error())
		}
		return err
	}
	return nil
}

func (s *servers) close() {
	for _, h := range []*http.Server{s.control, s.public} {
		if h != nil {
			_ = h.Close()
		}
	}
	for _, p := range s.paths {
		_ = os.Remove(p)
	}
}

// socketName is the name of the socket in the store's directory and in /run/candid.
const socketName = "agent.sock"

// SocketPaths returns the paths of the sockets of an agent with this file: what the file says, else
// one in the store's directory, and /run/candid/agent.sock if it is the first agent there.
func SocketPaths(c *config.Config) []string {
	switch {
	case c.Socket != "":
		return []string{c.Socket}
	case c.Store.Dir == "":
		return []string{DefaultSocket()}
	}
	return []string{filepath.Join(c.Store.Dir, socketName), DefaultSocket()}
}

// DefaultSocket is where an agent's socket is unless its file says otherwise.
func DefaultSocket() string { return filepath.Join("/run/candid", socketName) }

// listenUnix listens on a socket that its user and group may use. A socket that nobody answers on is
// left over from an agent that was killed, and is replaced.
func listenUnix(path string) (net.Listener, error) {
	if len(path) > 100 {
		return nil, fmt.Errorf("the socket %s: its path is longer than 100 bytes: choose a shorter one (socket: in the file)", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make the socket's directory: %w", err)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("the socket %s: there is a file that is no socket", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, fmt.Errorf("another agent answers on %s: only one can record here with this socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("replace the socket of an agent that has ended: %w", err)
		}
	}
	l, err := bindUnix(path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(path, socketMode); err != nil {
		l.Close()
		return nil, fmt.Errorf("restrict the socket: %w", err)
	}
	return l, nil
}

// limited bounds how many connections are open at once.
type limitedListener struct {
	net.Listener
	free chan struct{}
}

func limit(l net.Listener) net.Listener { return &limitedListener{l, make(chan struct{}, maxOpen)} }

// Accept refuses connections that are too many, rather than let them wait.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.free <- struct{}{}:
			return &limitedConn{Conn: c, free: sync.OnceFunc(func() { <-l.free })}, nil
		default:
			c.Close()
		}
	}
}

type limitedConn struct {
	net.Conn
	free func()
}

func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}

// guard admits those who may ask.
type guard struct {
	tls   *tls.Config
	token [sha256.Size]byte
	asks  bool // for the token
	local bool // only this machine reaches the address
}

// newGuard reads the files that protect an address.
func newGuard(l config.Listen) (*guard, error) {
	g := &guard{local: !l.Open() && !l.Unix()}
	if l.TLS.Cert != "" {
		cert, err := tls.LoadX509KeyPair(l.TLS.Cert, l.TLS.Key)
		if err != nil {
			return nil, fmt.Errorf("listen: tls: %w", err)
		}
		g.tls = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	}
	if l.TLS.CA != "" && g.tls != nil {
		b, err := os.ReadFile(l.TLS.CA)
		if err != nil {
			return nil, fmt.Errorf("listen: tls: %w", err)
		}
		g.tls.ClientCAs, g.tls.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !g.tls.ClientCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("listen: tls: %s has no certificate", l.TLS.CA)
		}
	}
	if l.TokenFile != "" {
		b, err := os.ReadFile(l.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		t := strings.TrimSpace(string(b))
		if len(t) < 16 {
			return nil, fmt.Errorf("listen: the token in %s is shorter than 16 bytes", l.TokenFile)
		}
		g.token, g.asks = sha256.Sum256([]byte(t)), true
	}
	return g, nil
}

// handler returns h behind the guard.
func (g *guard) handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		probe := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "only GET is answered here", http.StatusMethodNotAllowed)
		case g.local && !localHost(r.Host):
			// A name that a page in a browser made to mean this machine (DNS rebinding).
			http.Error(w, "this address answers to 127.0.0.1 and localhost only", http.StatusForbidden)
		case g.asks && !probe && !g.admits(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a token is needed: Authorization: Bearer TOKEN", http.StatusUnauthorized)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

func (g *guard) admits(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return ok && subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// localHost reports whether a Host header names this machine.
func localHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// contextOf ends with a request and with an agent's captures.
func (a *Agent) contextOf(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(a.capture.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}
