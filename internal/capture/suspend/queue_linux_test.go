package suspend

import (
	"context"
	"testing"
	"time"
)

// Threads that wait for a CPU longer than they have it at a time are watched all
// the while: when one of them has had its turn it is too late to look at it.
func TestQueueIsWatched(t *testing.T) {
	p := start(t, compile(t, "queue"))
	e := open(t, options(99, p.pid()))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- e.Run(ctx, newCounter()) }()
	// Watching only those that have run within a tenth of a second would be some 40.
	const most, enough = 200, 120
	hot := 0
	for end := time.Now().Add(2 * time.Minute); hot < enough && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		e.mu.Lock()
		hot = len(e.hot)
		e.mu.Unlock()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d of %d threads are watched, %+v", hot, most, e.Stops()); hot < enough {
		t.Errorf("only %d of %d threads that want a CPU are watched", hot, most)
	}
}
