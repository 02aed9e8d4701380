package pgo

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"

	"github.com/candid-profiler/candid/internal/safeopen"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/x86"
)

// Annotated is a function's code with what a recording says of it.
type Annotated struct {
	Name    string // demangled
	Start   uint64
	Samples float64 // in the function
	All     float64 // of all samples in user code
	Lines   []AnnotatedInst
}

// AnnotatedInst is an instruction.
type AnnotatedInst struct {
	Addr     uint64
	Text     string
	Samples  float64
	Runs     float64 // how often its block runs, in relation to the function's most frequent one: 0 to 1
	Target   uint64  // of a branch within the function; 0: none
	Function string  // whose source it is from: inlined functions have their own
	File     string
	Line     int32
	Callees  []string // what a call calls, with shares, the most frequent first
}

// maxAnnotated bounds how many functions of a name are shown.
const maxAnnotated = 16

// Annotate returns the functions whose name, demangled or not, is the given one; if there is none,
// those whose name contains it and that have samples. The hottest comes first.
func Annotate(b *Binary, m *Module, name string, all float64) []Annotated {
	t := &treeBuilder{b: b, m: m, tree: &Tree{functions: map[string]*function{}}}
	t.group()
	var exact, similar []Annotated
	for i := range b.functions {
		f := &b.functions[i]
		shown := symbol.Demangle(f.Name)
		bare, _, _ := strings.Cut(shown, "(")
		switch {
		case f.Name == name || shown == name || bare == name:
			exact = append(exact, t.annotate(f, shown, all))
		case strings.Contains(shown, name) && len(t.leaves[f.Start]) > 0 && len(similar) < maxAnnotated:
			similar = append(similar, t.annotate(f, shown, all))
		}
	}
	out := exact
	if len(out) == 0 {
		out = similar
	}
	slices.SortStableFunc(out, func(a, b Annotated) int { return cmp.Compare(b.Samples, a.Samples) })
	return out[:min(len(out), maxAnnotated)]
}

func (t *treeBuilder) annotate(f *symbol.Function, name string, all float64) Annotated {
	out := Annotated{Name: name, Start: f.Start, All: all}
	samples := map[uint64]float64{}
	for _, addr := range t.leaves[f.Start] {
		samples[addr] += t.m.Leaves[addr]
		out.Samples += t.m.Leaves[addr]
	}
	code := t.b.code(f)
	bytes := make([]byte, min(f.End-f.Start, maxFunctionCode))
	if len(code) == 0 || !t.b.file.ReadCode(f.Start, bytes) {
		return out
	}
	blocks := blocksOf(code)
	most := 0.0
	for i := range blocks {
		bl := &blocks[i]
		for j := bl.first; j < bl.last; j++ {
			for k := range uint64(code[j].size) {
				bl.samples += samples[code[j].addr+k]
			}
		}
		bl.weight = bl.samples / float64(bl.last-bl.first)
		most = max(most, bl.weight)
	}
	for i := range blocks {
		bl := &blocks[i]
		for j := bl.first; j < bl.last; j++ {
			in := &code[j]
			line := AnnotatedInst{Addr: in.addr, Text: t.b.text(in, bytes[in.addr-f.Start:][:in.size])}
			if most > 0 {
				line.Runs = bl.weight / most
			}
			for k := range uint64(in.size) {
				line.Samples += samples[in.addr+k]
			}
			if (in.kind == jump || in.kind == branch) && in.target >= f.Start && in.target < f.End {
				line.Target = in.target
			}
			t.b.places = t.b.file.Lines(in.addr, t.b.places[:0])
			if p := t.b.places; len(p) > 0 {
				line.File, line.Line, line.Function = p[0].File, p[0].Line, symbol.Demangle(p[0].Function)
			}
			if in.kind == call || in.kind == callsAny {
				line.Callees = t.calleesOf(in.addr + uint64(in.size))
			}
			out.Lines = append(out.Lines, line)
		}
	}
	return out
}

// calleesOf returns what stacks show is called before an address, with the shares of the time spent
// there.
func (t *treeBuilder) calleesOf(returns uint64) (out []string) {
	list := slices.Clone(t.callees[returns])
	slices.SortFunc(list, func(a, b callSum) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.name, b.name))
	})
	sum := 0.0
	for _, c := range list {
		sum += c.weight
	}
	for _, c := range list[:min(len(list), 4)] {
		out = append(out, fmt.Sprintf("%s %.0f %%", symbol.Demangle(c.name), 100*c.weight/sum))
	}
	return out
}

