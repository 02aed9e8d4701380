package view

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/format/jfr"
)

// How often a file that is written is looked at, and which part of a CPU reading
// it may take at most.
const (
	followEvery = 500 * time.Millisecond
	followShare = 4
)

// Follow keeps r in step with a JFR file, or a JVM's repository, that is being written, until written says
// that nobody writes it any more or ctx ends. Then r is what a reader of the whole
// file has. r is of OpenGrowing. candid's own files are read piece by piece, those of
// others from the beginning each time that they have changed: only at the end of a
// chunk do they say what is in it. If following fails, r keeps what it has and says
// why it does not grow; a fault of candid's is an error too, and costs no more.
func Follow(ctx context.Context, r *Recording, path string, written func() bool) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("candid has a fault, please report it: following %s: %v", path, fault)
		}
		if err != nil {
			r.stop(err)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	tail, err := jfr.OpenTail(f)
	if err != nil {
		return err
	}
	look := pieces(r, tail)
	st, err := f.Stat()
	repository := err == nil && st.IsDir()
	if repository {
		look = others(r, path)
	}
	for {
		last := !written() // asked first: what came before is read then
		begun := time.Now()
		err := look()
		if errors.Is(err, jfr.ErrOthers) {
			look = others(r, path)
			err = look()
		}
		// A JVM takes its repository away when it ends: the page has what was there.
		if repository && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, jfr.ErrNoRepository)) {
			return r.Finish(nil)
		}
		if err != nil {
			return err
		}
		if last {
			p, err := format.Read(path)
			if err != nil {
				return err
			}
			return r.Finish(p)
		}
		pause := time.NewTimer(max(followEvery, followShare*time.Since(begun)))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

// pieces gives what reads on in a file of candid's.
func pieces(r *Recording, tail *jfr.Tail) func() error {
	return func() error {
		samples, err := tail.Next()
		if err != nil {
			return err
		}
		if len(samples) > 0 || len(tail.Events()) != r.events() {
			r.Grow(Grown{Source: tail.Builder(), Events: tail.Events(), Syscalls: tail.Syscalls(), Losses: tail.Losses(), Samples: samples})
		}
		return nil
	}
}

// others gives what reads the file of another profiler, or a JVM's repository, if it
// has changed. That it cannot be read is no error: it may be in the middle of a change.
func others(r *Recording, path string) func() error {
	var size int64
	var changed time.Time
	return func() error {
		length, at, err := State(path)
		if err != nil || length == size && at.Equal(changed) {
			return err
		}
		size, changed = length, at
		p, err := format.Read(path)
		if err != nil {
			return nil
		}
		return r.replace(p, true)
	}
}

// State tells whether a file, or a JVM's repository, has changed: its size in bytes,
// and when it was written to.
func State(path string) (size int64, changed time.Time, err error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return 0, time.Time{}, err
	case st.IsDir():
		return jfr.RepositoryState(path)
	}
	return st.Size(), st.ModTime(), nil
}

func (r *Recording) events() int {
	r.lock.RLock()
	defer r.lock.RUnlock()
	return len(r.p.Events)
}
