package jfr

import "testing"

// TestConstantsComeInOrder: what is made of a file must not depend on the order of a map, otherwise
// the same file yields other indices each time.
func TestConstantsComeInOrder(t *testing.T) {
	var pool table[int]
	for i := range 1000 {
		pool.put(uint64(i)*7919%1000*1_000_003, i)
	}
	if len(pool.rest) < 900 {
		t.Fatalf("%d numbers are sparse", len(pool.rest))
	}
	n, last := 0, uint64(0)
	pool.each(func(id uint64, v int) {
		if got, ok := pool.get(id); n > 0 && id <= last || !ok || got != v {
			t.Errorf("constant %d after %d, is %d", id, last, v)
		}
		n, last = n+1, id
	})
	if n != 1000 {
		t.Errorf("%d constants", n)
	}
}
