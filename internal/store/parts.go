package store

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// content is what a block of samples has before it is packed: what is said of all samples, and the
// samples in parts, so that a question about one service unpacks only its own.
type content struct {
	about []byte
	parts []partOf
}

// partOf are the samples of some services.
type partOf struct {
	services []uint32 // strings, ascending
	raw      []byte
}

// leastPart is how many samples a part has at least, if there are as many: small parts pack worse.
const leastPart = 128

// divide sorts entries and divides them into parts. A service with many samples has a part of its own.
func (in *intern) divide(a *about, entries []entry) []partOf {
	s := in.s
	of := func(thread uint32) uint32 { return s.serviceOf[thread] }
	numbers := map[uint32]uint64{}
	for i := range entries {
		numbers[of(entries[i].thread)] += entries[i].n
	}
	services := make([]uint32, 0, len(numbers))
	for v := range numbers {
		services = append(services, v)
	}
	slices.SortFunc(services, func(x, y uint32) int {
		return cmp.Or(cmp.Compare(min(numbers[y], leastPart), min(numbers[x], leastPart)), cmp.Compare(x, y))
	})
	partOfService := make(map[uint32]int, len(services))
	var parts []partOf
	have := uint64(leastPart)
	for _, v := range services {
		if have >= leastPart {
			parts, have = append(parts, partOf{}), 0
		}
		p := &parts[len(parts)-1]
		p.services = append(p.services, v)
		partOfService[v] = len(parts) - 1
		have += numbers[v]
	}
	slices.SortFunc(entries, func(x, y entry) int {
		return cmp.Or(cmp.Compare(partOfService[of(x.thread)], partOfService[of(y.thread)]), x.compare(&y))
	})
	for i := range parts {
		slices.Sort(parts[i].services)
		end := slices.IndexFunc(entries, func(e entry) bool { return partOfService[of(e.thread)] != i })
		if end < 0 {
			end = len(entries)
		}
		parts[i].raw = a.encodeEntries(nil, in.p.Events, entries[:end])
		entries = entries[end:]
	}
	return parts
}

// appendParts appends a block of samples to b. Its body has a list of the parts, the first of which is
// what is said of all samples: how long it is unpacked and packed, and its services, each as the
// difference to the one before. The parts follow. One that packing does not make shorter is not packed.
func (p *packer) appendParts(b []byte, from, to int64, c content) ([]byte, error) {
	list := append([]partOf{{raw: c.about}}, c.parts...)
	head, total := binary.AppendUvarint(nil, uint64(len(list))), 0
	p.work = p.work[:0]
	for _, part := range list {
		at := len(p.work)
		p.work = p.zstd(part.raw, p.work)
		if len(p.work)-at >= len(part.raw) {
			p.work = append(p.work[:at], part.raw...)
		}
		head = binary.AppendUvarint(head, uint64(len(part.raw)))
		head = binary.AppendUvarint(head, uint64(len(p.work)-at))
		head = binary.AppendUvarint(head, uint64(len(part.services)))
		before := uint32(0)
		for _, v := range part.services {
			head = binary.AppendUvarint(head, uint64(v-before))
			before = v
		}
		total += len(part.raw)
	}
	if max(total, len(head)+len(p.work)) > maxBlock {
		return b, fmt.Errorf("a block of %d bytes is more than the %d that a store takes", total, maxBlock)
	}
	sum := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, p.work)
	h := header{kind: kindSamples, version: version, codec: parted, length: uint32(len(head) + len(p.work)), raw: uint32(total), from: from, to: to, sum: sum}
	return append(append(h.append(b), head...), p.work...), nil
}

// unpacked is the content of a block of samples.
type unpacked struct {
	about []byte
	parts [][]byte // one that is nil is in about, after it
	bufs  [][]byte // of the parts, to be used again
}

// all and nobody are the services whose samples a question is about.
func all(uint32) bool    { return true }
func nobody(uint32) bool { return false }

// unpackParts checks the body of a block of samples and unpacks what is said of all samples, and the
// parts that have a service that is wanted. It uses the memory of an earlier one again.
func (h *header) unpackParts(body []byte, u unpacked, wanted func(service uint32) bool) (unpacked, error) {
	u.parts = u.parts[:0]
	if h.codec != parted {
		about, err := h.unpack(body, u.about)
		u.about, u.parts = about, append(u.parts, nil)
		return u, err
	}
	if uint32(len(body)) != h.length || crc32.Checksum(body, castagnoli) != h.sum {
		return u, errSum
	}
	c := cursor{b: body}
	n := c.count()
	type place struct {
		raw, packed int
		want        bool
	}
	places, total := make([]place, 0, min(n, 64)), 0
	for i := range n {
		raw, packed := c.below(maxBlock+1), c.below(maxBlock+1)
		want, service := i == 0, uint32(0)
		for range c.count() {
			service += uint32(c.number())
			want = want || wanted(service)
		}
		total += int(raw)
		if c.bad || total > int(h.raw) {
			return u, errCut
		}
		places = append(places, place{int(raw), int(packed), want})
	}
	if n == 0 {
		return u, errCut
	}
	used := 0
	for i, p := range places {
		if p.packed > len(c.b) || p.packed > p.raw {
			return u, errCut
		}
		from := c.b[:p.packed]
		c.b = c.b[p.packed:]
		if !p.want {
			continue
		}
		if i == 0 {
			var err error
			if u.about, err = unpackPart(from, u.about, p.raw); err != nil {
				return u, err
			}
			continue
		}
		if used == len(u.bufs) {
			u.bufs = append(u.bufs, nil)
		}
		out, err := unpackPart(from, u.bufs[used], p.raw)
		if err != nil {
			return u, err
		}
		u.bufs[used] = out
		u.parts = append(u.parts, out)
		used++
	}
	return u, nil
}

// unpackPart unpacks a part, which is not packed if it is as long as before. What it returns is never
// nil.
func unpackPart(from, buf []byte, raw int) ([]byte, error) {
	if buf == nil {
		buf = make([]byte, 0, max(raw, 64))
	}
	if len(from) == raw {
		return append(buf[:0], from...), nil
	}
	return unzstd(from, buf, uint32(raw))
}

// services returns, by string, whether it is the service of that name.
func (t *tables) services(name string) func(uint32) bool {
	if name == "" || name == lostText {
		return all
	}
	return func(service uint32) bool {
		// A name that is lost may be this one: then the threads decide.
		return int(service) >= len(t.strings) || t.strings[service] == name || t.strings[service] == lostText
	}
}
