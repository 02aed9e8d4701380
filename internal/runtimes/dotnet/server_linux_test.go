package dotnet_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
)

// TestServer records the framework's HTTP server while it answers requests all the time.
func TestServer(t *testing.T) {
	fixture.OnlyFull(t, "TestLoads")
	free, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	on := dotnet{major: 9}
	tooLittle := fixture.Watch(t)
	target := on.start(t, on.compile(t, "testdata/Server.cs"), nil, fmt.Sprint(port))
	var answered atomic.Int64
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	for range 8 {
		go func() {
			client := http.Client{Timeout: 10 * time.Second}
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				r, err := client.Get(fmt.Sprintf("http://localhost:%d/?n=%d", port, i))
				if err != nil {
					continue
				}
				if n, err := io.Copy(io.Discard, r.Body); err == nil && n > 0 && r.StatusCode == http.StatusOK {
					answered.Add(1)
				}
				r.Body.Close()
			}
		}()
	}
	p := recorded(t, record.Options{PIDs: []int{target.PID()}, Duration: 10 * time.Second, Hz: 499, Events: []string{"cpu"}})
	q := p.Quality()
	other := map[string]int{}
	for _, s := range p.Samples {
		if c := profile.CertaintyOf(s.End, s.Flags); c != profile.CertaintyComplete {
			other[fmt.Sprint(c, all(p, s.Node))]++
		}
	}
	t.Logf("%d requests were answered; %+v; candid used %v of CPU time", answered.Load(), q, p.Meta.Cost.OwnCPU)
	if q.Samples < 1000 || answered.Load() < 100 {
		tooLittle("%d samples, %d requests", q.Samples, answered.Load())
		return
	}
	if float64(q.Complete) < 0.999*float64(q.Samples) {
		t.Errorf("%d of %d stacks are complete; %v", q.Complete, q.Samples, other)
	}
}
