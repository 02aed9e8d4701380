package pgo

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteLLVMText writes the sample profile of LLVM as text, for -fprofile-sample-use
// (https://clang.llvm.org/docs/UsersManual.html, "Sample Profile Text Format").
func (t *Tree) WriteLLVMText(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, f := range t.sorted() {
		fmt.Fprintf(out, "%s:%d:%d\n", f.name, f.total(), count(f.head))
		f.text(out, 1)
	}
	return out.Flush()
}

// text writes a function's body, each line indented by so many blanks.
func (f *function) text(w *bufio.Writer, depth int) {
	indent := strings.Repeat(" ", depth)
	for _, l := range sortedKeys(f.body) {
		b := f.body[l]
		fmt.Fprintf(w, "%s%v: %d", indent, l, count(b.count))
		for _, c := range b.sortedTargets() {
			fmt.Fprintf(w, " %s:%d", c.name, c.count)
		}
		w.WriteByte('\n')
	}
	for _, l := range sortedKeys(f.inlined) {
		for _, name := range slices.Sorted(maps.Keys(f.inlined[l])) {
			in := f.inlined[l][name]
			if total := in.total(); total > 0 {
				fmt.Fprintf(w, "%s%v: %s:%d\n", indent, l, name, total)
				in.text(w, depth+1)
			}
		}
	}
}

// String returns the location as LLVM writes it.
func (l location) String() string {
	if l.discriminator == 0 {
		return fmt.Sprint(l.line)
	}
	return fmt.Sprintf("%d.%d", l.line, l.discriminator)
}
