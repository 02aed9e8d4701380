package push

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// TestOneAfterAnother: a server that serves one connection until it is closed gets everything; more
// requests at once are for when much waits.
func TestOneAfterAnother(t *testing.T) {
	t.Parallel()
	for services, want := range map[int]int{20: 1, 100*workers + 50: workers} {
		var mu sync.Mutex
		now, most := 0, 0
		gate := make(chan struct{})
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-gate
			mu.Lock()
			now--
			mu.Unlock()
			w.Header().Set("Content-Type", "application/proto")
		}))
		p, err := New(Config{Type: "pyroscope", URL: web.URL, Every: time.Second}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range services {
			if err := p.Add(window(fmt.Sprint("service", i))); err != nil {
				t.Fatal(err)
			}
		}
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			mu.Lock()
			reached := now == want
			mu.Unlock()
			if reached {
				break
			}
		}
		time.Sleep(50 * time.Millisecond) // for one too many
		close(gate)
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := p.Stats(); most != want || s.Sent != uint64(services) {
			t.Errorf("%d services: %d requests at once, want %d; %+v", services, most, want, s)
		}
		web.Close()
	}
}
