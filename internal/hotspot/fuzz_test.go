package hotspot

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

const imagePage = 4096

var errImage = errors.New("not in the image")

// image is memory by pages: recorded from a process, or corrupted on purpose.
type image struct {
	pages map[uint64][]byte
	order []uint64      // addresses of pages, in the order in which they were first read
	from  target.Reader // where pages that are not there yet come from; may be nil
	over  map[uint64]uint64
}

// ReadAt implements target.Reader.
func (m *image) ReadAt(p []byte, addr uint64) error {
	if addr+uint64(len(p)) < addr {
		return errImage
	}
	for at := addr &^ (imagePage - 1); at < addr+uint64(len(p)); at += imagePage {
		page, ok := m.pages[at]
		if !ok && m.from != nil {
			page = make([]byte, imagePage)
			if err := m.from.ReadAt(page, at); err != nil {
				return err
			}
			m.pages[at], ok = page, true
			m.order = append(m.order, at)
		}
		if !ok {
			return errImage
		}
		lo, hi := max(at, addr), min(at+imagePage, addr+uint64(len(p)))
		copy(p[lo-addr:hi-addr], page[lo-at:hi-at])
	}
	for at, v := range m.over {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		for i := range b {
			if off := at + uint64(i) - addr; off < uint64(len(p)) {
				p[off] = b[i]
			}
		}
	}
	return nil
}

// exercise uses a VM in all the ways that a profile does.
func exercise(vm *VM, pcs []uint64) {
	var out []symbol.Frame
	var chain []scope
	for range 3 {
		vm.BeginBatch()
		for _, pc := range pcs {
			b := vm.find(pc)
			if b == nil {
				continue
			}
			vm.codeOf(b)
			out = vm.Resolve(walk.Frame{PC: pc, Ref: uint64(b.id) << 32, Kind: walk.KindStub}, out[:0])
			if b.nm == nil {
				continue
			}
			for i := range min(len(b.nm.pcs), 40) {
				chain, _ = vm.chain(chain[:0], b, i)
				out = vm.Resolve(walk.Frame{PC: pc, Ref: uint64(b.id)<<32 | uint64(i+1), Kind: walk.KindC2}, out[:0])
			}
			out = vm.Resolve(walk.Frame{PC: pc, Ref: uint64(b.nm.methodID)<<32 | 1, Kind: walk.KindInterpreted}, out[:0])
			vm.bciFromBCP(b.nm.methodID, pc)
		}
		vm.codeletAt(vm.interpLo + 1000)
	}
	c := vm.Threads.DumpThreads()
	c.InJava()
	for tid := range vm.Threads.ThreadNames() {
		vm.Threads.ThreadState(uint32(tid))
		c.Thread(uint32(tid))
		c.Kind(uint32(tid), "G1 Conc#0")
		c.Virtual(uint32(tid))
		vm.Threads.VirtualThread(uint32(tid))
	}
	vm.Version()
	vm.GC()
	vm.Flag("MaxHeapSize")
	vm.Notes()
}

// FuzzVM reads a real VM's memory in which some words are replaced.
func FuzzVM(f *testing.F) {
	type recorded struct {
		image   *image
		symbols map[string]uint64
		pcs     []uint64
	}
	var vms []recorded
	for _, major := range []int{8, 17, 25} {
		p := startProgram(f, major, "Parked", "100")
		symbols, _, _, err := vmstructs.Find(p, nil)
		if err != nil {
			f.Fatal(err)
		}
		r := recorded{image: &image{pages: make(map[uint64][]byte), from: p.Memory()}, symbols: symbols}
		vm, err := OpenReader(r.image, symbols)
		if err != nil {
			f.Fatal(err)
		}
		eachBlob(f, vm, func(b *blob) {
			if len(r.pcs) < 60 || b.kind != blobNMethod {
				r.pcs = append(r.pcs, b.codeBegin+1, b.codeEnd-1)
			}
		})
		exercise(vm, r.pcs)
		if len(vm.Threads.ThreadNames()) < 5 {
			f.Fatal("the recorded image is of no use")
		}
		r.image.from = nil
		vms = append(vms, r)
	}
	f.Add(uint8(0), []byte{})
	f.Add(uint8(1), []byte{1, 0, 8, 0, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, which uint8, patches []byte) {
		r := &vms[int(which)%len(vms)]
		m := &image{pages: r.image.pages, over: make(map[uint64]uint64)}
		for ; len(patches) >= 12 && len(m.over) < 8; patches = patches[12:] {
			page := r.image.order[int(binary.LittleEndian.Uint16(patches))%len(r.image.order)]
			m.over[page+uint64(binary.LittleEndian.Uint16(patches[2:]))%imagePage] = binary.LittleEndian.Uint64(patches[4:])
		}
		vm, err := OpenReader(m, r.symbols)
		if err == nil {
			exercise(vm, r.pcs)
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte{9, 18, 255, 4, 6, 0}, true)
	f.Fuzz(func(t *testing.T, data []byte, biased bool) {
		bias := uint32(0)
		if biased {
			bias = 1
		}
		lines, _ := decodeLines(data, bias, 1000)
		for _, l := range lines {
			if l.bci >= 1000 {
				t.Fatalf("bci %d", l.bci)
			}
		}
		lineAt(lines, 5)
	})
}

func FuzzScopes(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 1, 1, 9}, int32(4), false)
	f.Fuzz(func(t *testing.T, data []byte, at int32, biased bool) {
		bias := uint32(0)
		if biased {
			bias = 1
		}
		chain, ok := decodeScopes(nil, data, bias, at)
		if len(chain) > maxInlining || ok && len(chain) == 0 {
			t.Fatalf("%d scopes", len(chain))
		}
	})
}

func FuzzPCDescs(f *testing.F) {
	f.Add(make([]byte, 64), uint64(100))
	f.Fuzz(func(t *testing.T, data []byte, size uint64) {
		b := &blob{codeBegin: 0x1000, codeEnd: 0x1000 + size%(1<<30), nm: &nmethod{}}
		b.nm.pcs = decodePCs(data, size%(1<<30))
		for i, d := range b.nm.pcs {
			if d.pc < 0 || i > 0 && d.pc < b.nm.pcs[i-1].pc {
				t.Fatal("not sorted")
			}
			if pc := b.codeBegin + uint64(d.pc); b.contains(pc) && b.exact(pc) < 0 {
				t.Fatalf("%#x is not found", pc)
			}
		}
	})
}
