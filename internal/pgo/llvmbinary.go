package pgo

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Numbers from LLVM: llvm/ProfileData/SampleProf.h (SPF_Ext_Binary, SPVersion, SecType). Numbers are
// ULEB128 except in the table of sections.
const (
	extBinary       = 4
	sampleVersion   = 103
	secSummary      = 1
	secNames        = 2
	secOffsets      = 4
	secFunctions    = 32
	maxExtSections  = 4
	sectionHeadSize = 4 * 8
)

// cutoffs are the parts of all counts, in millionths, for which the summary has the smallest count:
// those of LLVM's ProfileSummaryBuilder.
var cutoffs = []uint64{10000, 100000, 200000, 300000, 400000, 500000, 600000, 700000, 800000, 900000, 950000, 990000, 999000, 999900, 999990, 999999}

// WriteLLVMBinary writes the sample profile of LLVM in its extensible binary format, which is what
// llvm-profdata merge --sample writes by default.
func (t *Tree) WriteLLVMBinary(w io.Writer) error {
	functions := t.sorted()
	e := &extWriter{index: map[string]uint64{}}
	for _, f := range functions {
		e.collect(f)
	}
	slices.Sort(e.names)
	for i, n := range e.names {
		e.index[n] = uint64(i)
	}
	var names, offsets, body []byte
	names = binary.AppendUvarint(names, uint64(len(e.names)))
	for _, n := range e.names {
		names = append(append(names, n...), 0)
	}
	offsets = binary.AppendUvarint(offsets, uint64(len(functions)))
	for _, f := range functions {
		offsets = binary.AppendUvarint(offsets, e.index[f.name])
		offsets = binary.AppendUvarint(offsets, uint64(len(body)))
		body = binary.AppendUvarint(body, count(f.head))
		body = e.function(body, f)
	}
	sections := [maxExtSections]struct {
		typ  uint64
		data []byte
	}{{secSummary, summary(functions)}, {secNames, names}, {secOffsets, offsets}, {secFunctions, body}}

	magic := uint64('S')<<56 | uint64('P')<<48 | uint64('R')<<40 | uint64('O')<<32 | uint64('F')<<24 | uint64('4')<<16 | uint64('2')<<8 | extBinary
	head := binary.AppendUvarint(nil, magic)
	head = binary.AppendUvarint(head, sampleVersion)
	head = binary.LittleEndian.AppendUint64(head, maxExtSections)
	at := uint64(len(head)) + maxExtSections*sectionHeadSize
	for _, s := range sections {
		for _, v := range []uint64{s.typ, 0, at, uint64(len(s.data))} {
			head = binary.LittleEndian.AppendUint64(head, v)
		}
		at += uint64(len(s.data))
	}
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("write the sample profile: %w", err)
	}
	for _, s := range sections {
		if _, err := w.Write(s.data); err != nil {
			return fmt.Errorf("write the sample profile: %w", err)
		}
	}
	return nil
}

type extWriter struct {
	names []string
	index map[string]uint64
}

func (e *extWriter) name(s string) {
	if _, ok := e.index[s]; !ok {
		e.index[s] = 0
		e.names = append(e.names, s)
	}
}

func (e *extWriter) collect(f *function) {
	e.name(f.name)
	for _, b := range f.body {
		for n := range b.targets {
			e.name(n)
		}
	}
	for _, m := range f.inlined {
		for _, in := range m {
			e.collect(in)
		}
	}
}

// function appends a function: its name, total and places, and the functions inlined into it.
func (e *extWriter) function(b []byte, f *function) []byte {
	put := func(values ...uint64) {
		for _, v := range values {
			b = binary.AppendUvarint(b, v)
		}
	}
	put(e.index[f.name], f.total(), uint64(len(f.body)))
	for _, l := range sortedKeys(f.body) {
		of := f.body[l]
		targets := of.sortedTargets()
		put(uint64(l.line), uint64(l.discriminator), count(of.count), uint64(len(targets)))
		for _, c := range targets {
			put(e.index[c.name], c.count)
		}
	}
	sites := 0
	for _, m := range f.inlined {
		sites += len(m)
	}
	put(uint64(sites))
	for _, l := range sortedKeys(f.inlined) {
		for _, name := range slices.Sorted(maps.Keys(f.inlined[l])) {
			put(uint64(l.line), uint64(l.discriminator))
			b = e.function(b, f.inlined[l][name])
		}
	}
	return b
}

// summary returns the summary by which LLVM decides what is hot and what is cold.
func summary(functions []*function) []byte {
	var counts []uint64
	var total, most, mostFunction uint64
	var add func(f *function)
	add = func(f *function) {
		for _, b := range f.body {
			n := count(b.count)
			counts = append(counts, n)
			total, most = total+n, max(most, n)
		}
		for _, m := range f.inlined {
			for _, in := range m {
				add(in)
			}
		}
	}
	for _, f := range functions {
		mostFunction = max(mostFunction, count(f.head))
		add(f)
	}
	slices.SortFunc(counts, func(a, b uint64) int {
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	var out []byte
	for _, v := range []uint64{total, most, mostFunction, uint64(len(counts)), uint64(len(functions)), uint64(len(cutoffs))} {
		out = binary.AppendUvarint(out, v)
	}
	sum, seen := uint64(0), 0
	for _, c := range cutoffs {
		least := uint64(0)
		want := uint64(float64(total) * float64(c) / 1e6)
		for seen < len(counts) && sum < want {
			least = counts[seen]
			sum += least
			seen++
		}
		// Equal counts belong together.
		for seen > 0 && seen < len(counts) && counts[seen] == counts[seen-1] {
			sum += counts[seen]
			seen++
		}
		if seen > 0 {
			least = counts[seen-1]
		}
		for _, v := range []uint64{c, least, uint64(seen)} {
			out = binary.AppendUvarint(out, v)
		}
	}
	return out
}
