package ehframe

import (
	"bufio"
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	host "github.com/candid-profiler/candid/internal/hostinfo"
)

var columnNames = []string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

var inRegister = regexp.MustCompile(`r\d+ \((\w+)\)`)

// described writes a rule's column as readelf does. readelf prints "u" both for
// lost registers and for those that no row has mentioned yet.
func described(s Save) string {
	switch s.How {
	case Same, Undefined:
		return "u"
	case AtCFA:
		return fmt.Sprintf("c%+d", s.Off)
	case IsCFA:
		return fmt.Sprintf("v%+d", s.Off)
	case InReg:
		return columnNames[s.Off]
	case AtExpr:
		return "exp"
	}
	return "vexp"
}

// TestAgainstReadelf looks up every row of whole libraries and compares it with what binutils
// prints for the same bytes.
func TestAgainstReadelf(t *testing.T) {
	readelf := fixture.Tool(t, "readelf")
	patterns := []string{
		"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/lib/x86_64-linux-gnu/libm.so.6",
		"/lib64/ld-linux-x86-64.so.2",
		"/usr/lib/jvm/*/lib/server/libjvm.so",
	}
	seen := map[string]bool{} // some are links to others
	for _, p := range patterns {
		files, _ := filepath.Glob(p)
		for _, file := range files {
			real, err := filepath.EvalSymlinks(file)
			if err != nil || seen[real] {
				continue
			}
			seen[real] = true
			t.Run(filepath.Base(file), func(t *testing.T) { compareReadelf(t, readelf, file) })
		}
	}
	if len(seen) == 0 {
		t.Skip("none of the known x86-64 libraries is here")
	}
}

func compareReadelf(t *testing.T, readelf, file string) {
	f := openFile(t, file)
	if f.Machine != elf.EM_X86_64 {
		t.Skip("not an x86-64 library")
	}
	// CPU time, and the fastest of several runs, so that neither the machine's other work nor the
	// first read of the file counts.
	var table *Table
	var err error
	opened := time.Hour
	for range 3 {
		start := host.OwnCPU()
		if table, err = Open(f); err != nil {
			t.Fatal(err)
		}
		opened = min(opened, host.OwnCPU()-start)
	}

	cmd := exec.Command(readelf, "--debug-dump=frames-interp", file)
	cmd.Stderr = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	type row struct {
		loc  uint64
		cols []string
	}
	var rows, functions, wrong int
	var names []string
	var pending []row
	var end uint64
	check := func(r row, last uint64) {
		for _, addr := range []uint64{r.loc, last} {
			rows++
			rule := table.Lookup(addr)
			got := describe(rule, names)
			if want := strings.Join(r.cols, " "); got != want {
				if wrong++; wrong < 10 {
					t.Errorf("%#x: got %q, readelf says %q", addr, got, want)
				}
			}
		}
	}
	flush := func() {
		for i, r := range pending {
			last := end - 1
			if i+1 < len(pending) {
				last = pending[i+1].loc - 1
			}
			if last >= r.loc && r.loc < end {
				check(r, last)
			}
		}
		pending = pending[:0]
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<16)
	inFDE := false
	for lines.Scan() {
		// A register in a register is printed as "r1 (rdx)".
		line := inRegister.ReplaceAllString(lines.Text(), "$1")
		fields := strings.Fields(line)
		switch {
		case strings.Contains(line, " FDE cie="):
			flush()
			inFDE = true
			functions++
			at := line[strings.Index(line, "pc=")+3:]
			lo, hi, _ := strings.Cut(at, "..")
			a, _ := strconv.ParseUint(lo, 16, 64)
			end, _ = strconv.ParseUint(strings.Fields(hi)[0], 16, 64)
			if s, e, ok := table.Function(a); end > a && (!ok || s != a || e != end) {
				t.Errorf("function %#x to %#x found as %#x to %#x (%v)", a, end, s, e, ok)
			}
		case strings.Contains(line, " CIE "), strings.Contains(line, "ZERO terminator"):
			flush()
			inFDE = false
		case len(fields) > 1 && fields[0] == "LOC":
			names = append(names[:0], fields[1:]...)
		case inFDE && len(fields) == len(names)+1 && len(fields[0]) == 16:
			loc, err := strconv.ParseUint(fields[0], 16, 64)
			if err == nil {
				pending = append(pending, row{loc, append([]string{}, fields[1:]...)})
			}
		}
	}
	flush()
	if err := cmd.Wait(); err != nil {
		t.Logf("readelf: %v", err)
	}
	if functions < 10 {
		t.Fatalf("only %d functions in readelf's output", functions)
	}
	t.Logf("%d functions, %d look-ups, %d wrong, %d different rules; opened in %v of CPU", functions, rows, wrong, len(table.eh.rules), opened)
	if opened > 25*time.Millisecond { // ten times what it takes on one of today
		t.Errorf("opening took %v of CPU", opened)
	}
}

// describe writes the columns that readelf shows.
func describe(r *Rule, names []string) string {
	if r == nil {
		return "no rule"
	}
	cols := make([]string, len(names))
	for i, n := range names {
		switch n {
		case "CFA":
			if r.CFAExpr != nil {
				cols[i] = "exp"
			} else {
				cols[i] = fmt.Sprintf("%s%+d", columnNames[r.CFAReg], r.CFAOff)
			}
		case "ra":
			cols[i] = described(r.RA)
		default:
			cols[i] = "u"
			for _, s := range r.Saves {
				if columnNames[s.Reg] == n {
					cols[i] = described(s)
				}
			}
		}
	}
	return strings.Join(cols, " ")
}

// TestScanEqualsIndex: without .eh_frame_hdr the same entries are found.
func TestScanEqualsIndex(t *testing.T) {
	f := openFile(t, "/lib/x86_64-linux-gnu/libc.so.6")
	with, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	without, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	if with.eh.index.n == 0 {
		t.Fatal("libc has no .eh_frame_hdr that can be read")
	}
	without.eh.index.n = 0
	text := f.Section(".text")
	for addr := text.Addr; addr < text.Addr+text.Size; addr += 37 {
		s1, e1, ok1 := with.Function(addr)
		s2, e2, ok2 := without.Function(addr)
		if s1 != s2 || e1 != e2 || ok1 != ok2 {
			t.Fatalf("%#x: %#x-%#x %v by the index, %#x-%#x %v by scanning", addr, s1, e1, ok1, s2, e2, ok2)
		}
	}
}
