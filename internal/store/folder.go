package store

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The files of a segment. A day has one segment, or more if its tables could not be continued or
// became large: those of the segment n > 0 are called names.n and so on.
var fileNames = [...]string{"names", "nodes", "processes", "samples"}

const (
	fileOfNames = iota
	fileOfNodes
	fileOfProcesses
	fileOfSamples
	filesOfSegment
)

var fileKinds = [filesOfSegment]byte{kindNames, kindNodes, kindProcesses, kindSamples}

// place says which segment of which day.
type place struct {
	day string // 2006-01-02
	n   int
}

const dayForm = "2006-01-02"

func dayOf(t time.Time) string { return t.UTC().Format(dayForm) }

func (p place) path(dir string, file int) string {
	name := fileNames[file]
	if p.n > 0 {
		name += "." + strconv.Itoa(p.n)
	}
	return filepath.Join(dir, p.day, name)
}

func (p place) String() string {
	if p.n == 0 {
		return p.day
	}
	return fmt.Sprintf("%s (%d)", p.day, p.n)
}

// days returns the days of a store in their order.
func days(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range list {
		if _, err := time.Parse(dayForm, e.Name()); err == nil && e.IsDir() {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}

// segments returns the segments of a day in the order in which they were written, and the bytes of
// all their files.
func segments(dir, day string) (out []place, size int64, err error) {
	list, err := os.ReadDir(filepath.Join(dir, day))
	if err != nil {
		return nil, 0, err
	}
	for _, e := range list {
		base, number, more := strings.Cut(e.Name(), ".")
		n := 0
		if more {
			if n, err = strconv.Atoi(number); err != nil || n <= 0 || strconv.Itoa(n) != number {
				continue
			}
		}
		if !slices.Contains(fileNames[:], base) || !e.Type().IsRegular() {
			continue
		}
		if fi, err := e.Info(); err == nil {
			size += fi.Size()
		}
		if p := (place{day, n}); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b place) int { return cmp.Compare(a.n, b.n) })
	return out, size, nil
}
