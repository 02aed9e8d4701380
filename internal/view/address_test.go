package view

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestAddress opens the page's address as the page does: the queries that follow choose what the
// filter chooses.
func TestAddress(t *testing.T) {
	p := profiletest.Server(2500, 12_000, 30)
	r, err := Open("a", p)
	if err != nil {
		t.Fatal(err)
	}
	one := uint32(3)
	for _, f := range []profile.Filter{
		{},
		{Event: 1},
		{From: time.Duration(r.end / 4), To: time.Duration(r.end / 2)},
		{Thread: regexp.MustCompile(`1|3$`)},
		{OneThread: &one},
		{States: profile.StateSet(0).With(profile.StateRunning)},
		{Focus: regexp.MustCompile(`HashMap|[+&=#% ]`), Ignore: regexp.MustCompile(`a.*b`), To: time.Duration(r.end / 2)},
	} {
		address := Address(p, f, true)
		v, err := url.ParseQuery(strings.TrimPrefix(address, "#"))
		if err != nil || v.Get("split") != "thread" {
			t.Fatalf("%s: %v", address, err)
		}
		v.Del("split")
		q, err := r.query(v)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		got, err := r.Count(context.Background(), &q)
		if err != nil {
			t.Fatal(err)
		}
		if want := p.Select(f); got.Chosen != want.Chosen || got.All != want.All || got.Chosen.Samples == 0 {
			t.Errorf("%s chooses %+v of %+v, the filter %+v of %+v", address, got.Chosen, got.All, want.Chosen, want.All)
		}
	}
	if got := Address(p, profile.Filter{}, false); got != "" {
		t.Errorf("all is %q", got)
	}
}
