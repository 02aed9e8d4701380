package fileblocks

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// file makes a file of n bytes that are all different from their neighbours.
func file(t testing.TB, n int, seed uint64) (*os.File, []byte) {
	t.Helper()
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = rng.Read(b)
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, b
}

// Reads of any length at any offset have the same results as the file's own, including at its end,
// while blocks are dropped all the time.
func TestReads(t *testing.T) {
	c := newCache(5)
	var readers []*Reader
	var contents [][]byte
	for i := range 3 {
		f, b := file(t, 7*blockSize+i*1000, uint64(i))
		r := Open(f)
		r.cache = c
		readers, contents = append(readers, r), append(contents, b)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		i := rng.IntN(len(readers))
		want := bytes.NewReader(contents[i])
		off, n := rng.Int64N(int64(len(contents[i])+blockSize)), rng.IntN(blockSize+100)
		a, b := make([]byte, n), make([]byte, n)
		na, ea := readers[i].ReadAt(a, off)
		nb, eb := want.ReadAt(b, off)
		if na != nb || !bytes.Equal(a, b) || ea != eb && n > 0 {
			t.Fatalf("%d bytes at %d of %d: %d %v, want %d %v", n, off, len(contents[i]), na, ea, nb, eb)
		}
	}
	if len(c.slots) > 5 || len(c.at) > 5 {
		t.Errorf("%d blocks are kept, %d of them known, where 5 may be", len(c.slots), len(c.at))
	}
	if _, err := readers[0].ReadAt(make([]byte, 8), -1); err == nil {
		t.Error("there is something before the file's start")
	}
}

// A block is read once, whoever opens the file, and a rewritten file is a different file.
func TestKept(t *testing.T) {
	f, b := file(t, 4*blockSize, 1)
	c := newCache(8)
	open := func(f *os.File) *Reader {
		r := Open(f)
		r.cache = c
		return r
	}
	p := make([]byte, 16)
	for range 10 {
		if _, err := open(f).ReadAt(p, blockSize-8); err != nil || !bytes.Equal(p, b[blockSize-8:][:16]) {
			t.Fatalf("% x, %v", p, err)
		}
	}
	if c.read != 2 {
		t.Errorf("two blocks were read %d times", c.read)
	}
	b[blockSize-8]++
	b = append(b, 1)
	if err := os.WriteFile(f.Name(), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(f).ReadAt(p, blockSize-8); err != nil || !bytes.Equal(p, b[blockSize-8:][:16]) {
		t.Errorf("% x, %v: as the file was before it was written", p, err)
	}
}

// A file that is truncated while it is read ends there.
func TestCutShort(t *testing.T) {
	f, b := file(t, 4*blockSize, 1)
	r := Open(f)
	r.cache = newCache(8)
	if err := os.Truncate(f.Name(), blockSize+10); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 16)
	if n, err := r.ReadAt(p, blockSize); n != 10 || err != io.EOF || !bytes.Equal(p[:n], b[blockSize:][:10]) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := r.ReadAt(p, 2*blockSize); n != 0 || err != io.EOF {
		t.Errorf("%d bytes behind the end, %v", n, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	f, b := file(t, 64*blockSize, 3)
	r := Open(f)
	r.cache = newCache(8)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng, p := rand.New(rand.NewPCG(uint64(i), 2)), make([]byte, 100)
			for range 2000 {
				off := rng.IntN(len(b) - len(p))
				if _, err := r.ReadAt(p, int64(off)); err != nil || !bytes.Equal(p, b[off:][:len(p)]) {
					t.Errorf("at %d: %v", off, err)
					return
				}
			}
		}()
	}
	wg.Wait()
}
