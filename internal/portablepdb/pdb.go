// Package portablepdb reads portable PDBs, the debug information of .NET: which source line an
// instruction of a method comes from. Source: docs/design/specs/PortablePdb-Metadata.md and
// PE-COFF.md in dotnet/runtime. What is read may be damaged or hostile: everything is bounded.
package portablepdb

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/candid-profiler/candid/internal/climeta"
)

// ErrFormat says that a PDB is damaged, or not a portable one.
var ErrFormat = errors.New("not a portable PDB")

// Bounds of what is read.
const (
	maxPoints   = 1 << 20 // bytes of a method's sequence points
	maxName     = 1 << 12 // bytes of a document's name
	maxEmbedded = 1 << 28 // bytes of an embedded PDB, inflated
)

// ID identifies the build that a PDB belongs to: a GUID and a time stamp.
type ID [20]byte

// PDB is a portable PDB. It is used from one goroutine.
type PDB struct {
	meta      *climeta.Metadata
	documents map[uint32]string
}

// Open reads a PDB. It is an error if it belongs to another build than id. The error wraps
// ErrFormat.
func Open(r io.ReaderAt, id ID) (*PDB, error) {
	meta, err := climeta.Open(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrFormat)
	}
	if got, ok := meta.PDBID(); !ok || ID(got) != id {
		return nil, fmt.Errorf("it is of another build (%x, not %x): %w", got, id, ErrFormat)
	}
	return &PDB{meta: meta, documents: map[uint32]string{}}, nil
}

// Inflate returns the PDB that is embedded in an assembly: a mark, its size, and its bytes,
// deflated. The error wraps ErrFormat.
func Inflate(data []byte) ([]byte, error) {
	if len(data) < 8 || string(data[:4]) != "MPDB" {
		return nil, fmt.Errorf("there is no embedded one: %w", ErrFormat)
	}
	size := binary.LittleEndian.Uint32(data[4:])
	if size > maxEmbedded {
		return nil, fmt.Errorf("the embedded one has %d bytes: %w", size, ErrFormat)
	}
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(flate.NewReader(bytes.NewReader(data[8:])), int64(size)))
	if err != nil || n != int64(size) {
		return nil, fmt.Errorf("the embedded one ends after %d of %d bytes: %w", n, size, ErrFormat)
	}
	return out.Bytes(), nil
}

// Line returns the source line of an instruction: method is a row of MethodDef, il the
// instruction's offset. It is false if there is none.
func (p *PDB) Line(method, il uint32) (file string, line int32, ok bool) {
	document, ok1 := p.meta.Cell(climeta.MethodDebugInfo, method, 0)
	index, ok2 := p.meta.Cell(climeta.MethodDebugInfo, method, 1)
	if !ok1 || !ok2 || index == 0 {
		return "", 0, false
	}
	b, ok := p.meta.Blob(index, maxPoints)
	if !ok {
		return "", 0, false
	}
	document, line, ok = lineAt(b, document, il)
	if !ok {
		return "", 0, false
	}
	return p.document(document), line, true
}

// lineAt finds the last point at or before il that is not hidden.
func lineAt(b []byte, document, il uint32) (doc uint32, line int32, ok bool) {
	s := points{b: b}
	s.number() // the signature of the local variables
	if document == 0 {
		document = s.number()
	}
	var offset uint32
	var at int64
	first, any := true, false
	for len(s.b) > 0 && !s.bad {
		delta := s.number()
		if delta == 0 && !first {
			document = s.number() // from here on
			continue
		}
		first = false
		if offset += delta; offset > il && any {
			break
		}
		lines := int64(s.number())
		var columns int64
		if lines == 0 {
			columns = int64(s.number())
		} else {
			columns = s.signed()
		}
		if lines == 0 && columns == 0 {
			continue // hidden
		}
		if !any {
			at = int64(s.number())
			s.number()
		} else {
			at += s.signed()
			s.signed()
		}
		if s.bad || at <= 0 || at > 1<<30 {
			break
		}
		if any = true; offset <= il || line == 0 {
			doc, line = document, int32(at)
		}
	}
	return doc, line, line > 0
}

// points is the rest of a blob of sequence points.
type points struct {
	b   []byte
	bad bool
}

// number reads a compressed number (ECMA-335 II.23.2).
func (s *points) number() uint32 {
	v, n, ok := climeta.Compressed(s.b)
	if !ok {
		s.bad, s.b = true, nil
		return 0
	}
	s.b = s.b[n:]
	return v
}

// signed reads a compressed number with a sign, which is its lowest bit.
func (s *points) signed() int64 {
	before := len(s.b)
	v := int64(s.number())
	bits := map[int]uint{1: 6, 2: 13, 4: 28}[before-len(s.b)]
	if v&1 == 0 {
		return v >> 1
	}
	return v>>1 - 1<<bits
}

// document returns the name of a document: a separator, and parts that are joined by it.
func (p *PDB) document(row uint32) string {
	if s, ok := p.documents[row]; ok {
		return s
	}
	index, ok := p.meta.Cell(climeta.Document, row, 0)
	if !ok {
		return ""
	}
	b, ok := p.meta.Blob(index, maxName)
	if !ok || len(b) == 0 {
		return ""
	}
	separator := string(b[:1])
	if b[0] == 0 {
		separator = ""
	}
	s := points{b: b[1:]}
	var parts []string
	size := 0
	for len(s.b) > 0 && !s.bad && size < maxName {
		part, ok := p.meta.Blob(s.number(), maxName)
		if !ok {
			return ""
		}
		parts = append(parts, string(part))
		size += len(part) + 1
	}
	name := strings.Join(parts, separator)
	p.documents[row] = name
	return name
}
