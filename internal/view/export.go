package view

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
)

// exports are the formats that the page offers, with the extension of each. Any format that candid
// writes is returned when it is asked for.
var exports = map[string]string{
	"pprof": ".pb.gz", "collapsed": ".collapsed", "speedscope": ".speedscope.json", "html": ".html", "text": ".txt", "json": ".json", "jfr": ".jfr",
	"otlp": ".otlp", "firefox": ".firefox.json",
}

// part returns what q chooses as a profile of its own, which shares everything except the samples
// with the recording's.
func (r *Recording) part(ctx context.Context, q *Query) (*profile.Profile, error) {
	c := r.choose(q)
	out := *r.p
	out.Samples = nil
	err := r.within(ctx, q.From, q.To, func(i int) {
		weight, ok := r.partOf(i, q.From, q.To)
		if !ok || !c.takes(r, i) {
			return
		}
		s := r.p.Samples[i]
		if s.Weight = weight; q.To > 0 {
			s.Time = min(s.Time, q.To)
		}
		out.Samples = append(out.Samples, s)
	})
	if err != nil {
		return nil, err
	}
	part := &out
	if q.rewrite != nil && q.rewrite.raw {
		out.Frames = slices.Clone(out.Frames)
		out.ShowSkid()
	}
	if q.rewrite.others() { // every file contains how threads start
		w, err := q.rewrite.rewriting(r.p)
		if err != nil {
			return nil, err
		}
		part = w.Apply(part)
	}
	if q.Event < len(part.Events) {
		part = profile.Only(part, q.Event)
	}
	return part, nil
}

// export writes what the page shows as a file, and returns a name for it.
func (r *Recording) export(ctx context.Context, v url.Values) (name string, data []byte, err error) {
	q, err := r.query(v)
	if err != nil {
		return "", nil, err
	}
	to := v.Get("format")
	extension, ok := exports[to]
	if !ok {
		return "", nil, fmt.Errorf("%w: no export is called %q", ErrQuery, to)
	}
	p, err := r.part(ctx, &q)
	if err != nil {
		return "", nil, err
	}
	var b bytes.Buffer
	if err := format.Write(&b, to, p, format.Options{}); err != nil {
		return "", nil, fmt.Errorf("export as %s: %w", to, err)
	}
	return fileStem(r.name) + extension, b.Bytes(), nil
}

// fileStem returns a name for a file that is downloaded from the recording. The name goes into a
// header, and into somebody's file system.
func fileStem(name string) string {
	base, _, _ := strings.Cut(filepath.Base(name), ".")
	base = strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, base)
	if base == "" || len(base) > 100 {
		base = "candid"
	}
	return base + "-part"
}
