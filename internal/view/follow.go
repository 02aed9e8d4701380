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

// How often a file that is being written is checked, and the largest share of a CPU that reading it
// may take: one part in followShare.
const (
	followEvery = 500 * time.Millisecond
	followShare = 4
)

// Follow keeps r in step with a JFR file, or a JVM's repository, that is being written, until
// written reports that nobody writes it any more or ctx ends. Then r is what a reader of the whole
// file has. r must come from OpenGrowing. candid's own files are read piece by piece. Files of
// other profilers are read from the beginning each time that they have changed, because they say
// only at the end of a chunk what is in it. If following fails, r keeps what it has and says why it
// does not grow, also if the file is not any more the one that was read. A panic of candid's own is
// returned as an error too, and costs no more.
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
		last := !written() // asked first: everything written before is read then
		begun := time.Now()
		if err := undisturbed(f, path, tail); err != nil {
			return err
		}
		err := look()
		if errors.Is(err, jfr.ErrOthers) {
			look = others(r, path)
			err = look()
		}
		// A JVM deletes its repository when it ends: the page keeps what was there.
		if repository && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, jfr.ErrNoRepository)) {
			return r.Finish(nil)
		}
		if err != nil {
			return disturbed(err, f, path, tail)
		}
		if last {
			p, err := format.Read(path)
			if err != nil {
				return disturbed(err, f, path, tail)
			}
			if began := tail.Began(); began != 0 && p.Meta.Start.UnixNano() != began {
				return replaced(path, p.Meta.Start)
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

// undisturbed returns an error that says what somebody did to a file of candid's of which a part
// was read: it holds another recording now, or a part of what was read is gone. Another inode is no
// sign: record replaces its own file if it has filters.
func undisturbed(f *os.File, path string, tail *jfr.Tail) error {
	began := tail.Began()
	if began == 0 {
		return nil
	}
	if now := start(path); now != 0 && now != began {
		return replaced(path, time.Unix(0, now))
	}
	if st, err := f.Stat(); err == nil && st.Size() < tail.Read() {
		return fmt.Errorf("%s became shorter while it was followed: what was read until then is shown", path)
	}
	return nil
}

// disturbed returns the error of reading on, or what was done to the file if that is the cause.
func disturbed(err error, f *os.File, path string, tail *jfr.Tail) error {
	if why := undisturbed(f, path, tail); why != nil {
		return why
	}
	if tail.Began() != 0 && errors.Is(err, jfr.ErrMalformed) {
		return fmt.Errorf("%s was cut or written over while it was followed: what was read until then is shown", path)
	}
	return err
}

func replaced(path string, began time.Time) error {
	return fmt.Errorf("another recording, which began %s, took the place of %s: what was read of the one before is shown; view the file again to see the new one",
		began.Format(time.DateTime), path)
}

// start returns when the recording that a path leads to now began, ns since 1970; 0 if that is not
// known.
func start(path string) int64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	tail, err := jfr.OpenTail(f)
	if err != nil {
		return 0
	}
	return tail.Start()
}

// pieces returns a function that reads on in a file of candid's.
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

// others returns a function that reads the file of another profiler, or a JVM's repository, if it
// has changed. A failure to read it is no error: it may be in the middle of a change.
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

// State returns what shows whether a file, or a JVM's repository, has changed: its size in bytes,
// and when it was last written.
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
