package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
)

// The rules of Pyroscope's distributor (pkg/validation and pkg/distributor of 2.x, and measured).
const (
	oldestProfile = time.Hour
	newestProfile = 10 * time.Minute
	bytesASecond  = 4 << 20
	maxProfile    = 4 << 20
	maxStacks     = 16000
	maxDepth      = 1000
	maxLabelNames = 30
	maxLabelValue = 2048
)

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.]*$`)

// store is what a server keeps.
type store struct {
	mu        sync.Mutex
	Requests  int
	Series    []series
	Truncated int            // stacks that were too deep
	Refused   map[string]int // by reason
	allowed   float64        // bytes of the rate limit
	last      time.Time
}

// series is a profile that arrived: its labels, when it was taken, and the sum of each value of each
// stack.
type series struct {
	Labels   map[string]string
	Time     int64
	Duration int64
	Bytes    int                         // uncompressed
	Sums     map[string]map[string]int64 // by type of value and stack, innermost function first
}

func (s *store) refuse(code connect.Code, reason, format string, args ...any) error {
	s.Refused[reason]++
	return connect.NewError(code, fmt.Errorf(format, args...))
}

// Push does what the distributor does: it tries each series, and fails if one of them fails.
func (s *store) Push(_ context.Context, r *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Requests++
	var failed error
	for _, one := range r.Msg.Series {
		labels := map[string]string{}
		for _, l := range one.Labels {
			if _, twice := labels[l.Name]; twice {
				return nil, s.refuse(connect.CodeInvalidArgument, "duplicate_label_names", "label %s twice", l.Name)
			}
			labels[l.Name] = l.Value
		}
		for _, sample := range one.Samples {
			failed = errors.Join(failed, s.push(labels, sample.RawProfile))
		}
	}
	if failed != nil {
		return nil, failed
	}
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

func (s *store) push(labels map[string]string, raw []byte) error {
	size := len(raw)
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return s.refuse(connect.CodeUnknown, "unknown", "%v", err)
		}
		if raw, err = io.ReadAll(z); err != nil {
			return s.refuse(connect.CodeUnknown, "unknown", "%v", err)
		}
	}
	if len(raw) > maxProfile {
		return s.refuse(connect.CodeInvalidArgument, "profile_size_limit", "%d bytes", len(raw))
	}
	p, err := profile.ParseUncompressed(raw)
	if err != nil {
		return s.refuse(connect.CodeUnknown, "unknown", "garbage: %v", err) // a 500, as measured
	}
	now := time.Now()
	s.allowed = min(s.allowed+now.Sub(s.last).Seconds()*bytesASecond, 2*bytesASecond)
	s.last = now
	if s.allowed < float64(len(raw)) {
		return s.refuse(connect.CodeResourceExhausted, "rate_limited", "more than 4 MiB/s") // 429, without Retry-After
	}
	s.allowed -= float64(len(raw))
	switch {
	case len(labels) > maxLabelNames:
		return s.refuse(connect.CodeInvalidArgument, "max_label_names_per_series", "%d labels", len(labels))
	case labels["__name__"] == "":
		return s.refuse(connect.CodeInvalidArgument, "labels_invalid", "no __name__")
	case labels["service_name"] == "":
		return s.refuse(connect.CodeInvalidArgument, "missing_labels", "no service_name")
	}
	for name, value := range labels {
		if !labelName.MatchString(name) || !utf8.ValidString(value) || len(value) > maxLabelValue {
			return s.refuse(connect.CodeInvalidArgument, "labels_invalid", "label %q=%q", name, value)
		}
	}
	if at := time.Unix(0, p.TimeNanos); p.TimeNanos > 0 && (now.Sub(at) > oldestProfile || at.Sub(now) > newestProfile) {
		return s.refuse(connect.CodeInvalidArgument, "not_in_ingestion_window", "a profile of %v", at)
	}
	if len(p.Sample) > maxStacks {
		return s.refuse(connect.CodeInvalidArgument, "samples_limit", "%d samples", len(p.Sample))
	}
	for _, t := range p.SampleType {
		if strings.Contains(t.Type, "-") {
			return s.refuse(connect.CodeInvalidArgument, "malformed_profile", "sample type contains -")
		}
	}
	s.keep(labels, p, size)
	return nil
}

// keep keeps a profile. Samples with labels become series of their own.
func (s *store) keep(labels map[string]string, p *profile.Profile, size int) {
	byLabels := map[string]*series{}
	for _, sample := range p.Sample {
		all := map[string]string{}
		for k, v := range labels {
			all[k] = v
		}
		for k, v := range sample.Label {
			all[k] = v[0]
		}
		key := fmt.Sprint(all)
		one := byLabels[key]
		if one == nil {
			one = &series{Labels: all, Time: p.TimeNanos, Duration: p.DurationNanos, Bytes: size, Sums: map[string]map[string]int64{}}
			byLabels[key] = one
		}
		if len(sample.Location) > maxDepth {
			sample.Location = sample.Location[len(sample.Location)-maxDepth:]
			s.Truncated++
		}
		stack := stackOf(sample)
		for i, t := range p.SampleType {
			if one.Sums[t.Type] == nil {
				one.Sums[t.Type] = map[string]int64{}
			}
			one.Sums[t.Type][stack] += sample.Value[i]
		}
	}
	keys := make([]string, 0, len(byLabels))
	for k := range byLabels {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		s.Series = append(s.Series, *byLabels[k])
	}
}

// stackOf returns the names of a sample's functions, the innermost first.
func stackOf(sample *profile.Sample) string {
	var names []string
	for _, l := range sample.Location {
		for _, line := range l.Line {
			names = append(names, line.Function.Name)
		}
	}
	return strings.Join(names, " < ")
}

// ServeHTTP answers what a test asks: everything that arrived.
func (s *store) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(s)
}

// listen prints the URL of a new listener.
func listen() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Printf("http://%s\n", l.Addr())
	}
	return l, err
}

// ended returns when standard input ends.
func ended() { _, _ = io.Copy(io.Discard, os.Stdin) }

// pyroscope serves Pyroscope's push API, and /got. With the argument "unlimited" there is no limit of the
// rate.
func pyroscope(args []string) error {
	s := &store{Refused: map[string]int{}, allowed: 2 * bytesASecond, last: time.Now()}
	if slices.Contains(args, "unlimited") {
		s.last = time.Now().Add(1000 * time.Hour)
		s.allowed = 1 << 50
	}
	l, err := listen()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(pushv1connect.NewPusherServiceHandler(s))
	mux.Handle("/got", s)
	go func() { _ = http.Serve(l, mux) }()
	ended()
	return nil
}
