package store

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// filled returns a store of some blocks, and the sums of each block.
func filled(t *testing.T, dir string, seed uint64, blocks int) (each []map[string]total) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	w := create(t, dir, Options{})
	for i := range blocks {
		at := noon.Add(time.Duration(i) * 30 * time.Second)
		p := made(rnd, at, 4+i, 120)
		each = append(each, totals(p, map[string]total{}))
		put(t, w, p, at)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return each
}

func everything(t *testing.T, dir string) (*profile.Profile, *Reader) {
	t.Helper()
	r := open(t, dir)
	p, err := r.Profile(Query{From: noon.Add(-240 * time.Hour), To: noon.Add(240 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return p, r
}

func sumOf(list ...map[string]total) map[string]total {
	out := map[string]total{}
	for _, m := range list {
		for k, v := range m {
			out[k] = total{out[k].n + v.n, out[k].weight + v.weight}
		}
	}
	return out
}

func weight(m map[string]total) (w uint64) {
	for _, v := range m {
		w += v.weight
	}
	return w
}

// Whatever the length to which a crash cut one of the files: the blocks that are whole are there, a
// reader calls nothing else damaged, and a writer goes on without making up anything.
func TestCutFiles(t *testing.T) {
	const blocks = 4
	whole := t.TempDir()
	each := filled(t, whole, 5, blocks)
	rnd := rand.New(rand.NewPCG(9, 9))
	for file := range filesOfSegment {
		name := filepath.Join(dayOf(noon), fileNames[file])
		data, err := os.ReadFile(filepath.Join(whole, name))
		if err != nil {
			t.Fatal(err)
		}
		cuts := []int{0, 1, headerSize - 1, headerSize, len(data) - 1, len(data) / 2}
		for range 4 {
			cuts = append(cuts, rnd.IntN(len(data)))
		}
		for _, cut := range cuts {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), data[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			p, _ := everything(t, dir)
			got := totals(p, map[string]total{})
			if file == fileOfSamples {
				n := bytes.Count(data[:cut], []byte(magic))
				if n > 0 && !maps.Equal(got, sumOf(each[:n]...)) && !maps.Equal(got, sumOf(each[:n-1]...)) {
					t.Errorf("%s cut to %d bytes of %d: not the first %d blocks", name, cut, len(data), n)
				}
			} else if weight(got) != weight(sumOf(each...)) {
				t.Errorf("%s cut to %d bytes of %d: samples are lost", name, cut, len(data))
			}
			// A writer goes on.
			w := create(t, dir, Options{})
			more := made(rand.New(rand.NewPCG(77, 1)), noon.Add(time.Hour), 3, 100)
			put(t, w, more, noon.Add(time.Hour))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			after, r := everything(t, dir)
			if want := sumOf(got, totals(more, map[string]total{})); !maps.Equal(totals(after, map[string]total{}), want) {
				t.Errorf("%s cut to %d bytes: after another profile it is not the sum of both; %q", name, cut, r.Damage())
			}
		}
	}
}

// A byte that changed in the middle of a file takes its block with it, or what the block named, and
// nothing else; a reader says so.
func TestDamagedBlocks(t *testing.T) {
	const blocks = 5
	whole := t.TempDir()
	each := filled(t, whole, 6, blocks)
	rnd := rand.New(rand.NewPCG(10, 9))
	for file := range filesOfSegment {
		name := filepath.Join(dayOf(noon), fileNames[file])
		data, err := os.ReadFile(filepath.Join(whole, name))
		if err != nil {
			t.Fatal(err)
		}
		last := bytes.LastIndex(data, []byte(magic))
		for range 8 {
			dir, at := t.TempDir(), rnd.IntN(last)
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			bad := slices.Clone(data)
			bad[at] ^= 1 << rnd.IntN(8)
			if err := os.WriteFile(filepath.Join(dir, name), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			p, r := everything(t, dir)
			got := totals(p, map[string]total{})
			if d := r.Damage(); len(d) == 0 || !strings.Contains(d[0], name) {
				t.Errorf("%s: byte %d changed, and the damage is %q", name, at, d)
			}
			if file == fileOfSamples {
				hit := bytes.Count(data[:at+1], []byte(magic)) - 1
				if i := bytes.LastIndex(data[:min(at+4, len(data))], []byte(magic)); i >= 0 && i+4 > at {
					hit = bytes.Count(data[:i+4], []byte(magic)) - 1
				}
				left := slices.Delete(slices.Clone(each), hit, hit+1)
				if !maps.Equal(got, sumOf(left...)) {
					t.Errorf("%s: byte %d changed, and not only block %d is lost", name, at, hit)
				}
			} else if weight(got) != weight(sumOf(each...)) {
				t.Errorf("%s: byte %d changed, and samples are lost", name, at)
			}
			w := create(t, dir, Options{})
			more := made(rand.New(rand.NewPCG(78, 1)), noon.Add(time.Hour), 3, 100)
			put(t, w, more, noon.Add(time.Hour))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			after, _ := everything(t, dir)
			if want := sumOf(got, totals(more, map[string]total{})); !maps.Equal(totals(after, map[string]total{}), want) {
				t.Errorf("%s: byte %d changed: after another profile it is not the sum of both", name, at)
			}
		}
	}
}

// A clock that is set back or forth, over midnight and by years, loses nothing, and no day is deleted
// because of it.
func TestClockSteps(t *testing.T) {
	dir, rnd := t.TempDir(), rand.New(rand.NewPCG(11, 1))
	w := create(t, dir, Options{Keep: 48 * time.Hour})
	want := map[string]total{}
	now := time.Now().Truncate(time.Second)
	for _, step := range []time.Duration{0, 30 * time.Second, -time.Hour, -25 * time.Hour, 60 * time.Second, 9000 * time.Hour, 90 * time.Second, 10 * time.Second} {
		p := made(rnd, now.Add(step), 3, 100)
		totals(p, want)
		put(t, w, p, now.Add(step))
	}
	r := open(t, dir)
	p, err := r.Profile(Query{From: now.Add(-48 * time.Hour), To: now.Add(10000 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(totals(p, map[string]total{}), want) || len(r.Damage()) > 0 {
		t.Errorf("what was stored is not there; %q", r.Damage())
	}
	// A range that ended before it began.
	if err := w.Append(made(rnd, now, 1, 10), func(int) string { return "s" }, now, now.Add(-time.Hour)); err != nil {
		t.Error(err)
	}
}

// Days that are too old are deleted, and the oldest ones if the store is too large; the current day's
// oldest part if nothing else is left.
func TestRetention(t *testing.T) {
	dir, rnd := t.TempDir(), rand.New(rand.NewPCG(12, 1))
	now := time.Now()
	w := create(t, dir, Options{})
	for days := 6; days >= 1; days-- {
		at := now.AddDate(0, 0, -days)
		put(t, w, made(rnd, at, 3, 100), at)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var said []string
	w = create(t, dir, Options{Keep: 72 * time.Hour, Log: func(line string) { said = append(said, line) }})
	put(t, w, made(rnd, now, 3, 100), now)
	list, err := days(dir)
	if err != nil || len(list) != 4 && len(list) != 5 || list[0] < dayOf(now.AddDate(0, 0, -4)) {
		t.Errorf("after a keep of three days there are %q, %v", list, err)
	}
	if len(said) < 2 || !strings.Contains(said[0], "older than") {
		t.Errorf("said %q", said)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 20
	w = create(t, dir, Options{Max: most})
	for i := range 150 {
		at := now.Add(time.Duration(i) * time.Second)
		p := made(rnd, at, 3, 1500)
		p.Processes[0].Command += strings.Repeat("x", i) // more bytes
		if err := w.Append(p, serviceOf(p), at, at.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if size := w.Size(); size > most+leastSegment+(1<<17) {
			t.Fatalf("the store takes %d bytes after %d profiles", size, i)
		}
	}
	real := int64(0)
	_ = filepath.Walk(dir, func(_ string, fi os.FileInfo, err error) error {
		if err == nil && fi.Mode().IsRegular() && fi.Name() != lockName {
			real += fi.Size()
		}
		return nil
	})
	if size := w.Size(); size != real {
		t.Errorf("Size is %d, the files have %d bytes", size, real)
	}
	// A disk that has to have more space than there is.
	free, _, err := freeSpace(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = create(t, t.TempDir(), Options{MinFree: int64(free) * 2})
	p := made(rnd, now, 1, 10)
	if err := w.Append(p, serviceOf(p), now, now.Add(time.Second)); !errors.Is(err, ErrNoSpace) {
		t.Errorf("without space: %v", err)
	}
}
