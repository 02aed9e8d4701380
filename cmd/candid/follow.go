package main

import (
	"context"
	"os"
	"time"

	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/view"
)

// othersRest is how long other profilers must not have written to a recording for it to count as
// ended: the JDK writes at least every second, others when they have something.
const othersRest = 20 * time.Second

// growing is a file that is being written, as a page follows it.
type growing struct {
	r       *view.Recording
	path    string
	written func() bool // reports whether it is still being written
}

// follows opens a file that is being written as a growing one; nil if it is not being written.
func follows(path string) *growing {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var head [jfr.Sniffed]byte
	st, err := f.Stat()
	// Only its changes show that another program writes the file.
	within := func(rest time.Duration) bool {
		_, changed, err := view.State(path)
		return err == nil && time.Since(changed) < rest
	}
	if err == nil && st.IsDir() && within(jfr.Lately) {
		return &growing{path: path, r: view.OpenGrowing(path), written: func() bool { return within(othersRest) }}
	}
	if err != nil || !st.Mode().IsRegular() {
		return nil
	}
	n, _ := f.ReadAt(head[:], 0)
	packed := jfr.IsPacked(head[:n])
	if !packed && !jfr.Is(head[:n]) {
		return nil
	}
	g := &growing{path: path, written: func() bool { return jfr.WrittenNow(path) }}
	switch {
	case g.written():
	case !packed && jfr.ChangedLately(f) && jfr.NewTail(f).Others():
		g.written = func() bool { return within(othersRest) }
	default:
		return nil
	}
	g.r = view.OpenGrowing(path)
	return g
}

// follow updates a page as a file grows, and prints when that is over.
func (g *growing) follow(ctx context.Context, say func(string)) {
	err := view.Follow(ctx, g.r, g.path, g.written)
	switch {
	case err != nil:
		say("the page of " + g.path + " goes on without what comes now: " + err.Error())
	case ctx.Err() == nil:
		say("the recording has ended; the page shows all of it")
	}
}
