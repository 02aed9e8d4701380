package pprof

import (
	"bufio"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/candid-profiler/candid/internal/format/locations"
	"github.com/candid-profiler/candid/internal/format/protobuf"
	"github.com/candid-profiler/candid/internal/profile"
)

// Sum is what is known of a stack: how many samples have it, and their weight.
type Sum struct {
	Node uint32
	profile.Count
}

// WriteSums writes sums of p's first event over p's stacks, uncompressed: no labels, no comments,
// nothing of p's own samples. Servers make a series of each combination of labels.
func WriteSums(w io.Writer, p *profile.Profile, sums []Sum) error {
	out := bufio.NewWriterSize(w, 64<<10)
	wr := &writer{
		p: p, out: out, bare: true,
		strings:   map[string]uint64{"": 0},
		table:     []string{""},
		mappings:  map[place]uint64{},
		functions: make([]uint64, len(p.Funcs)),
	}
	wr.write(func() {
		wr.chains = locations.New(p)
		wr.locations = make([]uint64, wr.chains.Len())
		for i := range sums {
			wr.sum(&sums[i])
		}
	})
	if wr.err == nil {
		wr.err = out.Flush()
	}
	if wr.err != nil {
		return fmt.Errorf("write pprof: %w", wr.err)
	}
	return nil
}

// sum writes a Sample of a stack and two numbers.
func (w *writer) sum(s *Sum) {
	var m, list protobuf.Message
	for chain := range w.chains.Stack(s.Node) {
		list = protowire.AppendVarint(list, w.location(chain))
	}
	m.Bytes(sampleLocation, list)
	list = protowire.AppendVarint(list[:0], s.Samples)
	list = protowire.AppendVarint(list, s.Weight)
	m.Bytes(sampleValue, list)
	w.field(profileSample, m)
}