// text disassembles an instruction. The operands of instructions that the decoder does not know are
// not shown.
func (b *Binary) text(in *inst, code []byte) string {
	name := func(addr uint64) (string, uint64) {
		if f := b.function(addr); f != nil {
			return f.Name, f.Start
		}
		return "", 0
	}
	if b.Machine == ARM64 {
		if i, err := arm64asm.Decode(code); err == nil {
			return arm64asm.GNUSyntax(i)
		}
		return fmt.Sprintf(".word %#x", binary.LittleEndian.Uint32(code))
	}
	if i, err := x86.Decode(code); err == nil && i.Len == len(code) {
		return x86asm.GNUSyntax(i, in.addr, name)
	}
	return fmt.Sprintf(".byte % x", code)
}

// maxSource bounds a source file, in bytes.
const maxSource = 16 << 20

// sources reads lines of source files.
type sources map[string][]string

func (s sources) line(file string, n int32) string {
	lines, ok := s[file]
	if !ok {
		lines = readLines(file)
		s[file] = lines
	}
	if n < 1 || int(n) > len(lines) {
		return ""
	}
	return symbol.Printable(strings.TrimRight(strings.ReplaceAll(lines[n-1], "\t", "    "), " \r"))
}

func readLines(file string) []string {
	f, err := safeopen.File(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSource))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// WriteAnnotated writes functions for people: before each run of instructions of one source line that
// line, if its file is there; for each instruction its share of the function's samples, how often its
// block runs compared to the hottest, and where branches and calls go.
func WriteAnnotated(w io.Writer, list []Annotated, color bool) error {
	out := bufio.NewWriter(w)
	src := sources{}
	paint := func(code, s string) string {
		if color && code != "" {
			return "\x1b[" + code + "m" + s + "\x1b[0m"
		}
		return s
	}
	for i := range list {
		a := &list[i]
		if i > 0 {
			fmt.Fprintln(out)
		}
		share := 0.0
		if a.All > 0 {
			share = 100 * a.Samples / a.All
		}
		fmt.Fprintf(out, "%s\n%.0f samples, %.1f %% of all\n\n  share  runs  address\n", paint("1", symbol.Printable(a.Name)), a.Samples, share)
		targets := map[uint64]bool{}
		for j := range a.Lines {
			targets[a.Lines[j].Target] = true
		}
		last := AnnotatedInst{}
		for j := range a.Lines {
			l := &a.Lines[j]
			if l.File != last.File || l.Line != last.Line || l.Function != last.Function {
				text := src.line(l.File, l.Line)
				inlined := ""
				if l.Function != "" && !strings.HasPrefix(a.Name, l.Function) {
					inlined = "  (" + symbol.Printable(l.Function) + ")"
				}
				if l.Line > 0 {
					fmt.Fprintln(out, paint("36", fmt.Sprintf("%s:%d%s  %s", base(l.File), l.Line, inlined, strings.TrimSpace(text))))
				}
				last = *l
			}
			own, runs := "", ""
			if l.Samples > 0 && a.Samples > 0 {
				own = fmt.Sprintf("%.2f %%", 100*l.Samples/a.Samples)
			}
			if l.Runs > 0 {
				runs = fmt.Sprintf("%.2f", l.Runs)
			}
			mark := " "
			if targets[l.Addr] {
				mark = ">"
			}
			heat := ""
			switch part := l.Samples / max(a.Samples, 1); {
			case part >= 0.1:
				heat = "1;31"
			case part >= 0.02:
				heat = "33"
			}
			text := l.Text
			if l.Target != 0 {
				way := "↓"
				if l.Target <= l.Addr {
					way = "↑"
				}
				text += "  " + way
			}
			if len(l.Callees) > 0 {
				text += "  → " + symbol.Printable(strings.Join(l.Callees, ", "))
			}
			fmt.Fprintf(out, "%s %5s %s %8x  %s\n", paint(heat, fmt.Sprintf("%8s", own)), runs, mark, l.Addr, text)
		}
	}
	return out.Flush()
}

func base(file string) string {
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		file = file[i+1:]
	}
	return symbol.Printable(file)
}
