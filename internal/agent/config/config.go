// Package config reads the file of candid agent: one YAML document, whose every key is known, and
// whose mistakes are reported by line.
package config

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Config is what a file says, with the defaults where it says nothing.
type Config struct {
	Path     string        // of the file; "" if it was not read from one
	Rate     float64       // samples per second of CPU time
	Wall     bool          // also sample wall-clock time
	OffCPU   bool          // also sample time off the CPU
	MinSleep time.Duration // shortest time off the CPU that is sampled
	Rules    []Rule        // the first that matches names the service
	Labels   map[string]string
	Store    Store
	Listen   Listen
	Push     []Push
	Limits   Limits
	Capture  Capture
	Socket   string // path of the socket for candid agent status; "" for the default
}

// Rule names the service of the processes that match all of its patterns.
type Rule struct {
	Line    int            // in the file
	Exe     string         // base name or path of the program, a glob; "" matches all
	Cmdline *regexp.Regexp // on the command line, joined by spaces; nil matches all
	Cgroup  string         // glob of the path, or a part of it; "" matches all
	User    string         // name or number; "" matches all
	Name    string         // may have $1 to $9 and ${name} from Cmdline
}

// Store says where history is kept, and how much of it.
type Store struct {
	Dir     string        // "" keeps none
	Keep    time.Duration // 0: as long as there is room
	Max     int64         // bytes; 0: as much as there is room for
	MinFree Free          // what is left free on the file system
}

// Free is an amount of space: a share of the file system, or bytes.
type Free struct {
	Share float64 // 0 to 1
	Bytes int64
}

// String returns it as it is written in a file.
func (f Free) String() string {
	if f.Share > 0 {
		return fmt.Sprintf("%g%%", f.Share*100)
	}
	return Bytes(f.Bytes)
}

// Listen says where metrics and the page are served.
type Listen struct {
	Line      int    // in the file
	Address   string // host:port, or the path of a unix socket; "" serves nothing
	TLS       TLS
	TokenFile string // holds the token that requests must bring; "" asks for none
}

// Unix reports whether the address is the path of a unix socket.
func (l Listen) Unix() bool { return strings.HasPrefix(l.Address, "/") }

// TLS names the files of a connection's certificates; empty names are not used.
type TLS struct{ CA, Cert, Key string }

// Push says where profiles are sent.
type Push struct {
	Line        int // in the file
	Type        string
	URL         string
	Every       time.Duration
	TLS         TLS
	TokenFile   string
	Tenant      string
	Buffer      Buffer
	Probability float64 // share of hosts that send, 0 to 1
}

// Buffer bounds what waits on disk to be sent.
type Buffer struct {
	Max int64 // bytes
	Age time.Duration
}

// Limits are what the agent may use itself.
type Limits struct {
	CPU    float64 // share of the machine's CPUs, 0 to 1; 0: no limit
	Memory int64   // bytes of resident memory; 0: no limit
}

// Capture bounds captures at a higher rate.
type Capture struct {
	MaxRate     float64
	MaxDuration time.Duration
	Concurrent  int // how many at once; 0 permits none
	When        []Threshold
}

// Threshold begins a capture when a service uses much CPU.
type Threshold struct {
	Line     int
	Service  string        // its name, or a glob
	CPUs     float64       // more than so many CPUs
	For      time.Duration // for so long
	Duration time.Duration // of the capture
	Rate     float64       // of the capture
	Pause    time.Duration // before the same service is captured again
}

// DefaultRate is the samples per second if the file does not say how many: low enough to be left on
// for good, and in lockstep with nothing.
const DefaultRate = 19

// Default returns what an empty file means.
func Default() *Config {
	return &Config{
		Rate: DefaultRate, MinSleep: 10 * time.Millisecond, Labels: map[string]string{},
		Store:   Store{Keep: 7 * 24 * time.Hour, Max: 2e9, MinFree: Free{Share: 0.1}},
		Limits:  Limits{CPU: 0.02, Memory: 200e6},
		Capture: Capture{MaxRate: 999, MaxDuration: time.Minute, Concurrent: 1},
	}
}

// Problem is something wrong at a line of a file.
type Problem struct {
	Line int // 0: the file as a whole
	Text string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Text)
}

// Error is what is wrong with a file.
type Error struct {
	Path     string
	Problems []Problem // by line, at least one
}

func (e *Error) Error() string {
	list := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		list[i] = p.String()
	}
	return e.Path + ": " + strings.Join(list, "; ")
}
