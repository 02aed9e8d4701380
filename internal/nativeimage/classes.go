package nativeimage

import "strings"

// maxHub bounds the part of a class that is searched for its name, bytes.
const maxHub = 192

// hubFields says where classes (DynamicHub) have their name and the name of the file that they were
// compiled from: offsets in bytes. The second may be in an object of its own (since 25,
// DynamicHubCompanion).
type hubFields struct {
	name     uint64 // 0: not known
	file     uint64 // 0: not known
	fileFrom uint64 // offset of the reference to the object that has file; 0: the class itself
}

// maxLooked is how many classes are examined.
const maxLooked = 200

// learnClasses finds the fields: strings that nearly all classes have, and that look like the names
// of classes or of source files.
func (f *frames) learnClasses(h *heap) {
	type place struct{ from, at uint64 }
	named, filed := map[uint64]int{}, map[place]int{}
	all := 0
	var count func(from, at uint64)
	count = func(from, at uint64) {
		for off := h.refSize(); off < maxHub; off += h.refSize() {
			p, ok := h.field(at + off)
			if !ok {
				continue
			}
			text, ok := h.text(p)
			switch {
			case ok && sourceFile(text):
				filed[place{from, off}]++
			case ok && from == 0 && className(text):
				named[off]++
			case !ok && from == 0:
				// Other classes are not looked into.
				of, ok1 := h.hub(at)
				if hub, ok := h.hub(p); ok && ok1 && hub != of && hub != h.bytesHub {
					count(off, p)
				}
			}
		}
	}
	step := max(1, f.classes.n/maxLooked)
	for i := uint64(0); i < f.classes.n; i += step {
		if at, ok := h.element(f.classes, i); ok {
			all++
			count(0, at)
		}
	}
	f.hub = hubFields{}
	best := 0
	for off, n := range named {
		if n > best || n == best && off < f.hub.name {
			f.hub.name, best = off, n
		}
	}
	if best*2 < all {
		f.hub.name = 0
	}
	best = 0
	for p, n := range filed {
		was := place{f.hub.fileFrom, f.hub.file}
		if n > best || n == best && (p.from < was.from || p.from == was.from && p.at < was.at) {
			f.hub.file, f.hub.fileFrom, best = p.at, p.from, n
		}
	}
	if best*3 < all {
		f.hub.file = 0
	}
}

func (f *frames) className(h *heap, hub uint64) string {
	if f.hub.name == 0 {
		return ""
	}
	at, ok := h.field(hub + f.hub.name)
	if !ok {
		return ""
	}
	s, _ := h.text(at)
	return s
}

func (f *frames) fileName(h *heap, hub uint64) string {
	at, ok := hub, f.hub.file != 0
	if ok && f.hub.fileFrom != 0 {
		at, ok = h.field(hub + f.hub.fileFrom)
	}
	if !ok {
		return ""
	}
	if at, ok = h.field(at + f.hub.file); !ok {
		return ""
	}
	if s, ok := h.text(at); ok && sourceFile(s) {
		return s
	}
	return ""
}

// className reports whether a text may be the name of a class.
func className(s string) bool {
	return strings.Contains(s, ".") && !strings.ContainsAny(s, " <>();:\\\"'\n\r\t") || s == "int" || s == "long"
}

var sourceSuffixes = []string{".java", ".kt", ".scala", ".clj", ".groovy"}

// sourceFile reports whether a text is the name of a source file.
func sourceFile(s string) bool {
	for _, suffix := range sourceSuffixes {
		if strings.HasSuffix(s, suffix) {
			return len(s) > len(suffix)
		}
	}
	return false
}
