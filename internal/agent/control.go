package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/candid-profiler/candid/internal/hostinfo"
)

// Status is the answer to candid agent status.
type Status struct {
	Version   string        `json:"version"`
	PID       int           `json:"pid"`
	Began     time.Time     `json:"began"`
	File      string        `json:"file"`
	Loaded    time.Time     `json:"loaded"`            // when the file was read that is in force
	Refused   string        `json:"refused,omitempty"` // why the file that was read last is not
	Ready     bool          `json:"ready"`
	Engine    string        `json:"engine"`
	Rate      float64       `json:"rate"`       // samples per second of CPU time now
	RateAsked float64       `json:"rate_asked"` // by the file
	Why       string        `json:"why,omitempty"`
	Samples   uint64        `json:"samples"`
	Lost      uint64        `json:"lost"`
	Complete  *float64      `json:"complete,omitempty"` // share of stacks that are complete or stitched, 0 to 1; nil before the first part ended
	CPU       time.Duration `json:"cpu"`                // its own CPU time, ns
	CPUShare  float64       `json:"cpu_share"`
	Memory    uint64        `json:"memory"` // bytes, resident
	Captures  int           `json:"captures"`
	Store     *StoreStatus  `json:"store,omitempty"`
	Push      []PushStatus  `json:"push,omitempty"`
}

// StoreStatus is what is known of the store.
type StoreStatus struct {
	Dir    string    `json:"dir"`
	Bytes  int64     `json:"bytes"`
	Last   time.Time `json:"last"` // end of what is in it; zero: nothing was stored
	Errors uint64    `json:"errors"`
}

// PushStatus is what is known of a server.
type PushStatus struct {
	URL       string        `json:"url"`
	Type      string        `json:"type"`
	Sampled   bool          `json:"sampled"` // this host is one that pushes
	Sent      uint64        `json:"sent"`
	Dropped   uint64        `json:"dropped"`
	Ambiguous uint64        `json:"ambiguous"`
	Unsent    int           `json:"unsent"`
	Oldest    time.Duration `json:"oldest"` // age of the oldest that waits, ns
	Last      time.Time     `json:"last"`   // when the last was sent
	Error     string        `json:"error,omitempty"`
}

// status returns what the agent is doing.
func (a *Agent) status() Status {
	a.mu.Lock()
	c := a.conf
	s := Status{Version: a.o.Version, PID: os.Getpid(), Began: a.began, File: a.o.Path, Loaded: a.loaded, Refused: a.refused, Ready: a.ready, Engine: a.engine}
	sinks := a.sinks
	a.mu.Unlock()
	times, why := a.rate()
	s.Rate, s.RateAsked, s.Why = c.Rate/float64(times), c.Rate, why
	m := &a.metrics
	m.mu.Lock()
	s.Samples, s.Lost = m.samples+m.now.Load(), m.lost
	if q := m.quality; q.Samples > 0 {
		share := float64(q.Complete+q.Stitched) / float64(q.Samples)
		s.Complete = &share
	}
	m.mu.Unlock()
	s.CPU = hostinfo.OwnCPU()
	s.CPUShare = s.CPU.Seconds() / max(time.Since(a.began).Seconds(), 1) / float64(cpus())
	s.Memory, _, _ = hostinfo.Memory(os.Getpid())
	s.Captures = int(a.capture.running.Load())
	if sinks.store != nil {
		s.Store = &StoreStatus{Dir: c.Store.Dir, Bytes: sinks.store.Size(), Errors: m.storeErrors.Load()}
		if at := m.stored.Load(); at != 0 {
			s.Store.Last = time.Unix(0, at)
		}
	}
	for _, p := range sinks.pushes {
		st := p.pusher.Stats()
		s.Push = append(s.Push, PushStatus{
			URL: st.URL, Type: st.Type, Sampled: st.Sampled, Sent: st.Sent, Dropped: sum(st.Dropped), Ambiguous: sum(st.Ambiguous),
			Unsent: st.Unsent, Oldest: st.OldestUnsent(), Last: st.LastSent, Error: st.LastError,
		})
	}
	return s
}

func sum(of map[string]uint64) (n uint64) {
	for _, v := range of {
		n += v
	}
	return n
}

// pages are answered on the address of the file.
func (a *Agent) pages() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		a.mu.Lock()
		ready := a.ready
		a.mu.Unlock()
		if !ready {
			http.Error(w, "not sampling", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		a.writeMetrics(w)
	})
	return mux
}

// maxRequest bounds the body of a request.
const maxRequest = 64 << 10

// controls are answered on the agent's own socket.
func (a *Agent) controls() http.Handler {
	mux := a.pages()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, a.status()) })
	mux.HandleFunc("GET /v1/services", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, a.served.list()) })
	mux.HandleFunc("POST /v1/capture", func(w http.ResponseWriter, r *http.Request) {
		var req CaptureRequest
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
			answer(w, http.StatusBadRequest, refusal{err.Error()})
			return
		}
		ctx, cancel := a.contextOf(r)
		defer cancel()
		res, err := a.capture.take(ctx, req)
		switch {
		case errors.Is(err, errCapture):
			answer(w, http.StatusBadRequest, refusal{err.Error()})
		case err != nil:
			answer(w, http.StatusInternalServerError, refusal{err.Error()})
		default:
			answer(w, http.StatusOK, res)
		}
	})
	return mux
}

// refusal is the answer to what was not done.
type refusal struct {
	Error string `json:"error"`
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}
