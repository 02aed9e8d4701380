package jfr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// chunked returns a recording of many chunks, and where they begin.
func chunked(t testing.TB, p *profile.Profile) (b []byte, at []int64) {
	out := &file{}
	s := NewStream(out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
	s.MaxChunk = 20_000
	for i, sample := range p.Samples {
		if err := s.Add(sample); err != nil {
			t.Fatal(err)
		}
		if i%50 == 49 {
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	for base := int64(0); base < int64(len(out.b)); base += int64(binary.BigEndian.Uint64(out.b[base+atSize:])) {
		at = append(at, base)
	}
	if len(at) < 6 {
		t.Fatalf("%d chunks", len(at))
	}
	return out.b, at
}

// A file of many chunks yields each sample with its stack, in order, also if the samples of a chunk
// are not read in parallel with the constants of the next one.
func TestManyChunks(t *testing.T) {
	p := profiletest.Java()
	b, _ := chunked(t, p)
	for _, f := range []profile.Filter{{}, {Focus: regexp.MustCompile(".")}} {
		builder := profile.NewBuilder()
		builder.LeaveOut(f)
		got, err := ReadInto(builder, bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for _, want := range p.Samples {
			if f.Focus != nil && want.Node == profile.RootNode {
				continue
			}
			if i == len(got.Samples) {
				t.Fatalf("there are only %d samples", i)
			}
			s := got.Samples[i]
			if i++; s.Time != want.Time || s.State != want.State || stack(got, s.Node) != stack(p, want.Node) || got.Threads[s.Thread] != p.Threads[want.Thread] {
				t.Fatalf("sample %d: %+v of\n%s\nwant %+v of\n%s", i, s, stack(got, s.Node), want, stack(p, want.Node))
			}
		}
		if i != len(got.Samples) {
			t.Errorf("%d samples more", len(got.Samples)-i)
		}
	}
}

func stack(p *profile.Profile, node uint32) string {
	var b strings.Builder
	for ; node != profile.RootNode; node = p.Nodes[node].Parent {
		f := p.Frames[p.Nodes[node].Frame]
		fmt.Fprintln(&b, p.Funcs[f.Func].Name, f.Line, f.BCI, f.Kind, f.Prov, f.Flags, f.Addr)
	}
	return b.String()
}

// If two chunks are damaged the error is about the first, though its events are read while the next
// one is.
func TestFirstDamage(t *testing.T) {
	b, at := chunked(t, profiletest.Java())
	events := bytes.Clone(b)
	// The chunk's first event claims more bytes than there are, and its last checkpoint comes after
	// it.
	copy(events[at[1]+headerSize:], []byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	both := bytes.Clone(events)
	binary.BigEndian.PutUint64(both[at[2]+atMetadata:], uint64(headerSize))
	copy(both[at[2]+headerSize:], []byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	for range 20 {
		for name, damaged := range map[string][]byte{"events": events, "events and the next chunk's types": both} {
			_, err := parse(damaged)
			if want := fmt.Sprintf("the chunk at byte %d: malformed recording: the event at byte %d has", at[1], headerSize); err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "the chunk at") != 1 {
				t.Fatalf("%s: %v, want %s", name, err, want)
			}
		}
	}
}
