package main

import (
	"context"
	"os"
	"time"

	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/view"
)

// changedLately says whether a file was written to within the last seconds, where
// nothing better tells whether it still is.
func changedLately(f *os.File) bool {
	const lately = 5 * time.Second
	st, err := f.Stat()
	return err == nil && time.Since(st.ModTime()) < lately
}

// othersRest is how long other profilers write nothing to a recording before it
// counts as ended: the JDK's writes at least every second, others when they have
// something.
const othersRest = 20 * time.Second

// growing is a file that is being written, as a page follows it.
type growing struct {
	r       *view.Recording
	path    string
	written func() bool // still
}

// follows opens a file that is being written as one that grows; nil if it is none
// of those.
func follows(path string) *growing {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var head [4]byte
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	if n, _ := f.ReadAt(head[:], 0); !jfr.Is(head[:n]) {
		return nil
	}
	g := &growing{path: path, written: func() bool { return writtenNow(path) }}
	switch {
	case g.written():
	case changedLately(f) && jfr.NewTail(f).Others():
		// Nothing but its changes tells of those.
		g.written = func() bool {
			st, err := os.Stat(path)
			return err == nil && time.Since(st.ModTime()) < othersRest
		}
	default:
		return nil
	}
	g.r = view.OpenGrowing(path)
	return g
}

// follow keeps a page in step with a file and says when that is over.
func (g *growing) follow(ctx context.Context, say func(string)) {
	err := view.Follow(ctx, g.r, g.path, g.written)
	switch {
	case err != nil:
		say("the page of " + g.path + " goes on without what comes now: " + err.Error())
	case ctx.Err() == nil:
		say("the recording has ended; the page shows all of it")
	}
}
