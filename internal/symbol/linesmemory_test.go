package symbol

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/dwarfline"
	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/pe"
	"github.com/candid-profiler/candid/internal/walk"
)

// describedSource is a C program with some hundred KB of debug information.
var describedSource = func() string {
	var b strings.Builder
	b.WriteString("static inline int mix(int a, int b) { return (a * 31) ^ (b >> 3); }\n")
	for i := range 150 {
		fmt.Fprintf(&b, "struct a_structure_with_number_%d { ", i)
		for j := range 12 {
			fmt.Fprintf(&b, "int a_member_%d_of_it_%d; ", j, i)
		}
		fmt.Fprintf(&b, "};\n__attribute__((noinline)) int work%d(struct a_structure_with_number_%d *p, int n) {\n", i, i)
		fmt.Fprintf(&b, "\tfor (int i = 0; i < n; i++)\n\t\tp->a_member_3_of_it_%d += mix(n, i);\n\treturn mix(p->a_member_5_of_it_%d, n);\n}\n", i, i)
	}
	b.WriteString("int main(int n, char **v) { int s = 0;\n")
	for i := range 150 {
		fmt.Fprintf(&b, "\tstruct a_structure_with_number_%d s%d = {n}; s += work%d(&s%d, n);\n", i, i, i, i)
	}
	b.WriteString("\treturn s; }\n")
	return b.String()
}()

// asked looks up addresses of all functions of the table and returns what was found.
func asked(t *testing.T, f *File, syms []entry) (out [][]dwarfline.Place) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	inlined := 0
	for range 2000 {
		places := slices.Clone(f.Lines(syms[rng.IntN(len(syms))].addr+rng.Uint64N(60), nil))
		if len(places) > 1 {
			inlined++
		}
		out = append(out, places)
	}
	if inlined < 100 {
		t.Errorf("only %d addresses are of inlined functions; %v", inlined, f.Notes())
	}
	return out
}

func same(a, b [][]dwarfline.Place) bool {
	return slices.EqualFunc(a, b, func(a, b []dwarfline.Place) bool { return slices.Equal(a, b) })
}

// Debug information that is not compressed stays in the file: only the list of units is held, and
// what look-ups have read of them, until that is forgotten. What is found is the same as with
// compressed debug information, which is unpacked in memory.
func TestDebugInformationStaysInTheFile(t *testing.T) {
	path := compile(t, "t.c", describedSource, "gcc", "-g", "-O2")
	run(t, filepath.Dir(path), "objcopy", "--compress-debug-sections", path, "packed")
	stored, packed := openTest(t, path, Options{}), openTest(t, filepath.Join(filepath.Dir(path), "packed"), Options{})
	size, unpacked := 0, 0
	for i, f := range []*File{stored, packed} {
		for j := range f.m.Sections {
			if s := &f.m.Sections[j]; strings.HasPrefix(s.Name, ".debug_") {
				if n := int(f.m.UnpackedSize(s)); i == 0 {
					size += n
				} else {
					unpacked += n
				}
			}
		}
	}
	if size < 100<<10 || size != unpacked {
		t.Fatalf("%d bytes of debug information, %d if it is compressed", size, unpacked)
	}
	stored.readLines()
	packed.readLines()
	if held := packed.lines.Memory(); held < size/2 || packed.unpacking == 0 {
		t.Errorf("%d bytes of memory for %d bytes that were unpacked in %v", held, size, packed.unpacking)
	}
	opened := stored.lines.Memory()
	if opened > size/8 || stored.unpacking != 0 {
		t.Errorf("%d bytes of memory for %d bytes of debug information", opened, size)
	}
	if room := stored.linesMemory(); room < uint64(opened) || room > uint64(size)/4 {
		t.Errorf("room for %d bytes was asked for, where %d are taken", room, opened)
	}
	want := asked(t, packed, packed.table.syms)
	for range 2 {
		if got := asked(t, stored, stored.table.syms); !same(got, want) {
			t.Error("lines differ between stored and compressed debug information")
		}
		if held := stored.lines.Memory(); held <= 2*opened {
			t.Errorf("%d bytes are counted with the units that were read, %d without", held, opened)
		}
		stored.rest(restAfter)
		if held := stored.lines.Memory(); held > opened {
			t.Errorf("%d bytes are held of units that were forgotten, %d before they were read", held, opened)
		}
	}
}

