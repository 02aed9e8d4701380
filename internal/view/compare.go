package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
)

// keptPairs is how many pairs of recordings a server keeps: the current one, and the one shown
// before it or the same pair swapped.
const keptPairs = 2

// comparison is two of a server's recordings as one, made when a page first asks for it.
type comparison struct {
	of   [2]int // indices of before and after
	once sync.Once
	r    *Recording
	err  error
}

// recording returns the recording that a page calls N, or the pair that it calls BEFORE-AFTER. It
// is nil if that is not served.
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
			return s.open(n)
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
	s.pairs = append(s.pairs, c) // moved to the end, as the latest
	if len(s.pairs) > keptPairs {
		s.pairs = slices.Delete(s.pairs, 0, 1)
	}
	s.mu.Unlock()
	c.once.Do(func() { c.r, c.err = s.pairOf(of) })
	if c.err != nil { // a failure is not kept: the next request tries again
		s.mu.Lock()
		s.pairs = slices.DeleteFunc(s.pairs, func(x *comparison) bool { return x == c })
		s.mu.Unlock()
	}
	return c.r, c.err
}

// pairOf makes one recording of two that are served. A recording that does not grow any more does
// not change, and is read without a lock.
func (s *Server) pairOf(of [2]int) (*Recording, error) {
	var names [2]string
	var two [2]*profile.Profile
	for i, n := range of {
		names[i] = s.name(n)
		r := s.opened(n)
		if r == nil {
			p, err := s.files[n].profile()
			if err != nil {
				return nil, err
			}
			two[i] = p
			continue
		}
		two[i] = r.p
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
	return OpenPair(names, two[0], two[1])
}

// file is the source of a recording that is not itself kept in memory.
type file struct {
	name string
	read func() (*profile.Profile, error)
}

func (f *file) profile() (*profile.Profile, error) {
	p, err := f.read()
	if err != nil {
		return nil, fmt.Errorf("read %s again: %w", flame.Visible(f.name), err)
	}
	return p, nil
}

// Compared is the part of the address, from # on, that shows how the second of two recordings
// differs from the first.
const Compared = "#recording=1&against=0"

// Compare gives a server without recordings two, before and after, which Compared shows. Only the
// joined recording is kept: to show them swapped, or one by itself, read returns one of them again,
// 0 or 1.
func (s *Server) Compare(names [2]string, before, after *profile.Profile, read func(which int) (*profile.Profile, error)) error {
	r, err := OpenPair(names, before, after)
	if err != nil {
		return err
	}
	for i, name := range names {
		s.files[i] = &file{name, func() (*profile.Profile, error) { return read(i) }}
	}
	s.recordings = make([]*Recording, len(names))
	c := &comparison{of: [2]int{0, 1}, r: r}
	c.once.Do(func() {})
	s.pairs = []*comparison{c}
	return nil
}

func (s *Server) name(n int) string {
	if r := s.opened(n); r != nil {
		return r.name
	}
	return s.files[n].name
}

// opened returns a recording that was opened by itself; nil if none was.
func (s *Server) opened(n int) *Recording {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recordings[n]
}

// open returns a recording like opened, and makes it ready first if need be.
func (s *Server) open(n int) (*Recording, error) {
	if r := s.opened(n); r != nil {
		return r, nil
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if r := s.opened(n); r != nil {
		return r, nil
	}
	p, err := s.files[n].profile()
	if err != nil {
		return nil, err
	}
	r, err := Open(s.files[n].name, p)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordings[n] = r
	return r, nil
}
