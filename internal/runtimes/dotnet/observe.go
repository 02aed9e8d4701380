package dotnet

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"time"

	"github.com/candid-profiler/candid/internal/clrgc"
	"github.com/candid-profiler/candid/internal/emulate"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/target"
)

var _ runtimes.Observed = (*instance)(nil)

// observer is the last known state of a runtime besides the samples.
type observer struct {
	calls   emulate.Convention
	shift   func() int64     // ns from the collector's clock to the engines'; nil: they are the same
	gc      *clrgc.Collector // nil: not found yet, or not understood
	failing int              // how often in a row it could not be read
	given   bool             // it is not understood
	told    bool             // it was described
	begun   bool             // state is known
	mark    clrgc.Mark
	state   clrgc.State
	looked  uint64 // monotonic ns: before the state was last known to be the present one
	strange bool   // times were seen that cannot be
}

// gcPatience is how often a collector that cannot be read is tried again: it may still be starting.
const gcPatience = 20

// Observe implements runtimes.Observed: it asks the collector what it has recorded.
func (i *instance) Observe(all bool, to runtimes.Observations) {
	o := &i.observer
	if o.gc == nil && !o.find(i, to) {
		return
	}
	before := to.Clock()
	mark, err := o.gc.Mark()
	switch {
	case err != nil:
	case o.begun && mark == o.mark:
		o.looked = before
	default:
		err = o.read(before, to)
	}
	if err != nil {
		o.failed(err, i, to)
		return
	}
	if o.failing = 0; all && o.begun {
		o.tellHeap(i, to)
	}
}

// Redescribe implements runtimes.Observed.
func (i *instance) Redescribe() { i.observer.told = false }

// find looks for the collector; false if there is none.
func (o *observer) find(i *instance, to runtimes.Observations) bool {
	if o.given {
		return false
	}
	heap := i.GCHeap()
	if heap == 0 {
		return false
	}
	gc, err := clrgc.Open(&fileCode{process: i.process, native: i.native}, heap, o.calls)
	if err != nil {
		o.failed(err, i, to)
		return false
	}
	o.gc = gc
	return true
}

// failed gives up the collector after a while, and says why.
func (o *observer) failed(err error, i *instance, to runtimes.Observations) {
	if o.gc, o.failing = nil, o.failing+1; o.failing < gcPatience {
		return
	}
	if o.given = true; i.GCHeap() != 0 { // else the process has ended
		to.Note(fmt.Sprintf("heap and collections are not told of: %v", err))
	}
}

// read reads what the collector has recorded and reports what is new.
func (o *observer) read(before uint64, to runtimes.Observations) error {
	state, mark, err := o.gc.Read()
	if errors.Is(err, clrgc.ErrBusy) {
		to.Hurry()
		return nil
	}
	if err != nil {
		return err
	}
	if o.shift != nil {
		shift := o.shift()
		for k := range state.Last {
			if g := &state.Last[k]; g.Start != 0 {
				g.Start += uint64(shift)
			}
		}
	}
	if o.begun {
		o.tellCollections(&state, to)
	}
	if o.begun && (state.Collections != o.state.Collections || state.Background != o.state.Background || state.Paused != o.state.Paused) {
		tellCounts(&state, to)
	}
	o.state, o.mark, o.looked, o.begun = state, mark, before, true
	return nil
}

// tellHeap reports how large the heap is now, and once how it is collected.
func (o *observer) tellHeap(i *instance, to runtimes.Observations) {
	unknown := profile.Number(profile.UnknownNumber)
	if !o.told {
		o.told = true
		if server, ok := i.ServerGC(); ok {
			to.Seen(profile.InitialSystemProperty, profile.Text("System.GC.Server"), profile.Text(strconv.FormatBool(server)))
		}
		if concurrent, err := o.gc.Concurrent(); err == nil {
			to.Seen(profile.InitialSystemProperty, profile.Text("System.GC.Concurrent"), profile.Text(strconv.FormatBool(concurrent)))
		}
		tellCounts(&o.state, to)
	}
	used := unknown
	if n, err := o.gc.InUse(); err == nil && n < 1<<48 {
		used = profile.Number(n)
	}
	committed := unknown
	if g := latest(&o.state); g != nil {
		committed = profile.Number(g.Committed)
	}
	if used != unknown || committed != unknown {
		to.Seen(profile.HeapStatistics, used, committed, unknown, unknown)
	}
}

// latest returns the collection that ended last; nil if there was none.
func latest(s *clrgc.State) (g *clrgc.Collection) {
	for k := range s.Last {
		if l := &s.Last[k]; l.Index > 0 && (g == nil || l.Index > g.Index) {
			g = l
		}
	}
	return g
}

// fileCode is a process whose code is executed as far as files have it.
type fileCode struct {
	process *target.Process
	native  *native.Stepper // may be nil
	maps    []target.Mapping
	read    time.Time
}

var _ clrgc.Process = (*fileCode)(nil)

// ReadAt implements clrgc.Process.
func (f *fileCode) ReadAt(p []byte, addr uint64) error { return f.process.Memory().ReadAt(p, addr) }

// mapsEvery is how often mappings are read again at most, for addresses that are in none.
const mapsEvery = time.Second

// ofImage reports whether an address in memory without a file holds code that Wine has read from an image.
func (f *fileCode) ofImage(pc uint64) bool {
	if f.native == nil {
		return false
	}
	frame, ok := f.native.Frame(pc, 0)
	if !ok {
		return false
	}
	m, _, ok := f.native.Locate(frame)
	return ok && m.PE() != nil
}

// Code implements clrgc.Process: only code in private mappings of files is executed or, in Wine, in private
// memory that holds an image of Windows.
func (f *fileCode) Code(pc uint64, b []byte) int {
	for {
		i := sort.Search(len(f.maps), func(i int) bool { return f.maps[i].End > pc })
		if i < len(f.maps) && pc >= f.maps[i].Start {
			m := &f.maps[i]
			if m.Perm&target.PermExec == 0 || m.Perm&(target.PermWrite|target.PermShared) != 0 || m.Inode == 0 && !f.ofImage(pc) {
				return 0
			}
			b = b[:min(uint64(len(b)), m.End-pc)]
			if f.process.Memory().ReadAt(b, pc) != nil {
				return 0
			}
			return len(b)
		}
		now := time.Now()
		if now.Sub(f.read) < mapsEvery {
			return 0
		}
		f.read = now
		f.maps, _ = f.process.Mappings() // if it cannot be read nothing is known
	}
}
