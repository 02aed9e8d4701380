package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/candid-profiler/candid/internal/profile"
)

// tree writes a tree of methods. It is indented only where it branches: a single path goes straight
// down, however deep. Parts below the least share are summed up in a line of their own.
func (pg *page) tree(s *profile.Selection, t *profile.Tree, title, arrow string, o Options) {
	head := cellsHead("TOTAL", s) + "  " + right("SELF", 6) + "  "
	if arrow != "" {
		head = cellsHead("TOTAL", s) + "  "
	}
	pg.line("%s", pg.paint(bold, head+title))
	tp := treePrinter{page: pg, s: s, t: t, arrow: arrow, least: o.MinPercent / 100, used: len(head)}
	if !o.Unfold {
		tp.fold()
	}
	if o.Top > 0 {
		tp.keepMost(o.Top)
	}
	tp.children(profile.RootNode)
	if tp.cut > 0 {
		pg.line("\n%s", pg.paint(dim, fmt.Sprintf("and %s more: -n says how many are shown, the largest of them.", plural(uint64(tp.cut), "row", "rows"))))
	}
	if tp.hidden > 0 {
		pg.line("\n%s", pg.paint(dim, fmt.Sprintf("Parts below %s are summed up in lines in brackets.", percent(o.MinPercent/100))))
	}
	if tp.folded {
		between := "\n"
		if tp.hidden > 0 {
			between = ""
		}
		pg.line("%s%s", between, pg.paint(dim, "--unfold shows each of the frames by which threads start."))
	}
}

type treePrinter struct {
	*page
	s      *profile.Selection
	t      *profile.Tree
	arrow  string
	least  float64
	used   int
	hidden int
	folds  map[uint32]int // how many frames of a thread's start a node stands for
	folded bool           // such a line was written
	keep   []bool         // by node: the only ones that are shown; nil: all
	cut    int            // how many more nodes there are
}

// keepMost keeps the n nodes with the largest totals. A node's total is at least that of each node
// below it, so these nodes are a tree too.
func (tp *treePrinter) keepMost(n int) {
	var order []uint32 // parents before their children
	todo := []uint32{profile.RootNode}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at != profile.RootNode {
			order = append(order, at)
			if tp.arrow != "" && tp.folds[at] > 0 {
				continue
			}
		}
		for _, c := range slices.Backward(tp.t.Nodes[at].Children) {
			if tp.t.Nodes[c].Total.Share(tp.s.Chosen) >= tp.least {
				todo = append(todo, c)
			}
		}
	}
	if len(order) <= n {
		return
	}
	slices.SortStableFunc(order, func(a, b uint32) int {
		x, y := tp.t.Nodes[a].Total, tp.t.Nodes[b].Total
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(y.Samples, x.Samples))
	})
	tp.cut = len(order) - n
	tp.keep = make([]bool, len(tp.t.Nodes))
	for _, at := range order[:n] {
		tp.keep[at] = true
	}
}

// todo is a node or, with rest, a sum of nodes that is still to be written.
type todo struct {
	node   uint32
	indent string // of its own line, with the branch before its name
	below  string // of the lines below its own
	rest   int
	count  profile.Count
}

// children writes everything below a node. It keeps its own stack: a tree from a file may be too
// deep for recursion.
func (tp *treePrinter) children(root uint32) {
	stack := tp.below(nil, root, "", true)
	for len(stack) > 0 {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if next.rest > 0 {
			tp.summed(next)
			continue
		}
		tp.node(next)
		if tp.arrow != "" && tp.folds[next.node] > 0 {
			continue
		}
		stack = tp.below(stack, next.node, next.below, false)
	}
}

// below puts the children of a node on the stack, the first on top.
func (tp *treePrinter) below(stack []todo, node uint32, indent string, root bool) []todo {
	var shown []todo
	rest := todo{}
	for _, c := range tp.t.Nodes[node].Children {
		n := &tp.t.Nodes[c]
		if tp.keep != nil && !tp.keep[c] {
			continue
		}
		if n.Total.Share(tp.s.Chosen) < tp.least {
			rest.rest++
			rest.count.Add(n.Total)
			continue
		}
		shown = append(shown, todo{node: c})
	}
	if rest.rest > 0 {
		tp.hidden += rest.rest
		shown = append(shown, rest)
	}
	// A child that has all of its parent's weight needs no branch.
	straight := len(shown) == 1 && (root || tp.t.Nodes[node].Self.Samples == 0)
	for i := range shown {
		shown[i].indent, shown[i].below = branch(indent, i, len(shown), root || straight)
	}
	for i := len(shown) - 1; i >= 0; i-- {
		stack = append(stack, shown[i])
	}
	return stack
}

// branch returns what is drawn before the ith of n children, and before what is below it.
func branch(indent string, i, n int, straight bool) (line, below string) {
	switch {
	case straight:
		return indent, indent
	case i == n-1:
		return indent + "└ ", indent + "  "
	}
	return indent + "├ ", indent + "│ "
}

// maxIndent is where a tree stops moving right. It is not cut: only the lines of the branches are.
const maxIndent = 60

func indented(indent string) string {
	r := []rune(indent)
	if len(r) <= maxIndent {
		return indent
	}
	return "… " + string(r[len(r)-maxIndent+2:])
}

func (tp *treePrinter) node(d todo) {
	n := &tp.t.Nodes[d.node]
	indent := indented(d.indent)
	line := cells(n.Total, tp.s) + "  "
	if tp.arrow == "" {
		self := ""
		if n.Self.Samples > 0 {
			self = percent(n.Self.Share(tp.s.Chosen))
		}
		line += right(self, 6) + "  "
	}
	arrow := tp.arrow
	if n.Parent == profile.RootNode {
		arrow = ""
	}
	if frames := tp.folds[d.node]; frames > 0 {
		tp.folded = true
		tp.line("%s%s", line, tp.paint(dim, fmt.Sprintf("%s%s(%d frames by which threads start)", indent, arrow, frames)))
		return
	}
	used := tp.used + len([]rune(indent)) + len([]rune(arrow))
	tp.line("%s%s%s%s", line, tp.paint(dim, indent+arrow), tp.named(tp.s.Name(n.Method), tp.s.Func(n.Method).Module, kindColors[n.Kind], tp.room(used)), "")
}

func (tp *treePrinter) summed(d todo) {
	line := cells(d.count, tp.s) + "  "
	if tp.arrow == "" {
		line += right("", 6) + "  "
	}
	tp.line("%s%s", line, tp.paint(dim, fmt.Sprintf("%s(%d more below %s each)", indented(d.indent), d.rest, percent(tp.least))))
}

func (pg *page) callers(s *profile.Selection, o Options) {
	t := s.Callers(o.Callers)
	if len(t.Nodes) == 1 {
		pg.line("No method that was seen matches %s.", o.Callers)
		return
	}
	pg.tree(s, t, "CALLERS OF "+o.Callers.String(), "← ", o)
}
