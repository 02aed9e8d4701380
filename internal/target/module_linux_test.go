package target

import (
	"bytes"
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture/procsyscall"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/objfile"
)

// A module's bias turns a symbol's address into where the symbol really is.
func TestModuleBiasOfSelf(t *testing.T) {
	p := self(t)
	mods, err := p.Modules()
	if err != nil {
		t.Fatal(err)
	}
	pc, _, _, _ := runtime.Caller(0)
	fn := runtime.FuncForPC(pc)
	for _, m := range mods {
		if m.Path != p.Exe() {
			continue
		}
		x, ok := m.Executable()
		if !ok || !x.Contains(uint64(pc)) {
			t.Fatalf("%+v does not hold %#x", m, pc)
		}
		f, err := p.OpenFile(x)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		file, err := objfile.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		bias, ok := m.Bias(file.Segments)
		if !ok {
			t.Fatal("no bias")
		}
		// The code at the function's entry, from the file and from memory.
		entry := uint64(fn.Entry())
		var inFile, inMemory [16]byte
		for _, s := range file.Segments {
			if v := entry - bias; s.Type == elf.PT_LOAD && v-s.Vaddr < s.Filesz {
				_, _ = file.ReadAt(inFile[:], int64(s.Off+v-s.Vaddr))
			}
		}
		if err := p.Memory().ReadAt(inMemory[:], entry); err != nil || inFile != inMemory {
			t.Errorf("%x in the file, %x in memory, %v", inFile, inMemory, err)
		}
		return
	}
	t.Fatal("no module is the test itself")
}

// Every library of a program has the bias that puts the bytes of its file where they are in memory.
// /bin/sleep is position-independent, many pythons are not, and load libraries of all kinds.
func TestModuleBiasOfLibraries(t *testing.T) {
	for name, args := range map[string][]string{
		"/bin/sleep":       {"100"},
		"/usr/bin/python3": {"-c", "import ssl, sqlite3, ctypes, time; time.sleep(100)"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Open(startProgram(t, name, args...).Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			// It sleeps once all its libraries are loaded.
			eventually(t, "its libraries are mapped", func() bool {
				place, ok := procsyscall.Of(p.PID, p.PID)
				return ok && !place.Running && slices.Contains(sleeps, place.Call)
			})
			mods, err := p.Modules()
			if err != nil {
				t.Fatal(err)
			}
			checked := 0
			for _, m := range mods {
				checked += compareModule(t, p, m)
			}
			if checked < 6 {
				t.Errorf("only %d segments compared", checked)
			}
		})
	}
}

// sleeps are the system calls that a program sleeps in.
var sleeps = []int{unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_PSELECT6}

// compareModule compares the segments that are not written to with the file and returns their
// number.
func compareModule(t *testing.T, p *Process, m Module) (checked int) {
	t.Helper()
	var r io.ReaderAt
	if m.VDSO() {
		image, at, err := p.VDSO()
		if err != nil || at.Start != m.Start {
			t.Fatalf("vdso: %v", err)
		}
		r = bytes.NewReader(image)
	} else {
		f, err := p.OpenFile(m.Mappings[0])
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r = f
	}
	file, err := objfile.Open(r)
	if err != nil {
		t.Fatalf("%s: %v", m.Path, err)
	}
	bias, ok := m.Bias(file.Segments)
	if !ok {
		t.Fatalf("%s: no bias", m.Path)
	}
	for _, s := range file.Segments {
		if s.Type != elf.PT_LOAD || s.Flags&elf.PF_W != 0 || s.Filesz == 0 {
			continue
		}
		want, got := make([]byte, s.Filesz), make([]byte, s.Filesz)
		_, _ = file.SegmentReader(&s).ReadAt(want, 0)
		if err := p.Memory().ReadAt(got, bias+s.Vaddr); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: segment at %#x differs with bias %#x: %v", m.Path, s.Vaddr, bias, err)
		}
		checked++
	}
	return checked
}

// A program that was run from a memfd has no file, but is a module nevertheless.
func TestProgramInMemory(t *testing.T) {
	program, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.MemfdCreate("program", 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "program")
	defer f.Close()
	if _, err := f.Write(program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/fd/3", "100")
	cmd.ExtraFiles = []*os.File{f}
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatalf("run a memfd: %v", err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	p, err := Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	mods, err := p.Modules()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mods {
		if m.Path == "/memfd:program" {
			if compareModule(t, p, m) == 0 {
				t.Error("nothing compared")
			}
			return
		}
	}
	t.Errorf("not among %+v", mods)
}
