package push

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
)

// dialer opens a connection.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// watched opens a connection that knows what was written to it.
func (d dialer) watched(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := d(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &watchedConn{Conn: c}, nil
}

// watchedConn knows what was written to a connection.
type watchedConn struct {
	net.Conn
	written atomic.Int64
	failed  atomic.Bool // a write did
}

func (c *watchedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}

// delivery finds out whether a server may have all of a request.
type delivery struct {
	tls *tls.Conn // of HTTP/1
	// passed: net/http wrote all of it; with HTTP/1 the last 4 KB may still be in its buffer.
	passed atomic.Bool
	conn   *watchedConn // of HTTP/1, which has one request at a time; nil: of HTTP/2
	before int64        // bytes that were written earlier
}

// begin begins with a connection, of which h2 says whether it is HTTP/2 even without TLS.
func (d *delivery) begin(c net.Conn, h2 bool) {
	d.passed.Store(false)
	if d.conn, d.tls = nil, nil; h2 {
		return
	}
	if t, ok := c.(*tls.Conn); ok {
		if t.ConnectionState().NegotiatedProtocol == "h2" {
			return
		}
		c, d.tls = t.NetConn(), t
	}
	if w, ok := c.(*watchedConn); ok {
		d.conn, d.before = w, w.written.Load()
	}
}

// complete reports whether the server may have all of the request. It is called when the request has
// failed, so that nothing is written any more.
func (d *delivery) complete() bool {
	return d.passed.Load() && (d.conn == nil || !d.conn.failed.Load() && d.conn.written.Load() > d.before)
}

// cause returns why a request failed with err. If the server ends the connection by an alert of TLS
// while the request is still being written, net/http may only say that the connection is closed; the
// connection remembers the alert.
func (d *delivery) cause(err error) error {
	if d.tls == nil || !errors.Is(err, net.ErrClosed) {
		return err
	}
	// It is closed, so this does not wait.
	if _, alert := d.tls.Read(make([]byte, 1)); refusedByTLS(alert) {
		return alert
	}
	return err
}

// refusedByTLS reports whether the server ended the connection by an alert of TLS. With TLS 1.3 that
// comes after the request was written, if the server does not accept candid's certificate: it has not
// looked at the request.
func refusedByTLS(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// compress compresses a message.
func compress(b []byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		return nil, err
	}
	err := z.Close()
	return out.Bytes(), err
}
