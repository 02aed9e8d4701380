package store

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// A question about one service of several unpacks its samples and few of others, and a process that was
// away for some minutes is the same as before.
func TestPartsOfServices(t *testing.T) {
	dir, rnd := t.TempDir(), rand.New(rand.NewPCG(8, 1))
	w := create(t, dir, Options{})
	for i := range 12 {
		at, services := noon.Add(time.Duration(i)*30*time.Second), 8
		if i > 0 && i < 11 {
			services = 2
		}
		put(t, w, made(rnd, at, services, 2000), at)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	at := place{day: dayOf(noon)}
	r := open(t, dir)
	tables, err := r.tables(at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tables.processes); n != 8 {
		t.Errorf("%d processes are stored, want 8", n)
	}
	f, err := os.Open(at.path(dir, fileOfSamples))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	blocks := 0
	_, err = scan(f, kindSamples, 0, func(h header, _ int64, body []byte) error {
		sizes := [2]int{}
		for i, name := range []string{"", "service of program1"} {
			u, err := h.unpackParts(body, unpacked{}, tables.services(name))
			if err != nil {
				return err
			}
			for _, p := range u.parts {
				sizes[i] += len(p)
			}
		}
		if blocks++; sizes[1] == 0 || sizes[1] > sizes[0]*6/10 {
			t.Errorf("block %d: %d bytes of %d are unpacked for one service", blocks, sizes[1], sizes[0])
		}
		return nil
	}, func(_, _ int64, _ *header, why error) { t.Error(why) })
	if err != nil || blocks != 12 {
		t.Errorf("%d blocks, %v", blocks, err)
	}
}

// Skipping numbers ends where reading them does.
func TestSkip(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var b []byte
		n := chance.IntN(40)
		for range n {
			b = binary.AppendUvarint(b, chance.Uint64()>>chance.IntN(64))
		}
		skipped := chance.IntN(n + 3)
		got, want := cursor{b: b}, cursor{b: b}
		got.skip(uint64(skipped))
		for range skipped {
			want.number()
		}
		if !bytes.Equal(got.b, want.b) || got.bad != want.bad {
			t.Fatalf("%d of %d numbers of %x: %x are left, want %x (%v, %v)", skipped, n, b, got.b, want.b, got.bad, want.bad)
		}
	}
}
