package dump

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/candid-profiler/candid/internal/runtimes"
)

// WriteText prints a Dump as text in jstack's style: a paragraph per thread, its stack innermost
// frame first.
func (d *Dump) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i := range d.Processes {
		if i > 0 {
			fmt.Fprintln(b)
		}
		d.Processes[i].text(b, d)
	}
	return b.Flush()
}

func (p *Process) text(b *bufio.Writer, d *Dump) {
	runtime := ""
	if p.Runtime != "" {
		runtime = " " + p.Runtime + ","
	}
	fmt.Fprintf(b, "%s  process %d,%s %s: %s\n", d.Time.Format("2006-01-02 15:04:05.000"), p.PID, runtime, count(p.Count, "thread"), plain(p.Command))
	for _, n := range p.Notes {
		fmt.Fprintf(b, "note: %s\n", plain(n))
	}
	if s := p.Safepoint; s != nil {
		fmt.Fprintf(b, "safepoint: %s\n", s.text(p))
	}
	for i := range p.Threads {
		fmt.Fprintln(b)
		p.Threads[i].text(b)
	}
	for _, cycle := range p.Deadlocks {
		fmt.Fprintln(b)
		p.deadlockText(b, cycle)
	}
	if p.Async != nil {
		p.Async.text(b)
	}
	fmt.Fprintln(b)
	fmt.Fprintf(b, "%s shown of %d in %.1f ms", count(len(p.Threads), "thread"), p.Count, d.TookMS)
	if s := p.Stops; s.Count > 0 {
		which := "running ones"
		if slices.ContainsFunc(p.Threads, func(t Thread) bool { return t.Read == ReadStopped && t.State == "sleeping" }) {
			which = "of them, each by itself," // Windows shows no stack of a thread that sleeps
		}
		fmt.Fprintf(b, "; %d %s stood still for %.0f µs at the median, %.0f µs at most", s.Count, which, s.MedianUS, s.MaxUS)
	} else {
		fmt.Fprint(b, "; none was stopped")
	}
	fmt.Fprintln(b)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// vm returns what a VM reports of the thread, as for Java, nil if none does.
func (t *Thread) vm() *Java {
	if n := t.DotNet; n != nil {
		return &Java{ID: n.ID, WaitsFor: n.WaitsFor, Holds: n.Holds, Changed: n.Changed}
	}
	return t.Java
}

func (t *Thread) text(b *bufio.Writer) {
	fmt.Fprintf(b, "%q", plain(t.Name))
	if t.Java == nil {
		fmt.Fprintf(b, " %s", t.Kind)
	}
	if j := t.vm(); j != nil {
		if j.ID != 0 {
			fmt.Fprintf(b, " #%d", j.ID)
		}
		if j.Daemon {
			fmt.Fprint(b, " daemon")
		}
		if j.Priority != 0 {
			fmt.Fprintf(b, " prio=%d", j.Priority)
		}
	}
	fmt.Fprintf(b, " tid=%d cpu=%s", t.TID, cpuTime(t.CPU))
	if t.OSName != "" && !strings.HasPrefix(t.Name, t.OSName) {
		fmt.Fprintf(b, " os=%q", plain(t.OSName))
	}
	fmt.Fprintf(b, " %s", t.State)
	if t.Syscall != "" {
		fmt.Fprintf(b, " in %s", t.Syscall)
	}
	if j := t.Java; j != nil && j.VMState != "" && !j.waits() {
		fmt.Fprintf(b, ", %s", j.VMState)
	}
	fmt.Fprintln(b)
	if j := t.vm(); j != nil {
		j.text(b)
	}
	for i := range t.Frames {
		t.Frames[i].text(b)
	}
	switch {
	case t.Error != "":
		fmt.Fprintf(b, "\t(%s)\n", plain(t.Error))
	case t.End != "":
		fmt.Fprintf(b, "\t(the stack ends here: %s)\n", t.End)
	}
}

// waits reports whether the thread's Java state tells why it waits. The VM's state is then
// "blocked", in Thread.sleep too, which adds nothing and would suggest a problem.
func (j *Java) waits() bool {
	return j.VMState == runtimes.VMBlocked && j.State != "" && j.State != runtimes.StateRunnable
}

func (j *Java) text(b *bufio.Writer) {
	if j.State != "" {
		fmt.Fprintf(b, "   java.lang.Thread.State: %s\n", j.State)
	}
	if v := j.Virtual; v != nil {
		fmt.Fprintf(b, "   carries virtual thread #%d %q\n", v.ID, plain(v.Name))
	}
	if j.Compiling != "" {
		fmt.Fprintf(b, "   compiles %s (tier %d)\n", plain(j.Compiling), j.Tier)
	}
	if l := j.WaitsFor; l != nil {
		fmt.Fprintf(b, "   %s\n", l.text())
	}
	for i := range j.Holds {
		fmt.Fprintf(b, "   %s\n", j.Holds[i].text())
	}
	if j.Changed {
		fmt.Fprintln(b, "   (its locks changed while it was read: they and the stack need not be of the same moment)")
	}
}

// text returns a thread's relation to an object, as jstack prints it.
func (l *Lock) text() string {
	s := fmt.Sprintf("- %s <0x%016x> (a %s)", l.How, l.Address, plain(l.Class))
	if l.Owner != "" || l.OwnerTID != 0 {
		s += fmt.Sprintf(" held by %q tid=%d", plain(l.Owner), l.OwnerTID)
	}
	if v := l.OwnerVirtual; v != nil && l.OwnerTID != 0 {
		s += fmt.Sprintf(", which carries virtual thread #%d %q", v.ID, plain(v.Name))
	} else if v != nil {
		s += fmt.Sprintf(" held by virtual thread #%d %q, not mounted", v.ID, plain(v.Name))
	}
	return s
}

func (f *Frame) text(b *bufio.Writer) {
	text := ""
	switch {
	case f.java():
		text = f.javaText()
	case f.File != "" && f.Line > 0:
		text = fmt.Sprintf("%s(%s:%d)", f.Function, path.Base(f.File), f.Line)
	case f.Module != "" && f.Kind != "kernel":
		text = fmt.Sprintf("%s(%s)", f.Function, f.Module)
	default:
		text = f.Function
	}
	guessed := ""
	if f.Guessed {
		guessed = "?"
	}
	fmt.Fprintf(b, "\tat %s [%s%s]\n", plain(text), f.Kind, guessed)
}

// leaveJava removes the frames of other code from stacks that have Java frames.
func (p *Process) leaveJava() {
	for i := range p.Threads {
		t := &p.Threads[i]
		if slices.ContainsFunc(t.Frames, func(f Frame) bool { return f.java() }) {
			t.Frames = slices.DeleteFunc(slices.Clone(t.Frames), func(f Frame) bool { return !f.java() })
		}
	}
}

// java reports whether the frame is a Java method.
func (f *Frame) java() bool {
	switch f.Kind {
	case "interpreted", "C1", "C2", "compiled", "native method", "Tier-0", "Tier-0 instrumented", "OSR", "Tier-1", "ReadyToRun":
		return true
	}
	return f.Kind == "inlined" && f.BCI != nil
}

// script reports whether a file is a JavaScript file: the position in its functions is not known.
func script(file string) bool {
	switch path.Ext(file) {
	case ".js", ".mjs", ".cjs":
		return true
	}
	return strings.HasPrefix(file, "node:")
}

// javaText returns a Java frame as jstack prints it. If the pc in compiled code lies between two
// positions of its debug information, there is no position in the method either.
func (f *Frame) javaText() string {
	switch {
	case f.BCI == nil && (f.Kind == "interpreted" && !script(f.File) || f.Kind == "native method"):
		return f.Function + "(Native Method)"
	case f.File == "":
		return f.Function + "(Unknown Source)"
	case f.Line > 0:
		return fmt.Sprintf("%s(%s:%d)", f.Function, path.Base(f.File), f.Line)
	}
	return fmt.Sprintf("%s(%s)", f.Function, path.Base(f.File))
}

func (s *Safepoint) text(p *Process) string {
	out := s.State
	if s.Operation != "" {
		out += " for " + plain(s.Operation)
	}
	if s.SinceMS > 0 {
		out += fmt.Sprintf(", %.1f ms so far", s.SinceMS)
	}
	for i, tid := range s.WaitsFor {
		if i == 0 {
			out += ", waiting for "
		} else {
			out += ", "
		}
		out += p.name(tid)
	}
	return out
}

// name returns the name of a thread in a sentence.
func (p *Process) name(tid int) string {
	for i := range p.Threads {
		if p.Threads[i].TID == tid {
			return fmt.Sprintf("%q tid=%d", plain(p.Threads[i].Name), tid)
		}
	}
	return fmt.Sprintf("tid=%d", tid)
}

func (p *Process) deadlockText(b *bufio.Writer, cycle []int) {
	fmt.Fprintf(b, "deadlock of %s:\n", count(len(cycle), "thread"))
	for i, tid := range cycle {
		for j := range p.Threads {
			t := &p.Threads[j]
			if j := t.vm(); t.TID == tid && j != nil && j.WaitsFor != nil {
				l := j.WaitsFor
				fmt.Fprintf(b, "  %s waits for <0x%016x> (a %s), which %s holds\n", p.name(tid), l.Address, plain(l.Class), p.name(cycle[(i+1)%len(cycle)]))
			}
		}
	}
}

func cpuTime(ns uint64) string {
	if ns < 10e9 {
		return fmt.Sprintf("%.2fms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.1fs", time.Duration(ns).Seconds())
}

// plain makes text from a target safe for a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
