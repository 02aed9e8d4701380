package clrgc

import (
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/emulate"
)

// Kind is a kind of collections, for each of which the collector keeps a record of the last one.
type Kind uint8

// The kinds, in the collector's order (gcinterface.h: gc_kind, less one).
const (
	Ephemeral  Kind = iota // of generation 0, or 0 and 1
	Full                   // of all generations, the program stands still
	Background             // of all generations, mostly while the program runs
	NumKinds
)

// State is what the collector has recorded since the program began.
type State struct {
	// Collections are how many collections collected each generation, as GC.CollectionCount counts: one
	// of generation 2 counts for 0 and 1 too. Background are those that ran beside the program.
	Collections [Generations]uint64
	Background  uint64
	// Paused is how long the program stood still for collections in all.
	Paused time.Duration
	// Running says that a background collection runs now.
	Running bool
	// Last are the last collections of each kind that have ended; Index is 0 if there was none.
	Last [NumKinds]Collection
}

// Collection is one collection, as GC.GetGCMemoryInfo describes it.
type Collection struct {
	Kind       Kind
	Index      uint64 // the first one of the program is 1
	Generation int    // the oldest one that was collected
	Compacting bool
	// Pauses are how long the program stood still for it: once, or twice for a background collection.
	Pauses [2]time.Duration

	// Sizes in bytes, after it:
	HeapSize      uint64 // objects and what is free between them
	Fragmentation uint64 // what is free between objects
	Committed     uint64 // memory that the collector has from the system
	Promoted      uint64 // objects that it found alive in the generations that it collected
	Heaps         [NumHeaps]Heap

	// Start is when the collection itself began, ns of the monotonic clock: for a blocking one, soon
	// after all threads stood still. Elapsed is how long it took. Both are 0 if another collection has
	// begun since, which has replaced them.
	Start   uint64
	Elapsed time.Duration
}

// Pause returns how long the program stood still for the collection.
func (c *Collection) Pause() time.Duration { return c.Pauses[0] + c.Pauses[1] }

// NumHeaps is how many parts a heap has: the generations, large objects, pinned objects.
const NumHeaps = 5

// HeapNames are the names of the parts of a heap.
var HeapNames = [NumHeaps]string{"Gen0", "Gen1", "Gen2", "LOH", "POH"}

// Heap is the size of a part of the heap before and after a collection, in bytes. Free is what of it was
// free between objects.
type Heap struct{ Before, FreeBefore, After, FreeAfter uint64 }

// Mark is what changes whenever a collection begins or ends.
type Mark struct {
	collections, paused uint64
	running             bool
}

// Mark reads only what shows that there was a collection. The error wraps ErrUnknown.
func (c *Collector) Mark() (m Mark, err error) {
	c.space.forget()
	return c.mark()
}

func (c *Collector) mark() (m Mark, err error) {
	if m.collections, err = c.number(collectionCount, 4, 0, 0); err != nil {
		return m, err
	}
	if m.paused, err = c.number(getTotalPauseDuration, 8); err != nil {
		return m, err
	}
	m.running, err = c.flag(isConcurrentGCInProgress)
	return m, err
}

// Quiet is Mark while the program does not stand still for a collection. Between two calls that return the same
// no collection has moved an object: one that was under way at the first call had been counted by then, and
// has been over since, which changes for how long the program has stood still. The error wraps ErrBusy or
// ErrUnknown.
func (c *Collector) Quiet() (m Mark, err error) {
	c.space.forget()
	if err := c.idle(); err != nil {
		return m, err
	}
	c.space.forget()
	return c.mark()
}

// Read reads everything that the collector has recorded, all of it at one moment. The records of
// collections that stop the program are written while it stands still, so they are whole if it runs
// before and after they were read and no collection came between; that of a background collection is
// written in a place of its own, which the collector makes the valid one at the end. The error wraps
// ErrBusy or ErrUnknown.
func (c *Collector) Read() (s State, at Mark, err error) {
	c.space.forget()
	if err := c.idle(); err != nil {
		return s, at, err
	}
	if at, err = c.mark(); err != nil {
		return s, at, err
	}
	c.space.forget()
	if err := c.read(&s); err != nil {
		return s, at, err
	}
	c.space.forget()
	again, err := c.mark()
	if err != nil {
		return s, at, err
	}
	if err := c.idle(); err != nil {
		return s, at, err
	}
	if again != at || s.Collections[0] != at.collections {
		return s, at, ErrBusy
	}
	s.Running, s.Paused = at.running, ticks(at.paused)
	c.place(&s)
	c.space.forget()
	if again, err = c.mark(); err == nil && again != at {
		err = ErrBusy
	}
	return s, at, err
}

