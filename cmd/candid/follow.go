package main

import (
	"context"
	"errors"
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

// follows opens a file that is being written as one that grows; nil if it is none
// of those.
func follows(path string) *view.Recording {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var head [4]byte
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	if n, _ := f.ReadAt(head[:], 0); !jfr.Is(head[:n]) || !writtenNow(path) {
		return nil
	}
	if _, err := jfr.NewTail(f).Next(); errors.Is(err, jfr.ErrOthers) {
		return nil
	}
	return view.OpenGrowing(path)
}

// follow keeps a page in step with a file and says when that is over.
func follow(ctx context.Context, r *view.Recording, path string, written func() bool, say func(string)) {
	err := view.Follow(ctx, r, path, written)
	switch {
	case err != nil:
		say("the page of " + path + " goes on without what comes now: " + err.Error())
	case ctx.Err() == nil:
		say("the recording has ended; the page shows all of it")
	}
}
