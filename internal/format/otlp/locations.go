package otlp

import (
	"cmp"

	"github.com/candid-profiler/candid/internal/format/locations"
	"github.com/candid-profiler/candid/internal/format/protobuf"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// location returns the index of a chain's Location.
func (w *writer) location(chain uint32) uint64 {
	if i := w.places[chain]; i != 0 {
		return i
	}
	var outer profile.Frame
	var lines protobuf.Message
	for f := range w.chains.Frames(chain) {
		outer = *f
		var l protobuf.Message
		l.Uint(lineFunction, w.function(f.Func))
		l.Uint(lineLine, uint64(max(f.Line, 0)))
		lines.Bytes(locationLines, l)
	}
	var m protobuf.Message
	if module := w.p.Funcs[outer.Func].Module; module != "" {
		var mapping protobuf.Message
		mapping.Uint(mappingFilename, w.d.str(module))
		m.Uint(locationMapping, w.d.mappings.put(mapping))
	}
	m.Uint(locationAddress, locations.FileAddr(outer))
	m = append(m, lines...)
	if list := w.frameAttributes(outer); len(list) > 0 {
		m.Bytes(locationAttributes, packed(list))
	}
	i := w.d.locations.put(m)
	w.places[chain] = i
	return i
}

// frameType returns the value of OpenTelemetry's profile.frame.type, "" if none is right: what
// candid calls interpreted or C2 is the JVM's.
func frameType(k walk.Kind) string {
	switch k {
	case walk.KindKernel:
		return "kernel"
	case walk.KindNative:
		return "native"
	case walk.KindInterpreted, walk.KindC1, walk.KindC2, walk.KindNativeMethod:
		return "jvm"
	case walk.KindTier0, walk.KindInstrumented, walk.KindOSR, walk.KindTier1, walk.KindReadyToRun:
		return "dotnet"
	}
	return ""
}

func (w *writer) frameAttributes(f profile.Frame) []uint64 {
	var list []uint64
	if typ := frameType(f.Kind); typ != "" {
		list = append(list, w.d.attribute(attrFrameType, typ, 0))
	}
	if f.Kind != walk.KindUnknown && !w.bare {
		list = append(list, w.d.attribute(attrFrameKind, profile.KindName(f.Kind), 0))
	}
	switch f.Prov {
	case walk.Derived:
		list = append(list, w.d.attribute(attrProvenance, "derived", 0))
	case walk.Heuristic:
		list = append(list, w.d.attribute(attrProvenance, "heuristic", 0))
	}
	return list
}

func (w *writer) function(i uint32) uint64 {
	if n := w.functions[i]; n != 0 {
		return n
	}
	f := &w.p.Funcs[i]
	var m protobuf.Message
	m.Uint(functionName, w.d.str(cmp.Or(f.Name, "[unknown]")))
	if system := cmp.Or(f.Raw, f.Name) + f.Signature; system != f.Name {
		m.Uint(functionSystemName, w.d.str(system))
	}
	m.Uint(functionFilename, w.d.str(f.File))
	n := w.d.functions.put(m)
	w.functions[i] = n
	return n
}
