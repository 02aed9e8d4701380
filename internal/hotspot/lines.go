package hotspot

import "github.com/candid-profiler/candid/internal/hotspot/metadata"

// lineEntry is a source line and the bytecode index at which it begins.
type lineEntry struct{ bci, line uint16 }

// decodeLines decodes a compressed line table (docs/hotspot.md, "Line tables"). ok is false if data
// ends before the table does.
func decodeLines(data []byte, bias uint32, codeSize uint32) (out []lineEntry, ok bool) {
	u := metadata.Unsigned5{Data: data, Bias: bias}
	bci, line := int32(0), int32(0)
	for u.Pos < len(data) {
		b := data[u.Pos]
		u.Pos++
		switch b {
		case 0:
			return out, true
		case 0xFF:
			bci += u.Signed()
			line += u.Signed()
		default:
			bci += int32(b >> 3)
			line += int32(b & 7)
		}
		if u.Bad {
			return out, false
		}
		if bci < 0 || uint32(bci) >= codeSize || len(out) > 1<<16 {
			return out, true // no line table; the bytes before may be one
		}
		out = append(out, lineEntry{uint16(bci), uint16(line)})
	}
	return out, false
}

// lineAt returns the line of a bytecode: of the entry with the greatest index not
// above it (entries are not sorted); 0 if there is none.
func lineAt(lines []lineEntry, bci int32) int32 {
	bci = max(bci, 0)
	best, line := int32(-1), int32(0)
	for _, e := range lines {
		if b := int32(e.bci); b <= bci && b > best {
			best, line = b, int32(e.line)
		}
	}
	return line
}

// line returns the source line of a bytecode of m, 0 if unknown.
func (vm *VM) line(m *method, bci int32) int32 {
	if !m.linesRead {
		m.linesRead = true
		m.lines, m.linesSeen = vm.readLines(m), vm.Mem.Reads
	}
	return lineAt(m.lines, bci)
}

func (vm *VM) readLines(m *method) []lineEntry {
	if !m.hasLines || m.batch != vm.Batch && !vm.freshMethod(m) {
		return nil
	}
	addr, bias := m.codeBase+uint64(m.codeSize), metadata.Unsigned5Bias(vm.Major)
	// Most tables are short, and the next page need not be mapped.
	for n := uint64(256); n <= maxLineData; n *= 4 {
		data := make([]byte, n)
		if !vm.Mem.Near(data, addr) {
			data = data[:min(n, 4096-addr&4095)]
			if !vm.Mem.Near(data, addr) {
				return nil
			}
		}
		out, ok := decodeLines(data, bias, m.codeSize)
		if ok || uint64(len(data)) < n {
			return out
		}
	}
	return nil
}
