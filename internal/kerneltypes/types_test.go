package kerneltypes

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// describe encodes a description of types, each given by its words, with the names in strings after
// a nil byte each.
func describe(strings string, types ...[]uint32) []byte {
	var body []byte
	for _, t := range types {
		for _, w := range t {
			body = binary.LittleEndian.AppendUint32(body, w)
		}
	}
	raw := []byte{0x9f, 0xeb, 1, 0}
	for _, w := range []int{headerSize, 0, len(body), len(body), len(strings)} {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(w))
	}
	return append(append(raw, body...), strings...)
}

const strs = "\x00int\x00pair\x00left\x00right\x00twin\x00function\x00"

func info(k Kind, vlen int) uint32 { return uint32(k)<<24 | uint32(vlen) }

func sampleSet() []byte {
	types := [][]uint32{
		{1, info(Int, 0), 4, 1<<24 | 32},                  // 1
		{5, info(Struct, 2), 8, 10, 1, 0, 15, 1, 32},      // 2: pair
		{0, info(Const, 0), 2},                            // 3
		{21, info(Typedef, 0), 3},                         // 4: twin
		{26, info(Func, 0), 6},                            // 5
		{0, info(FuncProto, 1), 0, 0, 1},                  // 6
		{0, info(Array, 0), 0, 2, 1, 7},                   // 7
		{5, info(Struct, 1) | 1<<31, 4, 10, 1, 5<<24 | 3}, // 8: another pair, with a bit field
	}
	for range 200 {
		types = append(types, []uint32{0, info(Ptr, 0), 2})
	}
	types = append(types, []uint32{5, info(Union, 0), 4}) // 209
	return describe(strs, types...)
}

func TestFind(t *testing.T) {
	wanted := []Wanted{{Struct, "pair"}, {Typedef, "twin"}, {Func, "function"}, {Union, "pair"}, {Func, "missing"}}
	s, found, err := Find(sampleSet(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]ID{{2, 8}, {4}, {5}, {209}, nil} {
		if got := found[wanted[i]]; !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", wanted[i], got, want)
		}
	}
	id, pair, err := s.Plain(4)
	if err != nil || id != 2 || pair.Name != "pair" || pair.Size != 8 {
		t.Fatalf("twin is %d, %+v, %v", id, pair, err)
	}
	if got := fmt.Sprint(s.Members(pair)); got != "[{left 1 0 0} {right 1 32 0}]" {
		t.Errorf("members of a pair: %s", got)
	}
	fields, err := s.Type(8)
	if got := fmt.Sprint(s.Members(fields), err); got != "[{left 1 3 5}] <nil>" {
		t.Errorf("bit fields: %s", got)
	}
	array, err := s.Type(7)
	if of, n := array.Element(); of != 2 || n != 7 || err != nil {
		t.Errorf("array: %d of %d, %v", n, of, err)
	}
	if last, err := s.Type(209); err != nil || last.Kind != Union {
		t.Errorf("the last type: %+v, %v", last, err)
	}
	if _, err := s.Type(210); err == nil {
		t.Error("a type behind the last one")
	}
}

func FuzzFind(f *testing.F) {
	f.Add(sampleSet())
	f.Add(describe("\x00", []uint32{0, info(Const, 0), 1}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, found, err := Find(raw, []Wanted{{Struct, "pair"}, {Typedef, "twin"}, {Func, "function"}})
		if err != nil {
			return
		}
		for _, ids := range found {
			for _, id := range ids {
				if _, _, err := s.Plain(id); err != nil {
					continue
				}
				one, err := s.Type(id)
				if err != nil {
					t.Fatalf("type %d was found and is not there: %v", id, err)
				}
				for _, m := range s.Members(one) {
					_, _, _ = s.Plain(m.Type)
				}
			}
		}
	})
}
