package view

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
)

// answer is a function that answers one kind of question about a recording.
type answer func(ctx context.Context, r *Recording, v url.Values) ([]byte, error)

var answers = map[string]answer{
	"tree":     treeMessage,
	"counts":   countsMessage,
	"methods":  methodsMessage,
	"sandwich": sandwichMessage,
	"rows":     rowsMessage,
	"find":     findMessage,
	"overview": overviewMessage,
	"lanes":    lanesMessage,
	"heatmap":  heatmapMessage,
	"about":    aboutMessage,
	"waits":    waitsMessage,
}

// errGrown is the error when the page asks about an earlier version of the recording, in which
// places had other numbers.
var errGrown = errors.New("the recording has grown")

func (r *Recording) isVersion(v url.Values) error {
	version, err := number(v, "version", uint64(r.version))
	if err == nil && version != uint64(r.version) {
		err = errGrown
	}
	return err
}

type stateJSON struct {
	State   string `json:"state"`
	Syscall string `json:"syscall"`
	countJSON
}

func countsMessage(ctx context.Context, r *Recording, v url.Values) ([]byte, error) {
	if err := r.isVersion(v); err != nil {
		return nil, err
	}
	q, err := r.query(v)
	if err != nil {
		return nil, err
	}
	c, err := r.Count(ctx, &q)
	if err != nil {
		return nil, err
	}
	head := struct {
		All     countJSON     `json:"all"`
		Chosen  countJSON     `json:"chosen"`
		Quality flame.Quality `json:"quality"`
		States  []stateJSON   `json:"states"`
		Squares float64       `json:"squares"`
	}{countJSON(c.All), countJSON(c.Chosen), flame.NewQuality(c.Quality), []stateJSON{}, c.Squares}
	for _, s := range c.States {
		head.States = append(head.States, stateJSON{s.State.String(), flame.Visible(s.Syscall), countJSON(s.Count)})
	}
	if v.Get("cells") == "no" {
		c.Cells = nil // only the counts of each thread are wanted: a hundredth of the size
	}
	m := &message{}
	m.u32("node", len(c.Cells), func(i int) uint32 { return c.Cells[i].Place })
	if q.ByThread {
		m.u32("thread", len(c.Cells), func(i int) uint32 { return c.Cells[i].Thread })
	}
	m.f64("count", len(c.Cells), func(i int) float64 { return float64(c.Cells[i].Samples) })
	m.f64("weight", len(c.Cells), func(i int) float64 { return float64(c.Cells[i].Weight) })
	m.f64("threadCount", len(c.Threads), func(i int) float64 { return float64(c.Threads[i].Samples) })
	m.f64("threadWeight", len(c.Threads), func(i int) float64 { return float64(c.Threads[i].Weight) })
	return m.finish(head)
}

// window reads the range of time and the number of bins of a timeline: w0, w1 (ns), bins; until
// (ns).
func window(r *Recording, v url.Values) (Window, error) {
	from, err := number(v, "w0", 0)
	if err != nil {
		return Window{}, err
	}
	to, err := number(v, "w1", max(r.end, 1))
	if err != nil {
		return Window{}, err
	}
	bins, err := number(v, "bins", 1000)
	if err != nil {
		return Window{}, err
	}
	until, err := number(v, "until", 0)
	if err != nil {
		return Window{}, err
	}
	w := Window{from, to, int(min(bins, maxBins+1)), until}
	return w, w.check()
}

func overviewMessage(ctx context.Context, r *Recording, v url.Values) ([]byte, error) {
	q, err := r.query(v)
	if err != nil {
		return nil, err
	}
	w, err := window(r, v)
	if err != nil {
		return nil, err
	}
	sums, err := r.Overview(ctx, &q, w)
	if err != nil {
		return nil, err
	}
	m := &message{}
	m.f64("weight", len(sums), func(i int) float64 { return sums[i] })
	return m.finish(map[string]int{"bins": w.Bins, "states": profile.NumStates})
}

func lanesMessage(ctx context.Context, r *Recording, v url.Values) ([]byte, error) {
	q, err := r.query(v)
	if err != nil {
		return nil, err
	}
	w, err := window(r, v)
	if err != nil {
		return nil, err
	}
	set := make([]bool, len(r.p.Threads))
	if err := ranges(v.Get("lanes"), set); err != nil {
		return nil, err
	}
	var threads []uint32
	for t, on := range set {
		if on {
			threads = append(threads, uint32(t))
		}
	}
	l, err := r.Lanes(ctx, &q, w, threads)
	if err != nil {
		return nil, err
	}
	m := &message{}
	m.u32("thread", len(threads), func(i int) uint32 { return threads[i] })
	m.f32("weight", l.Weight)
	m.u8("state", len(l.State), func(i int) uint8 { return l.State[i] })
	return m.finish(map[string]int{"bins": w.Bins})
}

func heatmapMessage(ctx context.Context, r *Recording, v url.Values) ([]byte, error) {
	q, err := r.query(v)
	if err != nil {
		return nil, err
	}
	w, err := window(r, v)
	if err != nil {
		return nil, err
	}
	cell, err1 := strconv.ParseUint(v.Get("cell"), 10, 62)
	rows, err2 := strconv.Atoi(v.Get("rows"))
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("%w: cell and rows are numbers", ErrQuery)
	}
	cells, err := r.Heatmap(ctx, &q, w.From, w.To, cell, rows)
	if err != nil {
		return nil, err
	}
	m := &message{}
	m.f32("weight", cells)
	return m.finish(map[string]int{"rows": rows, "columns": len(cells) / rows})
}

type threadAccount struct {
	Thread      uint32        `json:"thread"`
	KernelShare *float64      `json:"kernelShare"`
	Expected    *float64      `json:"expected"`
	Disagrees   bool          `json:"disagrees"`
	Samples     uint64        `json:"samples"`
	Quality     flame.Quality `json:"quality"`
}

// aboutMessage compares the samples of each thread with what the kernel counted. It does so over
// the whole recording (of a pair, over the one that is asked for), because a part of it cannot be
// compared.
func aboutMessage(_ context.Context, r *Recording, v url.Values) ([]byte, error) {
	q, err := r.query(v)
	if err != nil {
		return nil, err
	}
	rows := []threadAccount{}
	for _, t := range r.only(q.Side).ByThread(profile.Filter{Event: q.Event}) {
		row := threadAccount{Thread: t.Thread, Disagrees: t.Disagrees, Samples: t.Samples.Samples, Quality: flame.NewQuality(t.Quality)}
		if t.KernelShare >= 0 {
			row.KernelShare, row.Expected = &t.KernelShare, &t.Expected
		}
		rows = append(rows, row)
	}
	return (&message{}).finish(map[string]any{"threads": rows})
}
