package view

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
)

// shownTree is a tree as the page shows it.
type shownTree struct {
	tree  *flame.Tree
	funcs []profile.Func // those that the tree's symbols refer to
	place []uint32       // by node of the recording: place in the tree; nil if they are the same
	sym   []uint32       // by place: index into the tree's symbols; meaningless for the root

	once   sync.Once
	ways   *treeIndex
	doubts doubts
}

func newShownTree(tree *flame.Tree, funcs []profile.Func, place []uint32) *shownTree {
	s := &shownTree{tree: tree, funcs: funcs, place: place, sym: make([]uint32, len(tree.Order))}
	stretches(len(tree.Order), func(_, from, to int) {
		for i := from; i < to; i++ {
			s.sym[i] = tree.Nodes.At(tree.Order[i]).Frame
		}
	})
	return s
}

// placeOf returns the place in the tree of samples that end in a node of the recording.
func (s *shownTree) placeOf(node uint32) uint32 {
	if s.place == nil {
		return node
	}
	return s.place[node]
}

// onward returns where nodes of the recording lie in a tree that is derived from the shape's: to
// has the place there for each place of the shape.
func (s *shownTree) onward(to []uint32) []uint32 {
	if s.place == nil {
		return to
	}
	by := make([]uint32, len(s.place))
	for node, place := range s.place {
		by[node] = to[place]
	}
	return by
}

// rewrite is how the page wants stacks changed from how they were taken.
type rewrite struct {
	merge    []*regexp.Regexp // functions whose frames are left out
	fold     []*regexp.Regexp // functions whose recursion is one frame
	collapse []string         // "package X", "module X", or an expression
	starts   bool             // leave out what starts threads: see flame.Tree.FoldStarts
	raw      bool             // show the frames in which samples came late: see flame.Tree.FoldSkid
	key      string
}

// startsWhole reports whether a page that does not ask shows how threads start: a second tree
// without that takes as much memory as the first one, and takes a second or two to make if it has
// millions of places.
func (r *Recording) startsWhole() bool { return len(r.base.tree.Order) > maxShapePlaces }

// usualStarts sets the default of the recording in a query that does not say whether it wants to
// see how threads start.
func (r *Recording) usualStarts(v url.Values) url.Values {
	v = maps.Clone(v)
	v.Del("starts")
	if !r.startsWhole() {
		v.Set("starts", "fold")
	}
	return v
}

// others reports whether frames are shown other than they were taken, apart from how threads start.
func (w *rewrite) others() bool { return w != nil && len(w.merge)+len(w.fold)+len(w.collapse) > 0 }

// rewriteOf reads what the page asks: merge and recursion (expressions), collapse (as rewrite has
// it), each may be repeated, starts=fold and raw=1. It is nil for none.
func rewriteOf(v url.Values) (*rewrite, error) {
	w := rewrite{starts: v.Get("starts") == "fold", raw: v.Get("raw") == "1"}
	if len(v["merge"])+len(v["recursion"])+len(v["collapse"]) == 0 && !w.starts && !w.raw {
		return nil, nil
	}
	var err error
	if w.merge, err = expressions(v["merge"]); err != nil {
		return nil, err
	}
	if w.fold, err = expressions(v["recursion"]); err != nil {
		return nil, err
	}
	if w.collapse = v["collapse"]; len(w.collapse) > maxExpressions {
		return nil, fmt.Errorf("%w: more than %d libraries and packages", ErrQuery, maxExpressions)
	}
	for _, c := range w.collapse {
		if len(c) > maxExpression {
			return nil, fmt.Errorf("%w: a name of %d bytes", ErrQuery, len(c))
		}
	}
	w.key = url.Values{"m": v["merge"], "r": v["recursion"], "c": v["collapse"], "s": v["starts"][:min(len(v["starts"]), 1)], "raw": v["raw"][:min(len(v["raw"]), 1)]}.Encode()
	return &w, nil
}

// groupOf returns what is shown as one frame: functions of a package or of a module.
func groupOf(c string) (name string, has func(f *profile.Func) bool, err error) {
	kind, of, _ := strings.Cut(c, " ")
	switch kind {
	case "package":
		prefix := of + "."
		return prefix + "*", func(f *profile.Func) bool { return strings.HasPrefix(flame.Visible(f.Name), prefix) }, nil
	case "module":
		return "[" + of + "]", func(f *profile.Func) bool { return flame.Visible(f.Module) == of }, nil
	}
	return "", nil, fmt.Errorf("%w: %q is neither a package nor a module", ErrQuery, c)
}

// rewriting applies w to the functions of a recording.
func (w *rewrite) rewriting(p *profile.Profile) (*flame.Rewriting, error) {
	n := len(p.Funcs)
	out := &flame.Rewriting{Drop: make([]bool, n), Group: make([]uint32, n), Fold: make([]bool, n)}
	mark := func(list []*regexp.Regexp, to []bool) {
		for _, re := range list {
			for i := range p.Funcs {
				to[i] = to[i] || named(re, &p.Funcs[i])
			}
		}
	}
	mark(w.merge, out.Drop)
	mark(w.fold, out.Fold)
	for _, c := range w.collapse {
		name, has, err := groupOf(c)
		if err != nil {
			return nil, err
		}
		out.Names = append(out.Names, profile.Func{Name: name})
		for i := range p.Funcs {
			if out.Group[i] == 0 && has(&p.Funcs[i]) {
				out.Group[i] = uint32(len(out.Names))
			}
		}
	}
	return out, nil
}

// named reports whether an expression of the page's matches a function. The page knows names as
// they are shown, and sends those back.
func named(re *regexp.Regexp, f *profile.Func) bool {
	return re.MatchString(f.Name) || re.MatchString(flame.Visible(f.Name))
}

// keptShapes is how many rewritten trees are remembered, and maxShapePlaces is how many places they
// may have, unless it is only one: each takes some 50 bytes.
const keptShapes = 3

var maxShapePlaces = 4 << 20 // tests have less

// shapeFor returns the tree that the page asks for.
func (r *Recording) shapeFor(w *rewrite) (*shownTree, error) {
	if w == nil {
		return r.base, nil
	}
	// A page sends several queries at once: only one of them makes the tree.
	r.shaping.Lock()
	defer r.shaping.Unlock()
	r.mu.Lock()
	known := r.shapes[w.key]
	r.mu.Unlock()
	if known != nil {
		return known, nil
	}
	r.forgetShapes()
	s := r.base
	if w.raw {
		s = r.raw
	}
	if w.others() {
		rw, err := w.rewriting(r.p)
		if err != nil {
			return nil, err
		}
		tree, to, funcs := s.tree.Rewrite(r.p, rw)
		s = newShownTree(tree, funcs, s.onward(to))
	}
	if w.starts {
		if tree, to := s.tree.FoldStarts(s.funcs); to != nil {
			s = newShownTree(tree, s.funcs, s.onward(to))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shapes[w.key] = s
	return s, nil
}

// forgetShapes makes room for one more rewritten tree, before it is made.
func (r *Recording) forgetShapes() {
	r.mu.Lock()
	defer r.mu.Unlock()
	places := len(r.raw.tree.Order) // a rewritten tree usually has fewer
	for _, s := range r.shapes {
		places += len(s.tree.Order)
	}
	if len(r.shapes) < keptShapes && places <= maxShapePlaces {
		return
	}
	clear(r.shapes)
	// Remembered sums of filters keep a reference to their tree.
	for _, k := range r.last {
		if k.users == 0 {
			k.totals, k.groups, k.groupsOf, k.groupPlaces = nil, nil, nil, 0
		}
	}
}
