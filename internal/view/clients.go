package view

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// The limits of the server's connections. A browser opens six to a server.
const (
	maxConnections = 64
	// headerTime is how long a client may take for a request, and one that has not shown the token to
	// begin one.
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
)

// clients are the connections to a Server. Every user of the machine can connect to it: so if there are
// too many, the oldest of those that have not shown the token is closed, and who has the token
// gets an answer however many others hold.
type clients struct {
	mu   sync.Mutex
	all  map[net.Conn]*client
	next uint64
}

// client is one connection.
type client struct {
	clients *clients
	serial  uint64 // the larger, the later it connected
	known   bool   // it has shown the token
	idle    bool   // it has no request
}

type clientKey struct{}

// watch limits the connections of a server that was not started.
func (c *clients) watch(s *http.Server) {
	c.all = map[net.Conn]*client{}
	s.ReadHeaderTimeout, s.IdleTimeout = headerTime, idleTime
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, clientKey{}, c.add(conn))
	}
	s.ConnState = c.changed
}

// add adds a connection, and closes another if there are too many.
func (c *clients) add(conn net.Conn) *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	added := &client{clients: c, serial: c.next, idle: true}
	c.all[conn] = added
	if len(c.all) <= maxConnections {
		return added
	}
	var worst net.Conn
	for other, o := range c.all {
		if o != added && (worst == nil || o.before(c.all[worst])) {
			worst = other
		}
	}
	delete(c.all, worst)
	worst.Close()
	return added
}

// before reports whether a connection is to be closed rather than another.
func (c *client) before(other *client) bool {
	if c.known != other.known {
		return other.known
	}
	if c.known && c.idle != other.idle {
		return c.idle
	}
	return c.serial < other.serial
}

// changed takes note of what the server says of a connection.
func (c *clients) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(c.all, conn)
	case http.StateActive, http.StateIdle:
		if known := c.all[conn]; known != nil {
			known.idle = state == http.StateIdle
		}
	}
}

// trust takes note that the client of a request has shown the token.
func trust(req *http.Request) {
	if c, ok := req.Context().Value(clientKey{}).(*client); ok {
		c.clients.mu.Lock()
		c.known = true
		c.clients.mu.Unlock()
	}
}

// dismiss ends the connection of a request that is refused, with the answer, and does not wait for
// what else the client sends.
func dismiss(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // a recorder in a test has none
}
