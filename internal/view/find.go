package view

import (
	"context"
	"fmt"
	"net/url"
)

// finding is a row of the call tree that a search found.
type finding struct {
	place uint32 // the first place of the row; 0: nothing was found
	index int    // among all rows that were found
	count int    // how many rows were found
}

// findMessage answers which row of the call tree a search finds next: find is an expression, at the
// place of the current row (none: there is none), step 1 or -1. Rows come in the order of the tree,
// and the search wraps around. Rows below a match are not searched. Filters are as for counts.
func findMessage(ctx context.Context, r *Recording, v url.Values) ([]byte, error) {
	q, s, err := r.asked(v)
	if err != nil {
		return nil, err
	}
	list, err := expressions(v["find"])
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("%w: find is one expression", ErrQuery)
	}
	at, err := number(v, "at", 0)
	if err != nil {
		return nil, err
	}
	if at >= uint64(len(s.sym)) {
		return nil, fmt.Errorf("%w: there is no place %d", ErrQuery, at)
	}
	back := v.Get("step") == "-1"
	symbols := make([]bool, len(s.tree.Symbols))
	for i, symbol := range s.tree.Symbols {
		if int(symbol.Func) < len(s.funcs) {
			symbols[i] = named(list[0], &s.funcs[symbol.Func])
		}
	}
	var f finding
	err = r.totalled(ctx, &q, s, func(t *placeSums) (err error) {
		f, err = r.find(ctx, t, symbols, uint32(at), back)
		return err
	})
	if err != nil {
		return nil, err
	}
	return (&message{}).finish(map[string]any{"place": f.place, "index": f.index, "count": f.count})
}

// find looks for the row after at, or before it. Places that differ only in how a method was
// compiled are one row, which stands where its first place does. The error is the context's.
func (r *Recording) find(ctx context.Context, t *placeSums, symbols []bool, at uint32, back bool) (finding, error) {
	s, w := t.of, r.ways(t.of)
	type way struct{ row, key uint32 }
	rows := make(map[way]uint32) // the row, named by its first place, by its parent row and its key
	row := make([]uint32, len(w.end))
	var found []uint32
	below := uint32(0) // the end of what lies below the last match
	seen := make(map[uint32]bool)
	for i := uint32(1); int(i) < len(row); {
		if i%step == 0 && ctx.Err() != nil {
			return finding{}, ctx.Err()
		}
		if t.samples(i) == 0 {
			i = w.end[i]
			continue
		}
		k := way{row[w.parent[i]], w.key[s.sym[i]]}
		first, known := rows[k]
		if !known {
			first = i
			rows[k] = i
		}
		row[i] = first
		if i >= below && symbols[s.sym[i]] {
			below = w.end[i]
			if !seen[first] {
				seen[first] = true
				found = append(found, first)
			}
		}
		i++
	}
	n := len(found)
	if n == 0 {
		return finding{}, nil
	}
	here := row[at]
	index := 0
	if back {
		for index = n - 1; index >= 0 && here > 0 && found[index] >= here; index-- {
		}
		if index < 0 {
			index = n - 1
		}
	} else {
		for index < n && here > 0 && found[index] <= here {
			index++
		}
		index %= n
	}
	return finding{found[index], index, n}, nil
}
