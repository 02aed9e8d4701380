package jfr

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
)

// FuzzRead reads any file. Most of a small one is the description of its types, so FuzzParts tests
// the rest more thoroughly.
func FuzzRead(f *testing.F) {
	own, other := small(f), foreignFile(f)
	f.Add(own)
	f.Add(other)
	// Bytes changed in the parts that matter: the header, and the constants at the end.
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		bad := bytes.Clone(own)
		end := int(binary.BigEndian.Uint64(bad[atCheckpoint:]))
		bad[end+r.IntN(len(bad)-end)] ^= byte(1 << r.IntN(8))
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parse(data)
		if err != nil {
			return
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		p.Select(profile.Filter{}).List()
	})
}

// described is a description of types, read once.
type described struct {
	metadata []byte // the event
	reader   reader
}

// FuzzParts reads any constants and events with valid types: those of candid's files, and those of
// other profilers' files.
func FuzzParts(f *testing.F) {
	var kinds [2]described
	for i, data := range [][]byte{small(f), foreignFile(f)} {
		pools, events, metadata := parts(f, data)
		kinds[i].metadata = metadata
		f.Add(i == 0, pools, events)
	}
	f.Fuzz(func(t *testing.T, own bool, pools, events []byte) {
		kind := &kinds[1]
		if own {
			kind = &kinds[0]
		}
		data := assembled(pools, events, kind.metadata)
		r := reader{in: bytes.NewReader(data), size: int64(len(data)), b: profile.NewBuilder(), window: window{in: bytes.NewReader(data)}}
		r.metadata, r.schema, r.readers = kind.reader.metadata, kind.reader.schema, kind.reader.readers
		err := r.all()
		kind.reader.metadata, kind.reader.schema, kind.reader.readers = r.metadata, r.schema, r.readers
		if r.readers.ours != own {
			t.Fatal("the types are not what they should be")
		}
		if err != nil {
			return
		}
		p := r.finish()
		if p.Check() == nil {
			p.Select(profile.Filter{}).List()
		}
	})
}

// TestParts checks that the seeds of FuzzParts are files with everything in them.
func TestParts(t *testing.T) {
	for _, data := range [][]byte{small(t), foreignFile(t)} {
		want, err := parse(data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parse(assembled(parts(t, data)))
		if err != nil || len(got.Samples) != len(want.Samples) || len(got.Nodes) != len(want.Nodes) || len(got.Threads) != len(want.Threads) {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// parts splits a file of one chunk: the pools of all its checkpoints, its events up to its
// description of types, and that description.
func parts(t testing.TB, data []byte) (pools, events, metadata []byte) {
	t.Helper()
	r := &reader{in: bytes.NewReader(data), size: int64(len(data)), b: profile.NewBuilder()}
	c, err := r.header(0)
	if err != nil {
		t.Fatal(err)
	}
	event := func(at int64) (content, whole []byte) {
		content, size, err := r.event(c, at, c.size)
		if err != nil {
			t.Fatal(err)
		}
		return content, data[at : at+size]
	}
	n := 0
	for at := c.checkpoint; ; {
		content, _ := event(at)
		cur := &cursor{b: content}
		before := checkpointHead(cur)
		n += cur.count()
		pools = append(bytes.Clone(content[cur.pos:]), pools...)
		if before >= 0 {
			break
		}
		at += before
	}
	_, metadata = event(c.metadata)
	return append(binary.AppendUvarint(nil, uint64(n)), pools...), data[headerSize:c.metadata], metadata
}

// assembled returns a file of one chunk and one checkpoint.
func assembled(pools, events, metadata []byte) []byte {
	data := append(make([]byte, headerSize), events...)
	checkpoint := len(data)
	data = append(reserveSize(data), typeCheckpoint, firstTick, 0, 0, 0)
	data = append(data, pools...)
	putSize(data, checkpoint)
	described := len(data)
	data = append(data, metadata...)
	be := binary.BigEndian
	copy(data, magic[:])
	be.PutUint16(data[atVersion:], majorVersion)
	be.PutUint64(data[atSize:], uint64(len(data)))
	be.PutUint64(data[atCheckpoint:], uint64(checkpoint))
	be.PutUint64(data[atMetadata:], uint64(described))
	be.PutUint32(data[atFlags:], flagCompressed)
	return data
}
