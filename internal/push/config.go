package push

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// Config is one server that profiles are pushed to: an entry of `push:` in the agent's file. The
// zero values of everything but Type and URL have defaults.
type Config struct {
	// Type is one of Types.
	Type string
	// URL is where the server listens: http:// or https://, host, port, and the path below which it
	// serves if that is not the root. A user in it is for basic authentication, with the token of
	// TokenFile as the password if it has none.
	URL string
	// Every is how long profiles are summed up before they are sent; 60 s if 0.
	Every time.Duration
	TLS   TLS
	// TokenFile is a file whose content is sent as a bearer token. It is read for each request, so that
	// it can be replaced.
	TokenFile string
	// Tenant is sent as X-Scope-OrgID if it is not "".
	Tenant string
	Buffer Buffer
	// Probability is the part of all hosts that push, more than 0 to 1; their values are divided by it.
	// 0 means 1.
	Probability float64
	// Timeout is how long a request may take; 60 s if 0.
	Timeout time.Duration
}

// TLS is for servers whose URL begins with https://. Without a CA the system's are trusted.
type TLS struct {
	CA   string // file: certificates that sign the server's, PEM
	Cert string // file: candid's own certificate for servers that ask for one, PEM; read again when it changes
	Key  string // file: its key, PEM
}

// Buffer holds what could not be sent so far.
type Buffer struct {
	Dir string        // is created if it does not exist; "" keeps it in memory, where it does not survive candid
	Max int64         // bytes; 200 MB on disk, 16 MB in memory if 0
	Age time.Duration // what is older is dropped; 50 minutes if 0
}

// Types are the kinds of servers: what Config.Type may be.
func Types() []string {
	names := make([]string, len(protocols))
	for i := range protocols {
		names[i] = protocols[i].name
	}
	return names
}

// The defaults of a Config.
const (
	DefaultEvery     = 60 * time.Second
	DefaultAge       = 50 * time.Minute
	DefaultMax       = 200 << 20
	DefaultMaxMemory = 16 << 20
	DefaultTimeout   = 60 * time.Second
)

// Check reports what is wrong with the configuration, in one line that names the key. It opens no
// files.
func (c Config) Check() error {
	_, err := c.complete()
	return err
}

// complete returns the configuration with its defaults.
func (c Config) complete() (Config, error) {
	p := protocolOf(c.Type)
	switch {
	case c.Type == "":
		return c, fmt.Errorf("type is missing: it is one of %s", strings.Join(Types(), ", "))
	case p == nil:
		return c, fmt.Errorf("type %q is not known: it is one of %s", c.Type, strings.Join(Types(), ", "))
	}
	u, err := c.url()
	if err != nil {
		return c, err
	}
	setDefault(&c.Every, DefaultEvery)
	setDefault(&c.Buffer.Age, DefaultAge)
	setDefault(&c.Timeout, DefaultTimeout)
	setDefault(&c.Probability, 1)
	if c.Buffer.Dir == "" {
		setDefault(&c.Buffer.Max, DefaultMaxMemory)
	}
	setDefault(&c.Buffer.Max, DefaultMax)
	switch {
	case c.Every < time.Second || c.Every > 10*time.Minute:
		return c, fmt.Errorf("every: %v is not between 1s and 10m", c.Every)
	case !(c.Probability > 0 && c.Probability <= 1):
		return c, fmt.Errorf("probability: %v is not more than 0 and at most 1", c.Probability)
	case c.Buffer.Max < 1<<20:
		return c, fmt.Errorf("buffer: max: %d bytes are too few, it must be at least 1MB", c.Buffer.Max)
	case c.Buffer.Age < 2*c.Every:
		return c, fmt.Errorf("buffer: age: %v is less than two times every, which is %v", c.Buffer.Age, c.Every)
	case p.oldest > 0 && c.Buffer.Age > p.oldest:
		return c, fmt.Errorf("buffer: age: %v is more than the %v that a %s server accepts", c.Buffer.Age, p.oldest, c.Type)
	case c.Timeout < time.Second || c.Timeout > 10*time.Minute:
		return c, fmt.Errorf("timeout: %v is not between 1s and 10m", c.Timeout)
	case (c.TLS.Cert == "") != (c.TLS.Key == ""):
		return c, errors.New("tls: cert and key belong together: one of them is missing")
	case u.Scheme == "http" && c.TLS != (TLS{}):
		return c, fmt.Errorf("tls: the url begins with http://, so that no TLS is used: %s", u.Redacted())
	case strings.ContainsAny(c.Tenant, "\r\n\x00"):
		return c, errors.New("tenant: it contains control characters")
	}
	return c, nil
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// url returns the parsed URL.
func (c Config) url() (*url.URL, error) {
	if c.URL == "" {
		return nil, errors.New("url is missing: where the server listens, such as http://localhost:4040")
	}
	u, err := url.Parse(c.URL)
	var bad *url.Error
	switch {
	case errors.As(err, &bad):
		return nil, fmt.Errorf("url: it cannot be read: %w", bad.Err) // without the URL, which may have a password
	case err != nil:
		return nil, fmt.Errorf("url: %w", err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("url: it must begin with http:// or https://: %s", u.Redacted())
	case u.Hostname() == "":
		return nil, fmt.Errorf("url: it names no host: %s", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("url: nothing may follow the path: %s", u.Redacted())
	}
	return u, nil
}

// loopback reports whether a URL's host is this machine.
func loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
