package jfr_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

// everything returns a profile with every value that a field can have.
func everything(samples int) *profile.Profile {
	r := rand.New(rand.NewPCG(7, 8))
	b := profile.NewBuilder()
	p := b.Profile()
	p.Meta = profile.Meta{
		Start: time.Unix(1_700_000_000, 123_456_789), Duration: 90 * time.Minute, Host: "höst", Engine: "bpf",
		Describe: "a line", Command: profile.PlainText("java -jar \"x\" \u202e\x01"), Version: "1.2", Notes: []string{"one", profile.PlainText("two \n lines")},
		Cost: profile.Cost{Copying: time.Second, TargetCPU: time.Hour, OwnCPU: 3, Memory: 1 << 40, FirstWalked: 7},
	}
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1_001_001}, {Name: "wall", Kind: profile.EventWall, Unit: "nanoseconds", Period: 10}, {Name: "sched:sched_switch", Kind: profile.EventTracepoint, Unit: "count", Period: 1}}
	p.Losses = profile.Losses{Lost: 1 << 60, Throttled: 7}
	b.AddProcess(profile.Process{PID: 1, Command: "init"})
	b.AddProcess(profile.Process{PID: 4711, Command: "java", Runtime: "hotspot 21"})
	var threads []uint32
	for i := range 40 {
		th := b.NewThread(4711+i/30, 100+i%25, fmt.Sprintf("worker %d", i))
		t := &b.Threads()[th]
		t.Kind, t.OSName, t.KernelCPU = append(profile.ThreadKinds(), "")[i%6], "os", uint64(i)<<33
		threads = append(threads, th)
	}
	var calls []uint16
	for _, name := range []string{"", "futex", "epoll_wait", "read"} {
		calls = append(calls, b.Syscall(name))
	}
	var frames []uint32
	for i := range 300 {
		fn := b.Func([]profile.Func{
			{Name: fmt.Sprintf("com.example.A%d.run", i), Signature: "(I[Ljava/lang/String;)V", File: "A.java"},
			{Name: fmt.Sprintf("com.example.B$$Lambda.get%d", i), Raw: fmt.Sprintf("com.example.B$$Lambda$%d/0x1.get%d", i, i), Signature: "()V"},
			{Name: fmt.Sprintf("std::vector<int, std::allocator<int> >::at%d(unsigned long)", i), Raw: "_ZNSt6vector", Module: "libstdc++.so.6", File: "/usr/include/c++/vector"},
			{Name: fmt.Sprintf("libz.so+0x%x", i), Module: "libz.so", NoName: true},
			{Name: "ksys_read", Module: "[kernel]"},
			{Name: fmt.Sprintf("call_stub %d", i)},
			{Name: ".x." + string(rune('a'+i%26)) + "."},
			{Name: ""},
		}[i%8])
		f := profile.Frame{
			Func: fn, Line: int32(i % 3 * 1000), BCI: int32(i%5) - 1, Kind: walk.Kind(i) % walk.NumKinds, Prov: walk.Provenance(i % 3),
			Flags: walk.FrameFlags(i % 16), Addr: uint64(i%4) << 62,
		}
		frames = append(frames, b.Frame(f))
	}
	for i := range samples {
		node := uint32(profile.RootNode)
		for range r.IntN(40) {
			node = b.Node(node, frames[r.IntN(len(frames))])
		}
		s := profile.Sample{
			Time: uint64(i) * 1e6, Weight: 1_001_001, Node: node, Thread: threads[r.IntN(len(threads))], Event: uint16(r.IntN(3)),
			Syscall: calls[r.IntN(len(calls))], State: profile.State(r.IntN(profile.NumStates)), End: walk.End(r.IntN(int(walk.NumEnds))), Flags: profile.SampleFlags(r.IntN(4)),
		}
		switch r.IntN(20) {
		case 0:
			s.Time = 0
		case 1:
			s.Weight = r.Uint64()
		case 2:
			s.Node = profile.RootNode
		}
		b.Add(s)
	}
	for i := range 3 * len(profile.ObservationKinds) {
		k := i % len(profile.ObservationKinds)
		o := profile.Observation{Kind: uint16(k), Process: int32(i%3) - 1, Time: uint64(i) * 1e6}
		if profile.ObservationKinds[k].Lasts {
			o.Duration = r.Uint64N(1e9)
		}
		for _, typ := range profile.ObservationKinds[k].Values {
			v := profile.Number(r.Uint64N(1 << 50))
			switch typ {
			case profile.ValueText:
				v = profile.Text([]string{"", "a text \u202e", "Default"}[r.IntN(3)])
			case profile.ValueFlag:
				v = profile.Flag(r.IntN(2) == 0)
			case profile.ValueShare:
				v = profile.Share(float64(r.IntN(65)) / 64)
			case profile.ValueThread:
				v = profile.Number(r.Uint64N(uint64(len(b.Threads()))))
				if r.IntN(4) == 0 {
					v = profile.Number(profile.UnknownNumber)
				}
			case profile.ValueSigned:
				v = profile.Number(-r.Uint64N(1000))
			case profile.ValueBytes:
				if r.IntN(4) == 0 {
					v = profile.Number(profile.UnknownNumber)
				}
			}
			o.Values = append(o.Values, v)
		}
		b.Observe(o)
	}
	return b.Profile()
}