// The same for a library of MinGW, whose memory is counted, and whose lines are not read where there is
// no room.
func TestDebugInformationOfWindowsStaysInTheFile(t *testing.T) {
	path := fixture.MinGW(t, "x86_64-w64-mingw32-gcc", "lib.dll", describedSource, "-shared", "-g", "-O2")
	f := openTest(t, path, Options{})
	size := 0
	for i := range f.pe.Sections {
		if s := &f.pe.Sections[i]; strings.HasPrefix(f.pe.SectionName(s), ".debug_") {
			size += int(s.Raw)
		}
	}
	if size < 100<<10 {
		t.Fatalf("%d bytes of debug information", size)
	}
	before := f.memory()
	f.readLines()
	if held := f.memory() - before; before == 0 || held > size/8 || held <= 0 {
		t.Errorf("%d bytes of memory for %d bytes of debug information, beside %d", held, size, before)
	}
	opened := f.memory()
	var work []entry
	for i, e := range f.pe.table.syms {
		if strings.HasPrefix(f.pe.table.nameOf(i, e.addr), "work") {
			work = append(work, e)
		}
	}
	first := asked(t, f, work)
	if held := f.memory(); held <= opened {
		t.Errorf("%d bytes are counted with the units that were read, %d without", held, opened)
	}
	f.rest(restAfter)
	if held := f.memory(); held > opened || !same(first, asked(t, f, work)) {
		t.Errorf("%d bytes are held of units that were forgotten, %d before they were read", held, opened)
	}
	for _, is := range []bool{true, false} {
		n := NewNative(oneFile{path, "lib.dll"}, nil)
		n.Room = func(uint64) bool { return is }
		fr := n.Resolve(walk.Frame{PC: work[0].addr + 1, Kind: walk.KindNative}, nil)
		if last := fr[len(fr)-1]; !strings.HasPrefix(last.Function, "work") || (last.Line != 0) != is {
			t.Errorf("room %v: %+v", is, last)
		}
		n.Close()
	}
}

// Sections that a hostile image or file claims to have, and does not, are errors.
func TestStoredSectionsAreBounded(t *testing.T) {
	path, _ := buildC(t, "-g", "-O2")
	f := openTest(t, path, Options{})
	info := f.m.Section(".debug_info")
	for _, s := range []objfile.Section{
		{Name: info.Name, Type: info.Type, Offset: uint64(f.m.Size()) - 10, Size: 11},
		{Name: info.Name, Type: info.Type, Offset: 1 << 63, Size: 8},
		{Name: info.Name, Type: info.Type, Offset: info.Offset, Size: 1 << 62},
		{Name: info.Name, Type: info.Type, Offset: info.Offset, Size: maxDWARF + 1},
	} {
		was := *info
		*info = s
		if r, err := f.m.StoredDebugSection("info", maxDWARF); err == nil || r != nil {
			t.Errorf("%+v: %v, %v", s, r, err)
		}
		*info = was
	}
	lib := openTest(t, fixture.MinGW(t, "x86_64-w64-mingw32-gcc", "prog.exe", pdbSource, "-g", "-O2"), Options{})
	for i := range lib.pe.Sections {
		s := &lib.pe.Sections[i]
		if lib.pe.SectionName(s) != ".debug_info" {
			continue
		}
		for _, change := range []func(s *pe.Section){
			func(s *pe.Section) { s.Offset = 1<<32 - 1 },
			func(s *pe.Section) { s.Raw, s.Size = 1<<30, 1<<30 },
			func(s *pe.Section) { s.Raw, s.Size = 100<<20, 100<<20 },
		} {
			was := *s
			change(s)
			if r, err := lib.pe.SectionReader(".debug_info", maxDWARF); err == nil || r != nil {
				t.Errorf("%+v: %v, %v", *s, r, err)
			}
			*s = was
		}
		if r, err := lib.pe.SectionReader(".debug_info", maxDWARF); err != nil || r.Size() != int64(min(s.Raw, s.Size)) {
			t.Errorf("%v, %v", r, err)
		}
	}
}

