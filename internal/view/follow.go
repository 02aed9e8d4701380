package view

import (
	"context"
	"errors"
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

// Follow keeps r in step with a file of candid's that is being written, until
// written says that nobody writes it any more or ctx ends. Then r is what a reader
// of the whole file has. r is of OpenGrowing.
func Follow(ctx context.Context, r *Recording, path string, written func() bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	tail := jfr.NewTail(f)
	for {
		last := !written() // asked first: what came before is read then
		begun := time.Now()
		samples, err := tail.Next()
		if err != nil {
			if errors.Is(err, jfr.ErrOthers) {
				return err
			}
			return errors.Join(err, r.Finish(nil))
		}
		if len(samples) > 0 || len(tail.Events()) != r.events() {
			r.Grow(Grown{Source: tail.Builder(), Events: tail.Events(), Syscalls: tail.Syscalls(), Losses: tail.Losses(), Samples: samples})
		}
		if last {
			p, err := format.Read(path)
			if err != nil {
				return errors.Join(err, r.Finish(nil))
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

func (r *Recording) events() int {
	r.lock.RLock()
	defer r.lock.RUnlock()
	return len(r.p.Events)
}
