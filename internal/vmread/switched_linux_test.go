package vmread_test

import (
	"bytes"
	"os"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/candid-profiler/candid/internal/vmread"
)

// own returns memory of this process with numbers in it, and its address.
func own(n int) ([]byte, uint64) {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b, uint64(uintptr(unsafe.Pointer(&b[0])))
}

// Goroutines that are locked to their threads and ones that are not read beside each other, each with
// helpers that the others have used.
func TestLockedBesideUnlocked(t *testing.T) {
	want, addr := own(3000)
	var locked, unlocked vmread.Stuck
	var ends vmread.Ends
	ends.Unlocked(true)
	unlocked.End(&ends)
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			stuck := &unlocked
			if i%2 == 0 {
				stuck = &locked
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			for k := range 300 {
				got := make([]byte, 100)
				at := (k*37 + i) % 2900
				if n := vmread.Some(os.Getpid(), got, addr+uint64(at), stuck); n != len(got) || !bytes.Equal(got, want[at:at+100]) {
					t.Errorf("%d bytes are read, want 100, those from %d on", n, at)
					return
				}
			}
		})
	}
	all.Wait()
	runtime.KeepAlive(want)
	if n := locked.Count() + unlocked.Count(); n != 0 {
		t.Errorf("%d reads count as given up", n)
	}
}

// The ranges of a call are read up to the first that cannot be, in each way.
func TestRanges(t *testing.T) {
	want, addr := own(64)
	for _, unlocked := range []bool{false, true} {
		var stuck vmread.Stuck
		var ends vmread.Ends
		ends.Unlocked(unlocked)
		stuck.End(&ends)
		var c vmread.Call
		var got [3][16]byte
		var ok [3]bool
		for i, at := range []uint64{addr, 8, addr + 32} {
			if !c.Add(at, got[i][:], &ok[i]) {
				t.Fatal("there is no room for three ranges")
			}
		}
		failed, err := c.Do(os.Getpid(), &stuck)
		if !ok[0] || ok[1] || ok[2] || failed != &ok[1] || err != nil || !bytes.Equal(got[0][:], want[:16]) {
			t.Errorf("unlocked %v: %v read, failed at the second: %v, %v", unlocked, ok, failed == &ok[1], err)
		}
		c.Free()
	}
	runtime.KeepAlive(want)
}

func BenchmarkRead(b *testing.B) {
	_, addr := own(4096)
	for _, way := range []string{"handed over", "unlocked"} {
		b.Run(way, func(b *testing.B) {
			var stuck vmread.Stuck
			var ends vmread.Ends
			ends.Unlocked(way == "unlocked")
			stuck.End(&ends)
			to := make([]byte, 64)
			b.ReportAllocs()
			for b.Loop() {
				if vmread.Some(os.Getpid(), to, addr, &stuck) != len(to) {
					b.Fatal("nothing is read")
				}
			}
		})
	}
}
