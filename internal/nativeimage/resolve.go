package nativeimage

import (
	"strings"

	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// listKey identifies the frames at one place of an image's code.
type listKey struct {
	image *image
	rel   uint64
	exact bool // it is a return address
}

// textKey identifies a text of an image.
type textKey struct {
	image *image
	what  uint8
	index uint32
}

const (
	textClass = iota
	textName
	textFile
)

// places are the frames at one place.
type places struct {
	frames []frame
	coarse bool
}

const (
	maxLists = 1 << 16
	maxTexts = 1 << 17
)

// Resolver names the frames that the VM stepped over; native those of images whose tables are not
// known.
func (vm *VM) Resolver(native symbol.Resolver) symbol.Resolver { return resolver{vm, native} }

type resolver struct {
	vm     *VM
	native symbol.Resolver
}

// Resolve implements symbol.Resolver.
func (r resolver) Resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	vm := r.vm
	im := vm.find(f.PC)
	if im == nil {
		return r.native.Resolve(f, out)
	}
	addr := f.PC - im.bias
	list, coarse := vm.at(im.image, f.PC-im.code.start, f.Flags&walk.ReturnAddress != 0)
	if len(list) == 0 {
		return append(out, symbol.Frame{Function: noMethod, BCI: -1, Kind: f.Kind, Flags: f.Flags, Addr: addr, NoName: true})
	}
	for i, g := range list {
		class, name := vm.text(im.image, textClass, g.class), vm.text(im.image, textName, g.name)
		s := symbol.Frame{Function: class + "." + name, File: vm.text(im.image, textFile, g.class),
			Line: g.line, BCI: g.bci, Kind: f.Kind, Flags: f.Flags, Addr: addr}
		switch {
		case class == "" || name == "":
			s.Function, s.NoName = noMethod, true
		case strings.HasPrefix(class, "com.oracle.svm."):
			s.Kind = walk.KindStub
		}
		if i < len(list)-1 && s.Kind == walk.KindAOT {
			s.Kind = walk.KindInlined
		}
		if coarse {
			s.Flags |= walk.Coarse
		}
		out = append(out, s)
	}
	return out
}

// noMethod stands for a method that the image does not name.
const noMethod = "[Java method]"

// at returns the methods at an address, innermost first. coarse reports whether the place in them is
// only known up to the next call: only calls and some other places are described.
func (vm *VM) at(im *image, rel uint64, exact bool) (list []frame, coarse bool) {
	key := listKey{im, rel, exact}
	if l, ok := vm.lists[key]; ok {
		return l.frames, l.coarse
	}
	if exact {
		if e, is, ok := im.table.seek(rel); ok && is && e.kind != noFrameInfo {
			list, _ = im.decode(e.info, nil)
		} else if rel > 0 {
			list, exact = im.around(rel-1), false
		}
	} else {
		list = im.around(rel)
	}
	if len(vm.lists) >= maxLists {
		clear(vm.lists)
	}
	vm.lists[key] = places{list, !exact}
	return list, !exact
}

// maxAhead bounds the entries that are looked at for the next described place.
const maxAhead = 4096

// around returns the methods at an address that has no entry of its own: those of the next call in
// the same method, as a thread that was stopped there would be seen at its next stop; of the last
// one, if none follows; or only the method.
func (im *image) around(rel uint64) []frame {
	m, end, ok := im.table.method(rel)
	if !ok {
		return nil
	}
	var list, before []frame
	e, _, ok := im.table.seek(rel)
	for n := 0; ok && n < maxAhead && e.ip < end; n++ {
		if e.ip >= rel && (e.kind == plainInfo || e.kind == deoptInfo) {
			if list, ok = im.decode(e.info, nil); ok {
				return list
			}
		}
		ok = im.table.after(&e)
	}
	e, _, ok = im.table.seek(uint64(m.start))
	for n := 0; ok && n < maxAhead && e.ip < end; n++ {
		if e.kind != noFrameInfo && (e.kind != defaultInfo || before == nil) {
			if list, ok := im.decode(e.info, nil); ok {
				before = list
			}
		}
		ok = im.table.after(&e)
	}
	return before
}

// decode is frames.decode; it fails if the format is not known.
func (im *image) decode(at uint32, out []frame) ([]frame, bool) {
	if im.format == nil {
		return out, false
	}
	return im.frames.decode(at, out)
}

// text returns the name of a class, a method or a class's file; "" if it is not known.
func (vm *VM) text(im *image, what uint8, index uint32) string {
	key := textKey{im, what, index}
	if s, ok := vm.texts[key]; ok {
		return s
	}
	s := symbol.Printable(im.text(what, index))
	if len(vm.texts) >= maxTexts {
		clear(vm.texts)
	}
	vm.texts[key] = s
	return s
}

// text reads the name of a class, a method or a class's file.
func (im *image) text(what uint8, index uint32) string {
	h := &im.heap
	if what == textName {
		at, ok := h.element(im.names, uint64(index))
		if !ok {
			return ""
		}
		s, _ := h.text(at)
		return s
	}
	hub, ok := h.element(im.classes, uint64(index))
	if !ok {
		return ""
	}
	if what == textClass {
		return im.className(h, hub)
	}
	return im.fileName(h, hub)
}