// Debug information that was unpacked is freed when it was not needed for some time, or when memory
// is short, and unpacked again for the next address that is not known yet.
func TestUnpackedIsFreed(t *testing.T) {
	path, at := buildC(t, "-g", "-O2", "-gz")
	shared := NewShared()
	n := NewNative(placed{oneFile{path, "t"}, fileid.Content{ID: fileid.ID{Inode: 1}, Size: 1}}, nil)
	defer n.Close()
	n.Share(shared)
	ask := func(pc uint64, line bool) {
		t.Helper()
		fr := n.Resolve(walk.Frame{PC: pc, Kind: walk.KindNative}, nil)
		if last := fr[len(fr)-1]; last.Function == "" || last.NoName || (last.Line != 0) != line {
			t.Errorf("%#x: %+v, want a line: %v", pc, last, line)
		}
	}
	ask(at["out"], true)
	nf := n.files[fileid.ID{Dev: 1, Inode: 2}]
	if nf.f.unpacking == 0 {
		t.Fatal("the debug information is not compressed")
	}
	nf.f.unpacking = time.Millisecond // however long it took
	whole := nf.size()
	began := nf.lookedUp
	if shared.Rest(began.Add(restAfter - 1)); nf.f.dozing {
		t.Error("what was just needed is freed")
	}
	free := func() {
		t.Helper()
		if shared.Rest(nf.lookedUp.Add(restAfter)); !nf.f.dozing || nf.size() >= whole || nf.size() == 0 {
			t.Fatalf("dozing %v, %d bytes of %d", nf.f.dozing, nf.size(), whole)
		}
	}
	free()
	if ask(at["out"], true); !nf.f.dozing {
		t.Error("it is read again for a name that is known")
	}
	n.Fleeting = func() bool { return true }
	if ask(at["main"], false); !nf.f.dozing || !n.Prepare(walk.Frame{PC: at["main"] + 1}) {
		t.Error("it is read again for a process that may end soon")
	}
	n.Fleeting = nil
	for i := 0; !n.Prepare(walk.Frame{PC: at["main"]}); i++ {
		if i > 10000 {
			t.Fatal("it is not read again")
		}
		time.Sleep(time.Millisecond)
	}
	if ask(at["main"], true); nf.f.dozing || nf.size() < whole {
		t.Errorf("dozing %v, %d bytes of %d", nf.f.dozing, nf.size(), whole)
	}
	nf.f.unpacking = time.Hour
	if shared.Rest(nf.lookedUp.Add(time.Hour)); nf.f.dozing {
		t.Error("what takes an hour to unpack is freed after an hour")
	}
	shared.Shrink(1)
	if !nf.f.dozing || nf.released {
		t.Errorf("memory is short: dozing %v, released %v", nf.f.dozing, nf.released)
	}
	ask(at["main"]+1, true) // waits
	nf.f.unpacking = time.Millisecond
	free()
	n.Room = func(uint64) bool { return false }
	if ask(at["main"]+2, false); nf.f.dozing || !nf.brief {
		t.Errorf("there is no room: dozing %v, brief %v", nf.f.dozing, nf.brief)
	}
	ask(at["out"], true)
	if notes := n.Notes(); len(notes) > 0 {
		t.Error(notes)
	}
}
