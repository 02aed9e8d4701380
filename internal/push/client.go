package push

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"time"
)

// maxReply is how many bytes of a reply are read.
const maxReply = 64 << 10

// maxSecret is how large a token's file may be.
const maxSecret = 64 << 10

// client sends messages to one server.
type client struct {
	protocol  *protocol
	url       *url.URL // of the method
	header    http.Header
	user      *url.Userinfo
	tokenFile string
	transport *http.Transport
	timeout   time.Duration
}

func newClient(c *Config, dial dialer) (*client, error) {
	u, err := c.url()
	if err != nil {
		return nil, err
	}
	p := protocolOf(c.Type)
	config, err := c.TLS.config()
	if err != nil {
		return nil, err
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dial.watched,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   10 * time.Second,
		MaxConnsPerHost:       workers,
		MaxIdleConnsPerHost:   workers,
		IdleConnTimeout:       90 * time.Second,
		ResponseHeaderTimeout: c.Timeout,
		DisableCompression:    true,
		// Replies are not trusted.
		MaxResponseHeaderBytes: 64 << 10,
		Protocols:              new(http.Protocols),
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	if p.grpc {
		// Without TLS, HTTP/2 begins without asking (h2c with prior knowledge), which is what servers of
		// gRPC expect.
		t.Protocols.SetHTTP2(true)
		t.Protocols.SetUnencryptedHTTP2(true)
	} else {
		t.Protocols.SetHTTP1(true)
		t.Protocols.SetHTTP2(true)
	}
	cl := &client{protocol: p, header: p.header(c), user: u.User, tokenFile: c.TokenFile, transport: t, timeout: c.Timeout}
	if _, err := cl.token(); err != nil {
		return nil, err
	}
	method := *u
	method.User = nil
	if method.Path = strings.TrimRight(u.Path, "/"); !strings.HasSuffix(method.Path, p.path) {
		method.Path += p.path
	}
	cl.url = &method
	return cl, nil
}

// config returns the configuration of TLS.
func (t TLS) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := readSmall(t.CA)
		if err != nil {
			return nil, fmt.Errorf("tls: ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls: ca: %s has no certificate in PEM", t.CA)
		}
	}
	if t.Cert != "" {
		load := func() (*tls.Certificate, error) {
			cert, err := readSmall(t.Cert)
			if err != nil {
				return nil, fmt.Errorf("tls: cert: %w", err)
			}
			key, err := readSmall(t.Key)
			if err != nil {
				return nil, fmt.Errorf("tls: key: %w", err)
			}
			pair, err := tls.X509KeyPair(cert, key)
			if err != nil {
				return nil, fmt.Errorf("tls: %s and %s: %w", t.Cert, t.Key, err)
			}
			return &pair, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		// It is read for each connection, because it is replaced before it expires.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return config, nil
}

// readSmall reads a file of the configuration.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const most = 1 << 20
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(b) > most {
		err = fmt.Errorf("%s is larger than 1 MB", path)
	}
	return b, err
}

// token returns the content of the token's file; "" without one.
func (c *client) token() (string, error) {
	if c.tokenFile == "" {
		return "", nil
	}
	b, err := readSmall(c.tokenFile)
	if err != nil {
		return "", fmt.Errorf("token_file: %w", err)
	}
	token := strings.TrimSpace(string(b))
	switch {
	case token == "":
		return "", fmt.Errorf("token_file: %s is empty", c.tokenFile)
	case len(token) > maxSecret || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "", fmt.Errorf("token_file: %s holds something that is not one token", c.tokenFile)
	}
	return token, nil
}

// authorize adds what proves who sends a request.
func (c *client) authorize(h http.Header) error {
	token, err := c.token()
	if err != nil {
		return err
	}
	switch password, has := c.user.Password(); {
	case c.user == nil && token != "":
		h.Set("Authorization", "Bearer "+token)
	case c.user != nil && has:
		h.Set("Authorization", basic(c.user.Username(), password))
	case c.user != nil:
		h.Set("Authorization", basic(c.user.Username(), token))
	}
	return nil
}

func basic(user, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

// send sends a message and returns what became of it. sending is called before the first byte of it can
// reach the server.
func (c *client) send(ctx context.Context, body []byte, sending func()) outcome {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var written delivery
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// It comes again if net/http itself repeats the request, because it is certain that the server did
		// not take it.
		GotConn: func(i httptrace.GotConnInfo) {
			written.begin(i.Conn, c.protocol.grpc)
			sending()
		},
		WroteRequest: func(i httptrace.WroteRequestInfo) { written.passed.Store(i.Err == nil) },
	})
	if c.protocol.grpc {
		body = frame(body, c.protocol.gzip)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return outcome{verdict: dropped, reason: "request", err: err}
	}
	r.Header = c.header.Clone()
	if c.protocol.grpc && c.protocol.gzip {
		r.Header.Set("Grpc-Encoding", "gzip")
	}
	if err := c.authorize(r.Header); err != nil {
		return outcome{verdict: retry, reason: "token", err: err}
	}
	// RoundTrip follows no redirects: they would lead profiles and tokens elsewhere.
	reply, err := c.transport.RoundTrip(r)
	if err != nil {
		err = written.cause(err)
		if written.complete() && !refusedByTLS(err) {
			return outcome{verdict: ambiguous, reason: reasonOf(err, "no-reply"), err: fmt.Errorf("everything was sent, but there was no reply: %w", c.explain(err))}
		}
		return outcome{verdict: retry, reason: reasonOf(err, "connection"), err: c.explain(err)}
	}
	defer reply.Body.Close()
	message, readErr := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	return c.judge(reply, message, readErr)
}

// explain makes the error of a connection one line that says what is wrong.
func (c *client) explain(err error) error {
	var (
		name    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &name):
		return fmt.Errorf("the certificate of %s is for another name: %w", c.url.Host, name)
	case errors.As(err, &unknown):
		return fmt.Errorf("the certificate of %s is signed by an authority that is not trusted here (tls: ca: names one): %w", c.url.Host, unknown)
	case errors.As(err, &invalid):
		return fmt.Errorf("the certificate of %s is not valid: %w", c.url.Host, invalid)
	case errors.As(err, &record):
		return fmt.Errorf("%s does not speak TLS: %w", c.url.Host, err)
	}
	return err
}

// reasonOf returns the word for an error that is counted.
func reasonOf(err error, other string) string {
	var (
		cert *tls.CertificateVerificationError
		dns  *net.DNSError
		slow net.Error
	)
	switch {
	case errors.As(err, &cert) || refusedByTLS(err):
		return "tls"
	case errors.As(err, &dns):
		return "dns"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &slow) && slow.Timeout():
		return "timeout"
	}
	return other
}
