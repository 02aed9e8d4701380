package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"

	"github.com/candid-profiler/candid/internal/diff"
	"github.com/candid-profiler/candid/internal/profile"
)

// DiffOptions select what a report of two recordings shows.
type DiffOptions struct {
	View View // ViewMethods ("" too), ViewTree or ViewCallers
	// Top is how many rows a list or a tree has at most: 0 means 30 for a list and everything for a
	// tree, less than 0 means everything.
	Top int
	// ByTotal sorts the list by the change of total, not of self.
	ByTotal bool
	// MinPercent sums up the parts of a tree that changed by less than this percentage of all; 0
	// shows all.
	MinPercent float64
	Callers    *regexp.Regexp
	// Unfold shows each frame by which a thread starts in trees; otherwise they are one line.
	Unfold bool
	Width  int // of the terminal in columns; 0 means no limit
	Color  bool
}

// DiffText writes for people what changed from one recording to the other.
func DiffText(w io.Writer, c *diff.Comparison, o DiffOptions) error {
	if o.View == ViewCallers && o.Callers == nil {
		return ErrNoCallers
	}
	pg := &diffPage{page: newPage(w, Options{Width: o.Width, Color: o.Color}), c: c}
	pg.head()
	switch o.View {
	case ViewTree:
		pg.tree(c.Calls(), "CALL TREE", "", o)
	case ViewCallers:
		if nodes := c.Callers(o.Callers); len(nodes) > 1 {
			pg.tree(nodes, "CALLERS OF "+o.Callers.String(), "← ", o)
		} else {
			pg.line("No method that was seen matches %s.", o.Callers)
		}
	default:
		pg.methods(o)
	}
	pg.foot()
	if err := pg.w.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// diffPage is a page with columns for two recordings.
type diffPage struct {
	*page
	c      *diff.Comparison
	chance bool // a change was marked as within chance
}

const (
	moreColor = "\x1b[31m" // more than before
	lessColor = "\x1b[32m"
)

func (pg *diffPage) head() {
	c := pg.c
	for i, side := range c.Sides {
		name := [2]string{"base", "new "}[i]
		samples := plural(c.All[i].Samples, "sample", "samples")
		if c.Event.Kind != profile.EventSamples {
			samples += " of " + clean(c.Event.Name)
		}
		facts := []string{pg.paint(bold, clean(side.Name)), samples}
		if c.Event.Unit != "count" {
			facts = append(facts, amount(c.All[i].Weight, c.Event.Unit))
		}
		if side.Span > 0 {
			facts = append(facts, "in "+duration(side.Span))
		}
		q := side.Profile.Quality()
		if bad := q.Broken + q.Truncated; bad > 0 {
			facts = append(facts, finePercent(float64(bad)/float64(q.Samples))+" of the stacks lack their outer part")
		}
		pg.wrapped(name+"  ", facts)
		if side.Passed < side.All {
			pg.line("      of %s, %s (%s) pass the filter%s", plural(side.All, "sample", "samples"), grouped(side.Passed), percent(float64(side.Passed)/float64(side.All)),
				unknownKinds(side.Unknown, side.All))
		}
	}
	if c.Note != "" {
		pg.line("note  %s", clean(c.Note))
	}
	pg.line("%s", pg.paint(dim, map[diff.Normalize]string{
		diff.Total: "Shares of all that each side shows; changes in percentage points.",
		diff.Time:  "By the second of recording.",
		diff.None:  "Amounts as they are, however long each side was recorded.",
	}[c.Normalize]))
	pg.line("")
}

// foot explains the marks.
func (pg *diffPage) foot() {
	if pg.chance {
		pg.line("\n%s", pg.paint(dim, fmt.Sprintf("~ within chance: two recordings of one and the same program would differ that much more often than once in %.0f times.", 1/diff.Unlikely)))
	}
}

// digits is the width of a change, and of an amount with the blank before it.
const digits = 10

// cell returns the column of one side; nothing is a dash.
func (pg *diffPage) cell(side int, n profile.Count) string {
	if n.Samples == 0 {
		return right("-", digits)
	}
	v := pg.c.Value(side, n)
	if pg.c.Normalize == diff.Total {
		return right(fmt.Sprintf("%.2f%%", 100*v), digits)
	}
	return right(pg.amount(v), digits)
}

func (pg *diffPage) amount(v float64) string {
	s := amount(uint64(min(math.Round(v), 1<<62)), pg.c.Event.Unit)
	if pg.c.Normalize == diff.Time {
		s += "/s"
	}
	return s
}

// change returns the change of a count, with a mark if chance explains it.
func (pg *diffPage) change(n diff.Counts) string {
	v := pg.c.Change(n)
	text, mark := "", " "
	switch {
	case pg.c.Normalize == diff.Total:
		text = fmt.Sprintf("%+.2f", 100*v)
		if text == "+0.00" || text == "-0.00" {
			text = "0.00"
		}
	case math.Abs(v) < 0.5:
		text = "0"
	case v < 0:
		text = "-" + pg.amount(-v)
	default:
		text = "+" + pg.amount(v)
	}
	color := ""
	switch {
	case n[0].Samples+n[1].Samples == 0:
		return right("", digits) + " "
	case pg.c.WithinChance(n):
		if v != 0 {
			mark, pg.chance = "~", true
		}
		color = dim
	case v > 0:
		color = moreColor
	case v < 0:
		color = lessColor
	}
	return pg.paint(color, right(text, digits)+mark)
}

// cells returns the columns of a count on both sides.
func (pg *diffPage) cells(n diff.Counts) string {
	return pg.change(n) + pg.cell(0, n[0]) + pg.cell(1, n[1])
}

func diffHead(name string) string {
	return right(name+" CHANGE", digits+1) + right("BASE", digits) + right("NEW", digits)
}

// status returns whether a count exists only on one side.
func status(n diff.Counts) string {
	switch {
	case n[0].Samples == 0 && n[1].Samples > 0:
		return "new"
	case n[1].Samples == 0 && n[0].Samples > 0:
		return "gone"
	}
	return ""
}

func remarkOf(n diff.Counts) string {
	if s := status(n); s != "" {
		return "  (" + s + ")"
	}
	return ""
}

func (pg *diffPage) methods(o DiffOptions) {
	c := pg.c
	rows := c.List(o.ByTotal)
	if len(rows) == 0 {
		pg.line("No stack of either has a method.")
		return
	}
	top := o.Top
	if top == 0 {
		top = 30
	}
	shown := rows
	if top > 0 && len(rows) > top {
		shown = rows[:top]
	}
	head := diffHead("SELF") + " " + diffHead("TOTAL") + "  "
	pg.line("%s", pg.paint(bold, head+"METHOD"))
	for i := range shown {
		m := &shown[i]
		f := &c.Funcs[m.Func]
		remark := remarkOf(m.Total)
		pg.line("%s %s  %s%s", pg.cells(m.Self), pg.cells(m.Total), pg.named(f.Name, f.Module, kindColors[m.Kind], pg.room(len(head)+len(remark))), pg.paint(dim, remark))
	}
	if n := len(rows) - len(shown); n > 0 {
		last := &rows[len(shown)]
		most := last.Self
		if o.ByTotal {
			most = last.Total
		}
		text := fmt.Sprintf("and %s more, of which none changed", plural(uint64(n), "method", "methods"))
		if c.Change(most) != 0 {
			text += " by more than " + pg.plain(most)
		}
		pg.line("%s", pg.paint(dim, text))
	}
}

// plain returns a change without colours and marks.
func (pg *diffPage) plain(n diff.Counts) string {
	v := math.Abs(pg.c.Change(n))
	if pg.c.Normalize == diff.Total {
		return fmt.Sprintf("%.2f points", 100*v)
	}
	return pg.amount(v)
}

// tree writes a tree of both; parts in which nothing changed are summed up.
func (pg *diffPage) tree(nodes []diff.Node, title, arrow string, o DiffOptions) {
	head := diffHead("TOTAL") + "  "
	pg.line("%s", pg.paint(bold, head+title))
	var folds map[uint32]int // how many frames by which threads start a node stands for
	switch {
	case o.Unfold:
	case arrow == "":
		nodes, folds = pg.foldStart(nodes)
	default:
		nodes, folds = pg.foldEnds(nodes)
	}
	folded := false
	least := o.MinPercent / 100 * pg.c.Full()
	top := mostChanged(nodes, o.Top)
	type todo struct {
		node   uint32
		indent string // of its own line, with the branch before its name
		below  string // of the lines below its own
		rest   int
		count  diff.Counts
	}
	// The stack is kept here: a tree from a file may be too deep for recursion.
	below := func(stack []todo, node uint32, indent string) []todo {
		var shown []todo
		rest := todo{}
		for _, child := range nodes[node].Children {
			n := &nodes[child]
			if n.Most < least || top != nil && !top[child] {
				rest.rest++
				for side := range rest.count {
					rest.count[side].Add(n.Total[side])
				}
				continue
			}
			shown = append(shown, todo{node: child})
		}
		if rest.rest > 0 && len(shown) > 0 {
			shown = append(shown, rest)
		}
		root := node == profile.RootNode
		own := nodes[node].Self
		straight := len(shown) == 1 && (root || own[0].Samples+own[1].Samples == 0)
		for i := range shown {
			shown[i].indent, shown[i].below = branch(indent, i, len(shown), root || straight)
		}
		for i := len(shown) - 1; i >= 0; i-- {
			stack = append(stack, shown[i])
		}
		return stack
	}
	more := func(n int) string {
		if top != nil {
			return fmt.Sprintf("(%d more)", n)
		}
		return fmt.Sprintf("(%d more without a change of %s)", n, pg.least(least))
	}
	hidden := false
	stack := below(nil, profile.RootNode, "")
	for len(stack) > 0 {
		d := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		indent := indented(d.indent)
		if d.rest > 0 {
			hidden = true
			pg.line("%s  %s", pg.cells(d.count), pg.paint(dim, indent+more(d.rest)))
			continue
		}
		n := &nodes[d.node]
		f := &pg.c.Funcs[n.Func]
		a := arrow
		if n.Parent == profile.RootNode {
			a = ""
		}
		remark := remarkOf(n.Total)
		if status(n.Total) == status(nodes[n.Parent].Total) {
			remark = "" // its caller has it already
		}
		if frames := folds[d.node]; frames > 0 {
			folded = true
			pg.line("%s  %s", pg.cells(n.Total), pg.paint(dim, fmt.Sprintf("%s%s(%d frames by which threads start)%s", indent, a, frames, remark)))
			stack = below(stack, d.node, d.below)
			continue
		}
		used := len(head) + len([]rune(indent)) + len([]rune(a)) + len(remark)
		pg.line("%s  %s%s%s", pg.cells(n.Total), pg.paint(dim, indent+a), pg.named(f.Name, f.Module, "", pg.room(used)), pg.paint(dim, remark))
		stack = below(stack, d.node, d.below)
	}
	if hidden && top != nil {
		pg.line("\n%s", pg.paint(dim, fmt.Sprintf("Of parts that changed by %s the %d that changed most are shown (--min, -n), others are summed up in lines in brackets.", pg.least(least), o.Top)))
	} else if hidden {
		pg.line("\n%s", pg.paint(dim, "Parts in which nothing changed by "+pg.least(least)+" are summed up in lines in brackets (--min)."))
	}
	if folded {
		between := "\n"
		if hidden {
			between = ""
		}
		pg.line("%s%s", between, pg.paint(dim, "--unfold shows each of the frames by which threads start."))
	}
}

// mostChanged reports for each node whether it is among the n nodes below the root that changed
// most; nil if all are to be shown. Nodes that folding removed from the tree do not count. If a
// node changed by as much as a part of it, the node comes first.
func mostChanged(nodes []diff.Node, n int) []bool {
	if n <= 0 {
		return nil
	}
	var order []uint32
	for todo := slices.Clone(nodes[profile.RootNode].Children); len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], nodes[at].Children...)
		order = append(order, at)
	}
	if len(order) <= n {
		return nil
	}
	slices.Sort(order) // callers first
	slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(nodes[b].Most, nodes[a].Most) })
	top := make([]bool, len(nodes))
	for _, i := range order[:n] {
		top[i] = true
	}
	return top
}

func (pg *diffPage) least(v float64) string {
	if pg.c.Normalize == diff.Total {
		return fmt.Sprintf("%g points", 100*v)
	}
	return pg.amount(v)
}
