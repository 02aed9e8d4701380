package store

import (
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// FuzzBlocks hands arbitrary content to everything that parses the content of a block.
func FuzzBlocks(f *testing.F) {
	dir := f.TempDir()
	w, err := Create(dir, Options{})
	if err != nil {
		f.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range 2 {
		at := noon.Add(time.Duration(i) * 30 * time.Second)
		p := made(rnd, at, 2, 30)
		if err := w.Append(p, serviceOf(p), at, at.Add(30*time.Second)); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	for i := range filesOfSegment {
		file, err := os.Open(place{day: dayOf(noon)}.path(dir, i))
		if err != nil {
			f.Fatal(err)
		}
		_, _ = scan(file, fileKinds[i], 0, func(h header, _ int64, body []byte) error {
			raw, err := body, error(nil)
			if h.codec != parted {
				raw, err = h.unpack(body, nil)
			}
			f.Add(uint8(i), raw)
			f.Add(uint8(i+filesOfSegment), raw)
			return err
		}, func(int64, int64, *header, error) {})
		_ = file.Close()
	}
	f.Fuzz(func(t *testing.T, file uint8, raw []byte) {
		if i := int(file) % filesOfSegment; i != fileOfSamples {
			t := newTables()
			t.strings = append(t.strings, "", "nanoseconds", "module")
			_ = t.add(i, 1+file/filesOfSegment%2, raw, nil)
			return
		}
		h := header{kind: kindSamples, from: noon.UnixNano(), to: noon.UnixNano() + 30e9, codec: parted, length: uint32(len(raw)), raw: maxBlock, sum: crc32.Checksum(raw, castagnoli)}
		if file/filesOfSegment%2 == 1 {
			h.codec, h.raw = stored, h.length
		}
		u, err := h.unpackParts(raw, unpacked{}, func(service uint32) bool { return service%2 == 0 })
		if err != nil {
			return
		}
		k, err := parseBlock(h, u)
		if err != nil {
			return
		}
		cut := newCut(k, noon.Add(3*time.Second), noon.Add(4*time.Second))
		_ = k.each(func(uint32) bool { return true }, func(e *entry, times []uint32) { cut.part(e, times) })
	})
}

// FuzzStore reads stores whose files are arbitrary, and writes to them.
func FuzzStore(f *testing.F) {
	dir := f.TempDir()
	w, err := Create(dir, Options{})
	if err != nil {
		f.Fatal(err)
	}
	p := made(rand.New(rand.NewPCG(1, 1)), noon, 1, 5)
	if err := w.Append(p, serviceOf(p), noon, noon.Add(30*time.Second)); err != nil {
		f.Fatal(err)
	}
	_ = w.Close()
	var files [filesOfSegment][]byte
	for i := range files {
		files[i], _ = os.ReadFile(place{day: dayOf(noon)}.path(dir, i))
	}
	f.Add(files[0], files[1], files[2], files[3])
	f.Add([]byte("cblk"), files[1], []byte{}, files[3])
	var pack packer // a new one for each input takes longer than all else
	f.Fuzz(func(t *testing.T, names, nodes, processes, samples []byte) {
		dir := inMemory(t)
		if err := os.MkdirAll(filepath.Join(dir, dayOf(noon)), 0o700); err != nil {
			t.Fatal(err)
		}
		for i, data := range [][]byte{names, nodes, processes, samples} {
			if err := os.WriteFile(place{day: dayOf(noon)}.path(dir, i), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		q := Query{From: noon.Add(-time.Hour), To: noon.Add(time.Hour)}
		for _, q.Keep = range []profile.Keep{profile.KeepSamples, profile.KeepSums} {
			if p, err := r.Profile(q); err == nil {
				if err := p.Check(); err != nil {
					t.Error(err)
				}
			}
		}
		_, _ = r.Services(q.From, q.To)
		_, _, _ = r.Range()
		w, err := Create(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.pack = pack
		if err := w.Append(p, serviceOf(p), noon, noon.Add(30*time.Second)); err == nil {
			if p, err := r.Profile(q); err == nil && p.SampleCount() == 0 {
				t.Error("what was appended is not there")
			}
		}
		pack = w.pack
		_ = w.Close()
	})
}

// inMemory returns a directory in memory, if there is such a file system: a Writer waits for the disk when it is closed,
// which takes longer than all else that a test of a small store does.
func inMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "candid-store-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
