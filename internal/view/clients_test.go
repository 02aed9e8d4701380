package view

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// dial connects to a server.
func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp4", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a request over a connection and reads the answer.
func ask(t *testing.T, c net.Conn, s *Server, token, more string) *http.Response {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "GET /%s/recordings HTTP/1.1\r\nHost: %s\r\n%s\r\n", token, s.hosts[0], more)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res
}

// closed reports whether the server closes a connection within some time.
func closed(c net.Conn, within time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(within))
	_, err := c.Read(make([]byte, 1))
	late, ok := err.(net.Error)
	return err != nil && !(ok && late.Timeout())
}

// Connections of others that do nothing, however many, take neither descriptors without end nor the
// page from who has its address.
func TestIdleConnections(t *testing.T) {
	s := served(t, busy(t, 10, 10))
	owner := dial(t, s)
	if res := ask(t, owner, s, s.token, ""); res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	var idle []net.Conn
	for range 300 {
		idle = append(idle, dial(t, s))
	}
	if res := ask(t, owner, s, s.token, ""); res.StatusCode != http.StatusOK {
		t.Errorf("the connection of who has the token: %s", res.Status)
	}
	if res := ask(t, dial(t, s), s, s.token, ""); res.StatusCode != http.StatusOK {
		t.Errorf("a new connection of who has the token: %s", res.Status)
	}
	s.clients.mu.Lock()
	held := len(s.clients.all)
	s.clients.mu.Unlock()
	if held > maxConnections {
		t.Errorf("%d connections are held", held)
	}
	open := 0
	for _, c := range idle {
		if !closed(c, 50*time.Millisecond) {
			open++
		}
	}
	if open >= maxConnections {
		t.Errorf("%d of %d connections that say nothing are open", open, len(idle))
	}
	if s.http.IdleTimeout <= 0 || s.http.ReadHeaderTimeout <= 0 {
		t.Error("a connection may stay open for ever")
	}
}

// A client without the token has one try for each connection, and none to keep it with what it goes
// on sending.
func TestRefusedIsClosed(t *testing.T) {
	t.Parallel()
	s := served(t, busy(t, 10, 10))
	for name, more := range map[string]string{"nothing more": "", "a body that does not come": "Content-Length: 100000\r\n"} {
		for _, token := range []string{"wrong", s.token} {
			if token == s.token && more == "" {
				continue
			}
			c := dial(t, s)
			if token == s.token {
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				fmt.Fprintf(c, "POST /%s/recordings HTTP/1.1\r\nHost: %s\r\n%s\r\n", token, s.hosts[0], more)
				if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != http.StatusMethodNotAllowed {
					t.Fatalf("%v %v", res, err)
				}
			} else if res := ask(t, c, s, token, more); res.StatusCode != http.StatusNotFound {
				t.Fatal(res.Status)
			}
			start := time.Now()
			if !closed(c, 15*time.Second) {
				t.Errorf("%s: the connection is open after %v", name, time.Since(start))
			}
		}
	}
}
