package jfr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// TestRepository: the chunks of a recording in a directory of their own are read like the
// recording, and what is not a chunk yet, or none at all, is left out.
func TestRepository(t *testing.T) {
	p := profiletest.Server(2000, 20_000, 10)
	out := &chunks{}
	s := stream(NewStream, out, p)
	s.MaxChunk = 64 << 10
	for i := range p.Samples {
		if err := s.Add(p.Samples[i]); err != nil {
			t.Fatal(err)
		}
		if i%500 == 0 {
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	whole := out.b
	want, err := Read(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	put := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenRepository(dir); !errors.Is(err, ErrNoRepository) {
		t.Errorf("an empty folder: %v", err)
	}
	n := 0
	for at := 0; at < len(whole); n++ {
		size := int(binary.BigEndian.Uint64(whole[at+atSize:]))
		// The data after the chunk was not flushed by the JVM yet.
		put(fmt.Sprintf("2026_11_21_17_%02d_00.jfr", n), append(bytes.Clone(whole[at:at+size]), "not flushed"...))
		at += size
	}
	if n < 3 {
		t.Fatalf("%d chunks", n)
	}
	put("2026_11_21_17_00_00_01.jfr", make([]byte, headerSize)) // begun
	put("2026_11_21_17_59_00.jfr", whole[:20])
	put("app.jfr", whole)
	put("2026_11_21_17_01_00.txt", []byte("no"))
	if err := os.Mkdir(filepath.Join(dir, "2026_11_21_17_58_00.jfr"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRepository(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Size() != int64(len(whole)) {
		t.Fatalf("it has %d bytes, want %d", r.Size(), len(whole))
	}
	for _, length := range []int{1, 60, 68, 69, 5000, len(whole)} {
		got := make([]byte, length)
		for off := 0; off+length <= len(whole); off += max(1, length/3, len(whole)/300) {
			if n, err := r.ReadAt(got, int64(off)); n != length || err != nil || !bytes.Equal(got, whole[off:off+length]) {
				t.Fatalf("%d bytes at %d of it: %d, %v", length, off, n, err)
			}
		}
	}
	if n, err := r.ReadAt(make([]byte, 10), r.Size()-3); n != 3 || err == nil {
		t.Errorf("at the end: %d bytes, %v", n, err)
	}
	if n, err := r.ReadAt(make([]byte, 10), r.Size()); n != 0 || err == nil {
		t.Errorf("behind the end: %d bytes, %v", n, err)
	}
	got, err := Read(r, r.Size())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("the repository is not what the whole file is")
	}
	size, changed, err := RepositoryState(dir)
	if err != nil || size <= r.Size() || changed.IsZero() {
		t.Errorf("its state: %d bytes, %v, %v", size, changed, err)
	}
}

// TestRepositoryThatGrows opens a repository while the JVM flushes: everything flushed before is
// there each time.
func TestRepositoryThatGrows(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "2026_11_21_17_30_05.jfr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head := make([]byte, headerSize)
	copy(head, magic[:])
	size := uint64(headerSize)
	flush := func() error {
		binary.BigEndian.PutUint64(head[atSize:], size)
		_, err := f.WriteAt(head, 0)
		return err
	}
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	over, grown := make(chan bool), make(chan error)
	go func() {
		for {
			select {
			case <-over:
				grown <- nil
				return
			default:
			}
			_, err := f.WriteAt([]byte("flushed."), int64(size))
			if size += 8; err == nil {
				err = flush()
			}
			if err != nil {
				<-over
				grown <- err
				return
			}
		}
	}()
	for range 2000 {
		r, err := OpenRepository(dir)
		if err != nil {
			t.Error(err)
			break
		}
		r.Close()
	}
	over <- true
	if err := <-grown; err != nil {
		t.Fatal(err)
	}
}
