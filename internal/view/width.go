package view

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
)

// width determines what is wide enough to be seen: each half is drawn over room pixels, which show
// the part between two shares of its width. Narrower nodes are folded, together with their narrow
// siblings, into one node. The zero width folds nothing.
type width struct {
	room        int
	left, right float64
	before      bool // the half is as wide as it was before
}

// maxRoom is more pixels than any screen has.
const maxRoom = 1 << 16

// stretch is a part of a half, in the weight that its width stands for.
type stretch struct {
	from, to uint64
	before   bool
}

func (s *stretch) of(h has) uint64 {
	if s.before {
		return h.before
	}
	return h.after
}

// look determines what is wide enough to be seen for the frames of a method.
func (x *sandwiching) look(w width, frames []has) {
	if w.room == 0 {
		return
	}
	var all has
	for _, h := range frames {
		all.after += h.after
		all.before += h.before
	}
	least := func(part float64) has {
		of := func(n uint64) uint64 { return uint64(math.Ceil(part * float64(n) / float64(w.room))) }
		return has{after: of(all.after), before: of(all.before)}
	}
	x.seen.before = w.before
	whole := float64(x.seen.of(all))
	x.seen.from, x.seen.to = uint64(w.left*whole), uint64(math.Ceil(w.right*whole))
	x.close, x.far = least(w.right-w.left), least(1)
}

// narrow reports whether a bunch that begins at a position of the half is too narrow to be seen.
func (x *sandwiching) narrow(b *bunch, at uint64) bool {
	least := &x.far
	if at < x.seen.to && at+x.seen.of(has{after: b.after, before: b.before}) > x.seen.from {
		least = &x.close
	}
	return b.after < least.after && (x.before == nil || b.before < least.before)
}

// widthOf reads over how many pixels halves are drawn: room; between which shares of their width
// they are visible: left and right; and whether they are as wide as before: wide=before.
func widthOf(v url.Values) (width, error) {
	room, err := number(v, "room", 0)
	if err != nil {
		return width{}, err
	}
	w := width{room: int(min(room, maxRoom)), right: 1, before: v.Get("wide") == "before"}
	for name, to := range map[string]*float64{"left": &w.left, "right": &w.right} {
		if v.Has(name) {
			if *to, err = strconv.ParseFloat(v.Get(name), 64); err != nil {
				return width{}, fmt.Errorf("%w: %s is no number", ErrQuery, name)
			}
		}
	}
	if !(w.left >= 0 && w.left < w.right && w.right <= 1) {
		return width{}, fmt.Errorf("%w: from %v to %v is no part of a half", ErrQuery, w.left, w.right)
	}
	return w, nil
}
