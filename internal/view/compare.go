package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/candid-profiler/candid/internal/flame"
)

// keptPairs is how many pairs of recordings a server keeps: one, and the one that somebody
// looked at before, or the same the other way round.
const keptPairs = 2

// comparison is two of a server's recordings as one, made when a page first asks for it.
type comparison struct {
	of   [2]int // before and after
	once sync.Once
	r    *Recording
	err  error
}

// recording gives what a page calls N, or BEFORE-AFTER: two that are compared. It is nil
// for what is not served.
func (s *Server) recording(name string) (*Recording, error) {
	index := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil || n >= len(s.recordings) {
			return -1
		}
		return n
	}
	before, after, two := strings.Cut(name, "-")
	if !two {
		if n := index(name); n >= 0 {
			return s.recordings[n], nil
		}
		return nil, nil
	}
	of := [2]int{index(before), index(after)}
	if of[0] < 0 || of[1] < 0 {
		return nil, nil
	}
	return s.compare(of)
}

func (s *Server) compare(of [2]int) (*Recording, error) {
	s.mu.Lock()
	i := slices.IndexFunc(s.pairs, func(c *comparison) bool { return c.of == of })
	c := &comparison{of: of}
	if i >= 0 {
		c = s.pairs[i]
		s.pairs = slices.Delete(s.pairs, i, i+1)
	}
	s.pairs = append(s.pairs, c) // it goes last
	if len(s.pairs) > keptPairs {
		s.pairs = slices.Delete(s.pairs, 0, 1)
	}
	s.mu.Unlock()
	c.once.Do(func() { c.r, c.err = pairOf(s.recordings[of[0]], s.recordings[of[1]]) })
	if c.err != nil { // another time it may go
		s.mu.Lock()
		s.pairs = slices.DeleteFunc(s.pairs, func(x *comparison) bool { return x == c })
		s.mu.Unlock()
	}
	return c.r, c.err
}

// pairOf makes one of two recordings that are served. What does not grow any more stays
// as it is, and is read without a lock.
func pairOf(before, after *Recording) (*Recording, error) {
	for _, r := range []*Recording{before, after} {
		r.lock.RLock()
		growing := r.growing
		r.lock.RUnlock()
		switch name := flame.Visible(r.name); {
		case r.pair:
			return nil, fmt.Errorf("%w: %s is a comparison already", ErrQuery, name)
		case growing:
			return nil, fmt.Errorf("%w: %s is still being recorded; it can be compared when that has ended", ErrQuery, name)
		}
	}
	return OpenPair([2]string{before.name, after.name}, before.p, after.p)
}
