package view

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"testing"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
)

// TestMethodSums compares what the page is sent of each method with a report of the same filter.
// The tree is large enough to be divided among workers.
func TestMethodSums(t *testing.T) {
	r := busy(t, 120_000, 300_000)
	if n := workersFor(len(r.parent)); len(r.parent) < 2*step {
		t.Fatalf("%d places, for %d workers", len(r.parent), n)
	}
	for _, c := range append(questions(r), question{"as they were", url.Values{"recursion": {"no such method"}}, profile.Filter{}}) {
		q, err := r.query(c.ask)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.shapeFor(q.rewrite)
		if err != nil {
			t.Fatal(err)
		}
		w := r.ways(s)
		var got []methodSum
		err = r.totalled(context.Background(), &q, s, func(x *placeSums) (err error) {
			got, err = r.methodSums(context.Background(), x)
			for m, sum := range got {
				if sum.samples > 0 && (w.method[s.sym[sum.place]] != int32(m) || x.samples(sum.place) == 0) {
					t.Errorf("%s: the heaviest place of method %d is of method %d", c.name, m, w.method[s.sym[sum.place]])
				}
			}
			// Each place has the sum of its children and of what ended in it.
			for i := range uint32(len(w.end)) {
				total, samples := x.self(i), x.count(i)
				for k := i + 1; k < w.end[i]; k = w.end[k] {
					total, samples = total+x.total(k), samples+x.samples(k)
				}
				if total != x.total(i) || samples != x.samples(i) {
					t.Fatalf("%s: place %d has %d in %d samples, its parts %d in %d", c.name, i, x.total(i), x.samples(i), total, samples)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		// By name, as reports have it.
		type row struct {
			self, total, count, samples uint64
			kind                        string
		}
		have, want := map[string]row{}, map[string]row{}
		for symbol, m := range w.method {
			if m >= 0 && got[m].samples > 0 {
				f := s.funcs[s.tree.Symbols[symbol].Func]
				have[f.Name+"\x00"+f.Module] = row{got[m].self, got[m].total, got[m].count, got[m].samples, flame.KindNames[got[m].kind]}
			}
		}
		sel := r.p.Select(c.filter)
		rep := report.Make(sel, report.Options{Filter: c.filter})
		for i, m := range sel.List() {
			f := sel.Func(m.Method)
			want[f.Name+"\x00"+f.Module] = row{m.Self.Weight, m.Total.Weight, m.Self.Samples, m.Total.Samples, rep.Methods[i].Kind}
		}
		if len(have) != len(want) {
			t.Errorf("%s: %d methods, want %d", c.name, len(have), len(want))
		}
		for name, row := range want {
			if have[name] != row {
				t.Fatalf("%s: %q has %+v, want %+v", c.name, name, have[name], row)
			}
		}
	}
}

// TestSameQuestionAtOnce asks the same question many times at once: the sums are computed once, the
// others wait, and a request that is cancelled takes nothing from the others.
func TestSameQuestionAtOnce(t *testing.T) {
	r := busy(t, 4000, 100_000)
	want := r.p.Select(profile.Filter{}).Chosen
	for range 20 {
		r.mu.Lock()
		r.last = nil
		r.mu.Unlock()
		given, giveUp := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for k := range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				ctx := context.Background()
				if k%2 == 0 {
					ctx = given
				}
				err := r.totalled(ctx, new(Query), r.base, func(x *placeSums) error {
					if x.total(0) != want.Weight || uint64(x.samples(0)) != want.Samples {
						t.Errorf("%d in %d samples, want %+v", x.total(0), x.samples(0), want)
					}
					return nil
				})
				if err != nil && (k%2 != 0 || !errors.Is(err, context.Canceled)) {
					t.Errorf("question %d: %v", k, err)
				}
			}()
		}
		giveUp()
		wg.Wait()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) > maxRemembered {
		t.Errorf("%d are remembered", len(r.last))
	}
	for _, k := range r.last {
		if k.users != 0 || k.sum == nil {
			t.Errorf("one that is remembered has %d users, and sum %v", k.users, k.sum != nil)
		}
	}
}
