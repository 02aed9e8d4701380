package vmread

import (
	"slices"
	"testing"
)

// Memory of which a read was given up is read again once that read has returned and a while has
// passed, which is longer each time, and not for ever; memory whose read never returns is not.
func TestTriedAgain(t *testing.T) {
	var now int64
	var reads Stuck
	a := Avoided{clock: func() int64 { return now }}
	span := Span{0x1000, 0x3000}
	avoided := func() bool { return a.Has(0x2000, 8) }
	reads.n.Store(1)
	a.GiveUp(span, &reads)
	for range 100 {
		if now += firstTry; !avoided() {
			t.Fatal("it is read again while a read has not returned")
		}
	}
	reads.n.Store(0)
	if now += 2 * firstTry; avoided() {
		t.Error("its read has returned, and it is not read")
	}
	if a.Has(0x1000, 1) || a.Has(0x2fff, 1) {
		t.Error("a part is not read")
	}
	var waits []int64
	for range 2 * mostTries {
		a.GiveUp(Span{0x2000, 0x3000}, &reads)
		if !avoided() || !a.Has(0x1000, 8) {
			t.Fatal("it is read at once")
		}
		began := now
		for avoided() && now < began+1000*firstTry {
			now += firstTry
		}
		if !avoided() {
			waits = append(waits, (now-began)/firstTry)
		}
	}
	if want := []int64{2, 4, 8, 16}; !slices.Equal(waits, want) {
		t.Errorf("it is tried again after %d s, want %d", waits, want)
	}
	if !avoided() {
		t.Error("it is tried for ever")
	}
}

// Memory given up beside it, and files that a server does not provide, stay apart.
func TestTriedAgainApart(t *testing.T) {
	var now int64
	var reads, others Stuck
	others.n.Store(1)
	a := Avoided{clock: func() int64 { return now }}
	a.Serve([]Span{{0x9000, 0xa000}})
	a.GiveUp(Span{0x1000, 0x2000}, &reads)
	a.GiveUp(Span{0x3000, 0x4000}, &others)
	now += 3 * firstTry
	if a.Has(0x1000, 8) || !a.Has(0x3000, 8) || !a.Has(0x9000, 8) || a.Has(0x5000, 8) {
		t.Errorf("%v %v %v %v", a.Has(0x1000, 8), a.Has(0x3000, 8), a.Has(0x9000, 8), a.Has(0x5000, 8))
	}
	if n := a.Until(0x1000, 0x10000); n != 0x2000 {
		t.Errorf("%#x bytes are read, up to what is not", n)
	}
}
