package perfdata

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/kallsyms"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// kernelNames names the kernel's functions: by the running kernel if that is the one that was
// recorded, otherwise by the symbols that perf kept of it.
type kernelNames struct {
	text    uint64 // the address of the symbol named ref
	ref     string
	modules []target.Mapping

	chosen bool
	live   *kallsyms.Resolver
	kept   *kallsyms.Symbols
	moved  uint64 // addresses of the recording minus those of kept
	why    string // why there are no names
}

const kernelImage = "[kernel.kallsyms]"

// mapped records where the kernel and its modules are.
func (k *kernelNames) mapped(m target.Mapping) {
	if ref, ok := strings.CutPrefix(m.Path, kernelImage); ok {
		k.text, k.ref = m.Offset, ref
		return
	}
	if len(k.modules) < 1<<14 {
		k.modules = append(k.modules, m)
	}
}

func (k *kernelNames) close() {
	if k.live != nil {
		k.live.Close()
	}
}

// choose decides where names come from.
func (k *kernelNames) choose(fs *files, release string) {
	k.chosen = true
	sort.Slice(k.modules, func(i, j int) bool { return k.modules[i].Start < k.modules[j].Start })
	id := fs.ids[kernelImage]
	notes, _ := os.ReadFile("/sys/kernel/notes")
	own, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	same := fs.same && release != "" && strings.TrimSpace(string(own)) == release
	if id != "" {
		same = symbol.NoteBuildID(notes) == id
	}
	if same && k.text != 0 && addressIn("/proc/kallsyms", k.ref) == k.text {
		k.live = kallsyms.NewResolver()
		return
	}
	home, err := os.UserHomeDir()
	if err == nil && len(id) > 2 {
		k.load(filepath.Join(home, ".debug", ".build-id", id[:2], id[2:], "kallsyms"))
	}
	if k.kept == nil {
		k.why = "the kernel's functions have no names: it is not the kernel that runs here now, or its symbols cannot be read"
	}
}

// load reads the symbols that perf kept.
func (k *kernelNames) load(file string) {
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	at := addressIn(file, k.ref)
	if at == 0 {
		return
	}
	if k.kept, err = kallsyms.Parse(f); err != nil {
		k.kept = nil
		return
	}
	k.moved = k.text - at
}

// addressIn returns a symbol's address in a file in the format of /proc/kallsyms, 0 if it has none.
func addressIn(file, name string) uint64 {
	f, err := os.Open(file)
	if err != nil || name == "" {
		return 0
	}
	defer f.Close()
	in := bufio.NewScanner(io.LimitReader(f, 256<<20))
	for in.Scan() {
		if line := in.Text(); strings.HasSuffix(line, " "+name) {
			hex, _, _ := strings.Cut(line, " ")
			at, _ := strconv.ParseUint(hex, 16, 64)
			return at
		}
	}
	return 0
}

// resolve names a frame of the kernel.
func (k *kernelNames) resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	if k.live != nil {
		return k.live.Resolve(f, out)
	}
	fr := symbol.Frame{Module: "[kernel]", BCI: -1, Kind: f.Kind, Flags: f.Flags, Addr: f.PC}
	pc := f.PC
	if f.Flags&walk.ReturnAddress != 0 {
		pc--
	}
	i := sort.Search(len(k.modules), func(i int) bool { return k.modules[i].End > pc })
	inModule := i < len(k.modules) && k.modules[i].Start <= pc
	if inModule {
		base, _, _ := strings.Cut(path.Base(k.modules[i].Path), ".")
		fr.Module = "[" + strings.Trim(base, "[]") + "]"
	}
	// Modules do not move together with the kernel.
	if k.kept != nil && (!inModule || k.moved == 0) {
		if name, _, _, ok := k.kept.Lookup(pc - k.moved); ok {
			fr.Function = symbol.Demangle(name)
			if fr.Function != name {
				fr.Raw = name
			}
			return append(out, fr)
		}
	}
	fr.Function, fr.NoName = fmt.Sprintf("%s+%#x", fr.Module, f.PC), true
	return append(out, fr)
}