// flatSample is a sample without numbers that have a meaning only within its profile.
type flatSample struct {
	profile.Sample
	thread profile.Thread
	event  profile.Event
	call   string
	frames stackDigest
}

// stackDigest stands for all frames of a stack, independently of the profile.
type stackDigest [sha256.Size]byte

// flat returns a profile's samples with their full stacks.
func flat(p *profile.Profile) []flatSample {
	text := frameTexts(p)
	stacks := make([]stackDigest, len(p.Nodes))
	var work []byte
	for i, n := range p.Nodes[1:] {
		work = append(append(work[:0], stacks[n.Parent][:]...), text[n.Frame]...)
		stacks[i+1] = sha256.Sum256(work)
	}
	var out []flatSample
	for _, s := range p.Samples {
		x := flatSample{Sample: s, thread: p.Threads[s.Thread], event: p.Events[s.Event], frames: stacks[s.Node]}
		if s.Syscall > 0 {
			x.call = p.Syscalls[s.Syscall]
		}
		x.Node = 0
		out = append(out, x)
	}
	// A file has them in another order: see waits.go.
	slices.SortFunc(out, func(a, b flatSample) int {
		order := cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Event, b.Event), cmp.Compare(a.Weight, b.Weight),
			cmp.Compare(a.State, b.State), cmp.Compare(a.End, b.End), cmp.Compare(a.Syscall, b.Syscall), cmp.Compare(a.Flags, b.Flags))
		if order != 0 {
			return order
		}
		return bytes.Compare(a.frames[:], b.frames[:])
	})
	return out
}

// frameTexts returns the frames of a profile in full, without numbers that have a meaning only
// within it.
func frameTexts(p *profile.Profile) []string {
	text := make([]string, len(p.Frames))
	for i, f := range p.Frames {
		fn := p.Funcs[f.Func]
		f.Func = 0
		text[i] = fmt.Sprintf("%q %v\n", fmt.Sprint(fn), f)
	}
	return text
}

// stackText returns the stack that a digest stands for.
func stackText(p *profile.Profile, of stackDigest) string {
	text := frameTexts(p)
	for i := range p.Samples {
		var at []string
		for n := p.Samples[i].Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			at = append(at, text[p.Nodes[n].Frame])
		}
		slices.Reverse(at)
		var d stackDigest
		for _, frame := range at {
			d = sha256.Sum256(append(d[:], frame...))
		}
		if d == of {
			return strings.Join(at, "")
		}
	}
	return ""
}

// same fails if two profiles differ.
func same(t *testing.T, got, want *profile.Profile) {
	t.Helper()
	if !got.Meta.Start.Equal(want.Meta.Start) {
		t.Errorf("began %v, want %v", got.Meta.Start, want.Meta.Start)
	}
	a, b := got.Meta, want.Meta
	a.Start, b.Start = time.Time{}, time.Time{}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("meta\n%+v\nwant\n%+v", a, b)
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"events", got.Events, want.Events}, {"processes", got.Processes, want.Processes}, {"threads", got.Threads, want.Threads},
		{"observations", got.Observations, want.Observations}, {"losses", got.Losses, want.Losses}, {"system calls", got.Syscalls, want.Syscalls},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s\n%+v\nwant\n%+v", c.name, c.got, c.want)
		}
	}
	x, y := flat(got), flat(want)
	if len(x) != len(y) {
		t.Fatalf("%d samples, want %d", len(x), len(y))
	}
	for i := range x {
		if x[i] != y[i] {
			t.Fatalf("sample %d\n%+v\n%s\nwant\n%+v\n%s", i, x[i], stackText(got, x[i].frames), y[i], stackText(want, y[i].frames))
		}
	}
}

func written(t testing.TB, p *profile.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jfr.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(t testing.TB, data []byte) *profile.Profile {
	t.Helper()
	p, err := jfr.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func packed(t testing.TB, write func(io.Writer, *profile.Profile) error, p *profile.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unzstd(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func gunzip(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func unpack(t testing.TB, data []byte) *profile.Profile {
	t.Helper()
	if !jfr.IsPacked(data) {
		t.Fatal("it is not packed")
	}
	in, err := jfr.OpenPacked(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	p, err := jfr.Read(in, in.Size())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A written profile, packed or not, is read back completely, and writing that again yields the same
// file.
func TestRoundTrip(t *testing.T) {
	empty := profile.NewBuilder().Profile()
	empty.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 5}}
	for name, p := range map[string]*profile.Profile{"java": profiletest.Java(), "everything": everything(50_000), "nothing": empty} {
		t.Run(name, func(t *testing.T) {
			data := written(t, p)
			got := read(t, data)
			same(t, got, p)
			if again := written(t, got); len(again) != len(data) {
				t.Errorf("%d bytes when written again, %d before", len(again), len(data))
			}
			gzip := packed(t, jfr.WritePacked, p)
			same(t, unpack(t, gzip), p)
			same(t, read(t, gunzip(t, gzip)), p)
			zstd := packed(t, jfr.WriteZstd, p)
			same(t, unpack(t, zstd), p)
			same(t, read(t, unzstd(t, zstd)), p)
			t.Logf("%d bytes, %.1f each of %d samples", len(data), float64(len(data))/float64(max(len(p.Samples), 1)), len(p.Samples))
		})
	}
}
