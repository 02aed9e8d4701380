// Package dynamic reads the function tables that a Windows program registers for code that it
// generates (RtlAddFunctionTable, RtlAddGrowableFunctionTable), from the list that ntdll keeps of
// them, on Windows and in Wine. Of tables that the program computes when it is asked for one
// (RtlInstallFunctionTableCallback) only the range of code is there: nobody else can ask the program.
//
// Sources: phnt, ntrtl.h (DYNAMIC_FUNCTION_TABLE); Wine 10.0, dlls/ntdll/unwind.c
// (struct dynamic_unwind_entry).
package dynamic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/winunwind"
)

// layout is where an entry of the list has its fields. All begin with a LIST_ENTRY.
type layout struct {
	size            int
	table, count    int // of RUNTIME_FUNCTIONs
	low, high, base int // the addresses that it is for, and what those in the table are relative to
	callback        int
	kind            int // 0: there is none
}

var (
	// Windows has the type of a table at kind.
	windowsLayout = layout{size: 88, table: 16, low: 32, high: 40, base: 48, callback: 56, kind: 80, count: 84}
	wineLayout    = layout{size: 64, low: 16, high: 24, base: 16, table: 32, count: 40, callback: 48}
)

// Types of tables (RTL_FUNCTION_TABLE_TYPE).
const (
	kindUnsorted = 1
	kindCallback = 2
)

// Bounds of what is read of a list that a program may write anything to.
const (
	maxTables   = 1 << 12
	maxEntries  = 1 << 20 // in one table
	maxUnsorted = 1 << 12 // in a table that has to be searched from its beginning
	maxRules    = 1 << 12
	// maxBare is how large a function may be that claims to have no frame: HotSpot registers one
	// function without unwind codes for each part of its code cache, so as to be told of exceptions.
	maxBare = 64 << 10
)

// ErrNone says that ntdll keeps no list that could be found.
var ErrNone = errors.New("no list of dynamic function tables was found")

// table is a registered table.
type table struct {
	low, high, base, at uint64
	count               uint32
	unsorted            bool
}

// Tables are the dynamic function tables of a process. They are used from one goroutine.
type Tables struct {
	mem      winunwind.Memory
	head     uint64
	layout   *layout
	list     []table
	computed []table         // those that the program computes itself
	missed   map[uint64]bool // of computed those in which a rule was wanted, by their lowest address
	rules    map[ruleKey]*ehframe.Rule
	buf      []byte
}

type ruleKey struct {
	at, pc uint64
	leaf   bool
}

// Computed returns of how many ranges of code a rule was wanted that only the program can compute.
func (t *Tables) Computed() int { return len(t.missed) }

// Read reads the list. What was known before stays if it is being changed, and cannot be read now.
func (t *Tables) Read() error {
	var list, computed []table
	le := binary.LittleEndian
	b := make([]byte, t.layout.size)
	if !t.mem.Bytes(t.head, b[:16]) {
		return fmt.Errorf("read the list of dynamic function tables: %w", ErrNone)
	}
	before, at := t.head, le.Uint64(b)
	for n := 0; at != t.head; n++ {
		if n == maxTables || !t.mem.Bytes(at, b) || le.Uint64(b[8:]) != before {
			return fmt.Errorf("the list of dynamic function tables is damaged behind %d entries: %w", n, ErrNone)
		}
		l := t.layout
		e := table{low: le.Uint64(b[l.low:]), high: le.Uint64(b[l.high:]), base: le.Uint64(b[l.base:]), at: le.Uint64(b[l.table:]), count: le.Uint32(b[l.count:])}
		called := le.Uint64(b[l.callback:]) != 0
		if l.kind != 0 {
			kind := le.Uint32(b[l.kind:])
			called, e.unsorted = kind == kindCallback, kind == kindUnsorted
		}
		switch {
		case called:
			if e.low < e.high {
				computed = append(computed, e)
			}
		case e.low < e.high && e.low >= e.base && e.count > 0 && e.count <= maxEntries && e.at != 0:
			list = append(list, e)
		}
		before, at = at, le.Uint64(b)
	}
	t.list, t.computed = list, computed
	clear(t.rules)
	return nil
}

// Rule returns how to get to the caller of a frame that stopped at pc; at is pc, or lies in the call
// before it. leaf says that the thread was stopped at pc itself. It is nil if no table has the code,
// or none that can be believed.
func (t *Tables) Rule(at, pc uint64, leaf bool) *ehframe.Rule {
	k := ruleKey{at, pc, leaf}
	if r, known := t.rules[k]; known {
		return r
	}
	r := t.rule(at, leaf)
	if t.rules == nil || len(t.rules) >= maxRules {
		t.rules = map[ruleKey]*ehframe.Rule{}
	}
	t.rules[k] = r
	return r
}

func (t *Tables) rule(at uint64, leaf bool) *ehframe.Rule {
	for i := range t.list {
		e := &t.list[i]
		if at < e.low || at >= e.high || at-e.base >= 1<<32 {
			continue
		}
		rva := uint32(at - e.base)
		f, ok := t.find(e, rva)
		if !ok {
			continue
		}
		u := winunwind.Unwinder{Reader: winunwind.At{Memory: t.mem, Base: e.base}, Find: func(rva uint32) (winunwind.Function, bool) { return t.find(e, rva) }}
		if f.End-f.Begin > maxBare && t.bare(e, f) {
			return nil
		}
		r, err := u.Rule(f, rva, leaf)
		if err != nil {
			return nil
		}
		return r
	}
	for i := range t.computed {
		if e := &t.computed[i]; at >= e.low && at < e.high && len(t.missed) < maxTables {
			if t.missed == nil {
				t.missed = map[uint64]bool{}
			}
			t.missed[e.low] = true
		}
	}
	return nil
}

// bare reports whether a function has no unwind codes.
func (t *Tables) bare(e *table, f winunwind.Function) bool {
	var head [4]byte
	return !t.mem.Bytes(e.base+uint64(f.Unwind), head[:]) || head[2] == 0
}

// find looks up a function in a table.
func (t *Tables) find(e *table, rva uint32) (f winunwind.Function, ok bool) {
	if e.unsorted {
		n := min(e.count, maxUnsorted)
		if uint32(len(t.buf)) < n*winunwind.FunctionSize {
			t.buf = make([]byte, n*winunwind.FunctionSize)
		}
		b := t.buf[:n*winunwind.FunctionSize]
		if !t.mem.Bytes(e.at, b) {
			return f, false
		}
		for ; len(b) > 0; b = b[winunwind.FunctionSize:] {
			if f = winunwind.ParseFunction(b); f.Contains(rva) {
				return f, true
			}
		}
		return f, false
	}
	read := true
	var b [winunwind.FunctionSize]byte
	function := func(i int) winunwind.Function {
		read = read && t.mem.Bytes(e.at+uint64(i)*winunwind.FunctionSize, b[:])
		return winunwind.ParseFunction(b[:])
	}
	i := sort.Search(int(e.count), func(i int) bool { return function(i).Begin > rva })
	if i == 0 || !read {
		return f, false
	}
	f = function(i - 1)
	return f, read && f.Contains(rva)
}
