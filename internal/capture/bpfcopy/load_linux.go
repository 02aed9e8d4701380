package bpfcopy

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
)

// Variant is how the stack's bytes get into the ring buffer.
type Variant uint8

// Values of Variant.
const (
	Auto  Variant = iota
	Exact         // records of exactly the length that is needed; Linux 6.16 and later
	Sized         // records of fixed sizes; Linux 5.15 and later
)

// String names the variant for people.
func (v Variant) String() string {
	switch v {
	case Exact:
		return "exact copies"
	case Sized:
		return "copies into records of fixed sizes"
	}
	return "any"
}

// targetChildren is a flag of a target (struct target of bpf/copy.h).
const targetChildren = 1

// firstPIDNamespace is the inode of the machine's initial pid namespace (PROC_PID_INIT_INO of
// linux/proc_ns.h).
const firstPIDNamespace = 0xEFFFFFFC

// programs are the loaded programs.
type programs struct {
	coll    *ebpf.Collection
	sample  *ebpf.Program
	count   *ebpf.Program // nil if no software counter is requested
	offCPU  *offcpu       // nil if time off the CPU is not requested
	points  *points       // nil if only time is requested
	links   []link.Link
	variant Variant
	why     string // why the exact variant was not used
}

// load loads the programs for the options, in the requested variant or the best that the kernel
// accepts.
func load(opts capture.Options, ev *events, variant Variant, ringSize int) (*programs, error) {
	kernel := btf.NewCache() // reading the kernel's types takes longer than everything else
	switch variant {
	case Exact, Sized:
		return loadVariant(opts, ev, variant, ringSize, kernel)
	}
	p, err := loadVariant(opts, ev, Exact, ringSize, kernel)
	if err == nil {
		return p, nil
	}
	if errors.Is(err, capture.ErrPermission) || errors.Is(err, capture.ErrNoEvent) {
		return nil, err
	}
	p, second := loadVariant(opts, ev, Sized, ringSize, kernel)
	if second != nil {
		return nil, second
	}
	p.why = "the kernel lacks bpf_probe_read_user_dynptr (6.16)"
	return p, nil
}

func loadVariant(opts capture.Options, ev *events, variant Variant, ringSize int, kernel *btf.Cache) (*programs, error) {
	read := loadCapture
	if variant == Exact && ev.wall < 0 && !ev.counts(opts) {
		read = loadTicks
	}
	spec, err := read()
	if err != nil {
		return nil, fmt.Errorf("read the BPF programs built into candid: %w", err)
	}
	kind := "exact"
	if variant == Sized {
		kind = "sized"
	}
	counting := "count_" + kind
	if !ev.counts(opts) {
		counting = ""
		delete(spec.Maps, "blocks")
	}
	name := "sample_"
	if ev.wall >= 0 {
		name += "wall_"
	} else {
		delete(spec.Maps, "aways")
	}
	name += kind
	for other := range spec.Programs {
		if strings.HasPrefix(other, "sample_") && other != name || strings.HasPrefix(other, "count_") && other != counting {
			delete(spec.Programs, other)
		}
	}
	if err := configure(spec, opts, ringSize); err != nil {
		return nil, err
	}
	coll, err := newCollection(spec, nil, kernel)
	if err != nil {
		return nil, loadError(err)
	}
	p := &programs{coll: coll, sample: coll.Programs[name], count: coll.Programs[counting], variant: variant}
	for _, name := range []string{"on_fork", "on_exec", "on_exit", "on_rename"} {
		l, err := link.AttachTracing(link.TracingOptions{Program: coll.Programs[name]})
		if err != nil {
			p.close()
			return nil, loadError(fmt.Errorf("attach %s: %w", name, err))
		}
		p.links = append(p.links, l)
	}
	if ev.wall >= 0 || ev.off >= 0 {
		if p.offCPU, err = openOffCPU(coll, opts, ev, variant, ringSize, kernel); err != nil {
			p.close()
			return nil, err
		}
	}
	if len(ev.points) > 0 {
		if p.points, err = loadPoints(coll, opts, ev, variant, ringSize, kernel); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// configure sets the variables and map sizes that one of the objects cannot know itself.
func configure(spec *ebpf.CollectionSpec, opts capture.Options, ringSize int) error {
	spec.Maps["ring"].MaxEntries = uint32(ringSize)
	ns, err := pidNamespace()
	if err != nil {
		return err
	}
	maxStack := maxStackOf(opts)
	flags, all, canFind := uint32(0), uint32(0), uint32(0)
	if opts.All {
		all, flags = 1, targetChildren
	}
	if features.HaveProgramHelper(ebpf.PerfEvent, asm.FnFindVma) == nil {
		canFind = 1
	}
	for name, value := range map[string]any{
		"all":          all,
		"all_flags":    flags,
		"pid_ns":       ns,
		"max_stack":    uint32(maxStack),
		"max_unknown":  uint32(min(maxStack, unknownStack)),
		"can_find_vma": canFind,
		"watermark":    watermark(uint64(ringSize)),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s of the BPF programs: %w", name, err)
		}
	}
	return nil
}

// shared are the names of the maps that the programs of all objects use.
var shared = []string{"ring", "targets", "known", "follows", "scratch", "lost", "spending"}

func (p *programs) close() {
	p.offCPU.close()
	p.points.close()
	for _, l := range p.links {
		_ = l.Close()
	}
	p.coll.Close()
}

// loadError returns why the programs could not be loaded and what helps.
func loadError(err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES) && !errors.As(err, &verifier), !permitted():
		// The library's own text blames the limit of locked memory.
		return fmt.Errorf("load the BPF programs: %w: BPF needs root, or CAP_BPF with CAP_PERFMON: %w", capture.ErrPermission, unix.EPERM)
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("load the BPF programs: %w: Linux 5.15 with BPF is needed: %w", capture.ErrUnsupported, err)
	case errors.Is(err, btf.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("load the BPF programs: %w: the kernel does not describe itself fully (needs CONFIG_DEBUG_INFO_BTF): %w", capture.ErrUnsupported, err)
	case errors.As(err, &verifier):
		return fmt.Errorf("load the BPF programs: %w: the kernel's verifier refused: %w", capture.ErrUnsupported, err)
	}
	return fmt.Errorf("load the BPF programs: %w", err)
}

// permitted reports whether this process may use BPF at all. For a process that may not, it is
// chance what is refused first, and the error need not be EPERM: without BTF, which it may not load
// either, a map of tasks is an invalid argument, which the library takes for an old kernel. LRU
// maps require CAP_BPF whatever kernel.unprivileged_bpf_disabled is.
func permitted() bool {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.LRUHash, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return !errors.Is(err, unix.EPERM)
	}
	_ = m.Close()
	return true
}

// pidNamespace returns the inode of this process's pid namespace, 0 if it is the initial one, in
// which PIDs need no translation.
func pidNamespace() (uint32, error) {
	info, err := os.Stat("/proc/self/ns/pid")
	if err != nil {
		return 0, fmt.Errorf("find candid's own pid namespace: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Ino == firstPIDNamespace {
		return 0, nil
	}
	return uint32(st.Ino), nil
}
