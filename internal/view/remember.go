package view

import (
	"context"
	"slices"
	"sync"
)

// remembered holds the sums of a filter, because the next view of it is mostly made of the same
// numbers. Two requests for the same filter at once share the work.
type remembered struct {
	key   string
	ready chan struct{} // closed when sum is set, or will not be
	sum   *partial      // nil: the request that computed it was cancelled
	users int
	old   bool // it is not remembered any more

	mu     sync.Mutex
	totals *placeSums // for the shape that was asked for last
	// By thread and process, for the shape that was asked for last.
	groups      map[uint32]*placeSums // by key of the group
	groupsOf    *shownTree
	groupPlaces int
}

// maxRemembered is how many filters are remembered: enough for two that are compared.
const maxRemembered = 2

// borrow returns the sums of what q chooses. They must not be changed, and must be given back. The
// error is the context's.
func (r *Recording) borrow(ctx context.Context, q *Query) (*remembered, error) {
	key := q.key()
	for {
		r.mu.Lock()
		i := slices.IndexFunc(r.last, func(k *remembered) bool { return k.key == key })
		if i < 0 {
			k := &remembered{key: key, ready: make(chan struct{}), users: 1}
			r.last = append(r.last, k)
			r.mu.Unlock()
			return k, r.fill(ctx, k, q)
		}
		k := r.last[i]
		k.users++
		r.last = append(slices.Delete(r.last, i, i+1), k) // moved to the end, as the latest
		r.mu.Unlock()
		select {
		case <-k.ready:
			if k.sum != nil {
				return k, nil
			}
			r.giveBack(k) // the request that computed it was cancelled, but this one was not
		case <-ctx.Done():
			r.giveBack(k)
			return nil, ctx.Err()
		}
	}
}

// fill computes the sums that were not remembered, and drops what exceeds maxRemembered.
func (r *Recording) fill(ctx context.Context, k *remembered, q *Query) error {
	sum, err := r.sum(ctx, q)
	r.mu.Lock()
	k.sum = sum
	var free []*remembered
	forget := func(i int) {
		o := r.last[i]
		r.last = slices.Delete(r.last, i, i+1)
		if o.old = true; o.users == 0 {
			free = append(free, o)
		}
	}
	if err != nil {
		if i := slices.Index(r.last, k); i >= 0 { // otherwise the recording has grown
			forget(i)
		}
	}
	ready := 0
	for i := len(r.last) - 1; i >= 0; i-- {
		if r.last[i].sum == nil {
			continue
		}
		if ready++; ready > maxRemembered {
			forget(i)
		}
	}
	r.mu.Unlock()
	close(k.ready)
	r.recycle(free)
	if err != nil {
		r.giveBack(k)
	}
	return err
}

func (r *Recording) giveBack(k *remembered) {
	r.mu.Lock()
	k.users--
	free := k.old && k.users == 0
	r.mu.Unlock()
	if free {
		r.recycle([]*remembered{k})
	}
}

// recycle keeps the memory of sums that are not needed any more for reuse.
func (r *Recording) recycle(list []*remembered) {
	for _, k := range list {
		if k.sum != nil {
			r.keep([]*partial{k.sum})
		}
	}
}

// counted adds up what q chooses, and lends the sums to f, which may not change them. The error is
// the context's.
func (r *Recording) counted(ctx context.Context, q *Query, f func(p *partial)) error {
	k, err := r.borrow(ctx, q)
	if err != nil {
		return err
	}
	defer r.giveBack(k)
	f(k.sum)
	return nil
}

// totalled adds up what q chooses by place of a tree, and lends the sums to f, which may not change
// them. The error is the context's, or f's.
func (r *Recording) totalled(ctx context.Context, q *Query, s *shownTree, f func(t *placeSums) error) error {
	return r.lend(ctx, q, s, func(_ *remembered, t *placeSums) error { return f(t) })
}

// lend is totalled that also lends everything else that is remembered of q.
func (r *Recording) lend(ctx context.Context, q *Query, s *shownTree, f func(k *remembered, t *placeSums) error) error {
	k, err := r.borrow(ctx, q)
	if err != nil {
		return err
	}
	defer r.giveBack(k)
	k.mu.Lock()
	t := k.totals
	if t == nil || t.of != s {
		t = r.newTotals(s, k.sum.ends)
		k.totals = t
	}
	k.mu.Unlock()
	return f(k, t)
}

// bothTotalled is totalled for two queries that are compared; base may be nil, and then before is
// nil too.
func (r *Recording) bothTotalled(ctx context.Context, q, base *Query, s *shownTree, f func(after, before *placeSums) error) error {
	return r.totalled(ctx, q, s, func(after *placeSums) error {
		if base == nil {
			return f(after, nil)
		}
		return r.totalled(ctx, base, s, func(before *placeSums) error { return f(after, before) })
	})
}