// idle returns ErrBusy while the program stands still for a collection.
func (c *Collector) idle() error {
	busy, err := c.flag(isGCInProgressHelper, 0)
	if err == nil && busy {
		err = ErrBusy
	}
	return err
}

// ticks converts .NET's ticks of 100 ns.
func ticks(n uint64) time.Duration { return time.Duration(min(n, 1<<56)) * 100 }

// read reads the counts and the records.
func (c *Collector) read(s *State) (err error) {
	for g := range s.Collections {
		if s.Collections[g], err = c.number(collectionCount, 4, uint64(g), 0); err != nil {
			return err
		}
		if g > 0 && s.Collections[g] > s.Collections[g-1] {
			return fmt.Errorf("it has collected generation %d more often than %d: %w", g, g-1, ErrUnknown)
		}
	}
	if s.Background, err = c.number(collectionCount, 4, Generations-1, 1); err != nil {
		return err
	}
	for k := range s.Last {
		if s.Last[k], err = c.last(Kind(k)); err != nil {
			return err
		}
	}
	return nil
}

// Places of GetMemoryInfo's results in the memory of the call, in words, in the order of its parameters.
const (
	infoHeapSize      = 3
	infoFragmentation = 4
	infoCommitted     = 5
	infoPromoted      = 6
	infoIndex         = 9
	infoGeneration    = 10
	infoCompaction    = 12
	infoConcurrent    = 13
	infoHeaps         = 14 // four words for each part of the heap
	infoPauses        = infoHeaps + 4*NumHeaps
)

// last reads the record of the last collection of a kind.
func (c *Collector) last(kind Kind) (g Collection, err error) {
	var args []uint64
	for i := range infoHeaps + 1 {
		args = append(args, emulate.Scratch+8*uint64(i))
	}
	args = append(args, emulate.Scratch+8*infoPauses, uint64(kind)+1)
	if err := c.call(getMemoryInfo, shortCall, args...); err != nil {
		return g, err
	}
	whole := true
	word := func(i int, size uint8) uint64 {
		v, ok := c.machine.Stored(emulate.Scratch+8*uint64(i), size)
		whole = whole && ok
		return v
	}
	g = Collection{
		Kind: kind, Index: word(infoIndex, 8), Generation: int(word(infoGeneration, 4)), Compacting: word(infoCompaction, 1) != 0,
		HeapSize: word(infoHeapSize, 8), Fragmentation: word(infoFragmentation, 8), Committed: word(infoCommitted, 8), Promoted: word(infoPromoted, 8),
	}
	for i := range g.Heaps {
		at := infoHeaps + 4*i
		g.Heaps[i] = Heap{word(at, 8), word(at+1, 8), word(at+2, 8), word(at+3, 8)}
	}
	for i := range g.Pauses {
		g.Pauses[i] = ticks(word(infoPauses+i, 8))
	}
	concurrent := word(infoConcurrent, 1) != 0
	if !whole {
		return g, fmt.Errorf("its record of the last collection is not known: %w", ErrUnknown)
	}
	if kind == Background && !concurrent {
		// It was about to run in the background, and then a blocking one was chosen instead: only its
		// number was recorded.
		return Collection{Kind: kind}, nil
	}
	if full := kind != Ephemeral; g.Index != 0 && (g.Generation >= Generations || full != (g.Generation == Generations-1) || concurrent != (kind == Background)) {
		return g, fmt.Errorf("its record of a collection of kind %d says generation %d, concurrent %v: %w", kind, g.Generation, concurrent, ErrUnknown)
	}
	return g, nil
}

// place finds when the last collections began and how long they took. The collector keeps that for each
// generation, of the last collection that collected it.
func (c *Collector) place(s *State) {
	for k := range s.Last {
		g := &s.Last[k]
		var latest bool
		switch g.Kind {
		case Ephemeral:
			latest = g.Index == s.Collections[0]
		case Full:
			latest = !s.Running && g.Index > s.Last[Background].Index
		case Background:
			latest = !s.Running && g.Index > s.Last[Full].Index
		}
		if !latest || g.Index == 0 {
			continue
		}
		start, ok := c.milliseconds(getLastGCStartTime, uint64(g.Generation))
		elapsed, ok2 := c.milliseconds(getLastGCDuration, uint64(g.Generation))
		if ok && ok2 && start < 1<<53 && elapsed < 1<<53 {
			g.Start, g.Elapsed = start*1000, time.Duration(elapsed)*1000
		}
	}
}
