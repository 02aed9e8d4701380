package bpfcopy

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/kerneltypes"
)

// newCollection loads an object's maps and programs. The library can do that too, but it parses all
// of the kernel's BTF, which is a third of the cost of a short recording. So the library only makes
// the maps; if the programs cannot be loaded without it, for whatever reason, it loads them and
// returns the error.
func newCollection(spec *ebpf.CollectionSpec, use map[string]*ebpf.Map, kernel *btf.Cache) (*ebpf.Collection, error) {
	coll, err := quickCollection(spec, use)
	if err == nil {
		return coll, nil
	}
	if errors.Is(err, errNoFunction) {
		return nil, fmt.Errorf("%w: %w", ebpf.ErrNotSupported, err)
	}
	return ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: use, Cache: kernel})
}

func quickCollection(spec *ebpf.CollectionSpec, use map[string]*ebpf.Map) (_ *ebpf.Collection, err error) {
	types, err := readKernelTypes(spec)
	if err != nil {
		return nil, err
	}
	programs := spec.Programs
	spec.Programs = nil
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: use})
	spec.Programs = programs
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			coll.Close()
		}
	}()
	coll.Programs = map[string]*ebpf.Program{}
	for name, p := range programs {
		if coll.Programs[name], err = types.load(p, coll.Maps); err != nil {
			delete(coll.Programs, name)
			return nil, fmt.Errorf("load %s: %w", name, err)
		}
	}
	return coll, nil
}

// load loads a program without its source lines, which only serve error messages.
func (k *kernelTypes) load(spec *ebpf.ProgramSpec, maps map[string]*ebpf.Map) (*ebpf.Program, error) {
	insns := make(asm.Instructions, len(spec.Instructions))
	var relos []*btf.CORERelocation
	var relocated []*asm.Instruction
	for i := range insns {
		insns[i] = spec.Instructions[i].WithSource(nil)
		ins := &insns[i]
		if relo := btf.CORERelocationMetadata(ins); relo != nil {
			relos, relocated = append(relos, relo), append(relocated, ins)
		}
		switch {
		case ins.IsKfuncCall():
			id, err := k.id(kerneltypes.Func, ins.Reference())
			if err != nil {
				return nil, err
			}
			ins.Constant, ins.Offset = int64(id), 0
		case ins.IsLoadFromMap() && ins.Reference() != "":
			m := maps[ins.Reference()]
			if m == nil {
				return nil, fmt.Errorf("there is no map %s", ins.Reference())
			}
			if err := ins.AssociateMap(m); err != nil {
				return nil, fmt.Errorf("use map %s: %w", ins.Reference(), err)
			}
		}
	}
	var b btf.Builder
	if len(relos) > 0 {
		fixups, err := btf.CORERelocate(relos, []*btf.Spec{k.fields}, spec.ByteOrder, b.Add)
		if err != nil {
			return nil, fmt.Errorf("find fields of the kernel's types: %w", err)
		}
		for i, fixup := range fixups {
			if err := fixup.Apply(relocated[i]); err != nil {
				return nil, fmt.Errorf("put in the place of a kernel's field: %w", err)
			}
		}
	}
	functions, _, err := btf.MarshalExtInfos(insns, &b)
	if err != nil {
		return nil, fmt.Errorf("describe functions: %w", err)
	}
	var code bytes.Buffer
	if err := insns.Marshal(&code, spec.ByteOrder); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	described, err := btf.NewHandle(&b)
	if err != nil {
		return nil, fmt.Errorf("load the description of functions: %w", err)
	}
	defer described.Close() // the program keeps a reference
	attr := loadAttr{
		progType: uint32(spec.Type), attachType: uint32(spec.AttachType), flags: spec.Flags, types: uint32(described.FD()),
		functionSize: btf.FuncInfoSize, functionCount: uint32(len(functions)) / btf.FuncInfoSize,
	}
	copy(attr.name[:len(attr.name)-1], spec.Name)
	if kind, name := attachType(spec); name != "" {
		if attr.attachTo, err = k.id(kind, name); err != nil {
			return nil, err
		}
	} else if spec.AttachTo != "" && spec.Type == ebpf.Tracing {
		return nil, fmt.Errorf("attach to %s: this way is not known", spec.AttachTo)
	}
	return attr.load(code.Bytes(), functions, spec.License)
}

// loadAttr is union bpf_attr of linux/bpf.h for BPF_PROG_LOAD, up to the last field that is used.
type loadAttr struct {
	progType, insns                    uint32
	code, license                      uint64
	logLevel, logSize                  uint32
	log                                uint64
	kernelVersion, flags               uint32
	name                               [16]byte
	device, attachType                 uint32
	types, functionSize                uint32
	functions                          uint64
	functionCount, lineSize            uint32
	lines                              uint64
	lineCount, attachTo, attachFD, pad uint32
}

// triesToLoad is how often the kernel may return EAGAIN because of a signal.
const triesToLoad = 30

func (a *loadAttr) load(code, functions []byte, license string) (*ebpf.Program, error) {
	terms := append([]byte(license), 0)
	var pin runtime.Pinner
	defer pin.Unpin()
	address := func(b []byte) uint64 {
		if len(b) == 0 {
			return 0
		}
		pin.Pin(&b[0])
		return uint64(uintptr(unsafe.Pointer(&b[0])))
	}
	a.insns = uint32(len(code) / asm.InstructionSize)
	a.code, a.functions, a.license = address(code), address(functions), address(terms)
	for range triesToLoad {
		fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(a)), unsafe.Sizeof(*a))
		switch errno {
		case 0:
			return ebpf.NewProgramFromFD(int(fd))
		case unix.EAGAIN, unix.EINTR:
		default:
			return nil, fmt.Errorf("the kernel refused: %w", errno)
		}
	}
	return nil, unix.EAGAIN
}
