package view

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestFollowTellsWhatWasDoneToTheFile checks that what was read stays, and that the reason says
// what somebody did to the file. The file that record puts in the place of its own is not reported.
func TestFollowTellsWhatWasDoneToTheFile(t *testing.T) {
	p := profiletest.Server(500, 4000, 20)
	p.Meta.Start = time.Now().Add(-time.Hour)
	const read = 3000
	written := func(start time.Time, samples int) []byte {
		t.Helper()
		q := *p
		q.Meta.Start, q.Samples = start, p.Samples[:samples]
		var b bytes.Buffer
		if err := jfr.Write(&b, &q); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	other := written(time.Now(), 100)
	over := func(w *writer, b []byte) {
		if err := errors.Join(os.WriteFile(w.path+".new", b, 0o600), os.Rename(w.path+".new", w.path)); err != nil {
			t.Error(err)
		}
	}
	cut := func(w *writer, size int64) {
		if err := os.Truncate(w.path, size); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		do      func(w *writer)
		goes    bool // it is still being written
		says    string
		samples int
	}{
		"another took its name":          {func(w *writer) { over(w, other) }, false, "another recording, which began 20", read},
		"another that is written":        {func(w *writer) { over(w, other) }, true, "another recording, which began 20", read},
		"another was written over it":    {func(w *writer) { cut(w, 0); _ = os.WriteFile(w.path, other, 0o600) }, true, "another recording, which began 20", read},
		"its own, with filters":          {func(w *writer) { over(w, written(p.Meta.Start, 500)) }, false, "", 500},
		"cut":                            {func(w *writer) { cut(w, 5000) }, true, "became shorter while it was followed", read},
		"cut at its end":                 {func(w *writer) { cut(w, 5000) }, false, "became shorter while it was followed", read},
		"emptied":                        {func(w *writer) { cut(w, 0) }, true, "became shorter while it was followed", read},
		"cut, and what is written later": {func(w *writer) { cut(w, 5000); w.to(4000) }, true, "was cut or written over while it was followed", read},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWriter(t, p)
			w.to(read)
			r := OpenGrowing("app.jfr")
			looks := 0
			err := Follow(t.Context(), r, w.path, func() bool {
				if looks++; looks == 2 {
					c.do(w)
					return c.goes
				}
				return looks < 5
			})
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "is shown") || strings.Contains(err.Error(), "malformed")) {
				t.Errorf("it ends with %v, want %q", err, c.says)
			}
			if len(r.p.Samples) != c.samples || r.growing || (r.stopped == "") != (c.says == "") {
				t.Errorf("%d samples, want %d; growing: %v, stopped: %q", len(r.p.Samples), c.samples, r.growing, r.stopped)
			}
		})
	}
}

// TestPageKeepsWhatWasReplaced checks that the page does not switch to another recording that has
// replaced the one it follows, and says so.
func TestPageKeepsWhatWasReplaced(t *testing.T) {
	t.Parallel()
	p := profiletest.Server(500, 3000, 20)
	p.Meta.Start = time.Now().Add(-time.Hour)
	w := newWriter(t, p)
	r := OpenGrowing("app.jfr")
	w.to(2000)
	var gone atomic.Bool
	over := make(chan error, 1)
	go func() { over <- Follow(t.Context(), r, w.path, func() bool { return !gone.Load() }) }()
	b := openView(t, served(t, r))
	b.open("#tab=methods")
	b.Until("document.querySelectorAll('#pane-methods .grid-row').length > 3 && !candid.busy()")
	b.same("before", profile.Filter{})
	q := *profiletest.Java()
	q.Meta.Start = time.Now()
	var other bytes.Buffer
	if err := errors.Join(jfr.Write(&other, &q), os.WriteFile(w.path+".new", other.Bytes(), 0o600), os.Rename(w.path+".new", w.path)); err != nil {
		t.Fatal(err)
	}
	gone.Store(true)
	if err := <-over; err == nil || !strings.Contains(err.Error(), "another recording") {
		t.Errorf("following ends with %v", err)
	}
	b.Until("!document.querySelector('.alert').hidden && document.querySelector('.alert').textContent.includes('another recording, which began') && !candid.busy()")
	b.Until("document.querySelector('.facts').textContent.includes('not followed to its end')")
	b.same("after", profile.Filter{})
}
