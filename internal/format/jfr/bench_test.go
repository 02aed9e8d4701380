package jfr

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// hour is a recording of an hour at 1 kHz of a program that is busy with many things: 3.6 million
// samples of 40,000 stacks, 50 frames deep on average, in 40 threads. The frequencies of stacks
// decrease as in real programs.
var hour = sync.OnceValue(func() *profile.Profile {
	const samples, stacks = 3_600_000, 40_000
	r := rand.New(rand.NewPCG(1, 2))
	b := profile.NewBuilder()
	b.Profile().Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1_001_001}}
	var frames []uint32
	for i := range 8000 {
		fn := b.Func(profile.Func{
			Name: fmt.Sprintf("com.example.shop.part%d.Service%d.method%d", i%90, i%700, i), Signature: "(Ljava/lang/String;I)V", File: fmt.Sprintf("Service%d.java", i%700),
		})
		for line := range 3 {
			frames = append(frames, b.Frame(profile.Frame{Func: fn, Line: int32(i%900 + line), BCI: int32(7 * line), Kind: walk.KindC2}))
		}
	}
	nodes := []uint32{profile.RootNode}
	for len(nodes) < stacks {
		// A stack branches off another one somewhere, and continues by itself.
		n := nodes[r.IntN(len(nodes))]
		for up := r.IntN(25); up > 0 && n != profile.RootNode; up-- {
			n = b.At(n).Parent
		}
		for range 1 + r.IntN(30) {
			n = b.Node(n, frames[r.IntN(len(frames))])
		}
		nodes = append(nodes, n)
	}
	pick := rand.NewZipf(r, 1.1, 20, stacks-1)
	for i := range 40 {
		b.Thread(1, 100+i, fmt.Sprintf("worker-%d", i))
	}
	for i := range samples {
		b.Add(profile.Sample{
			Time: uint64(i)*1_000_000 + r.Uint64N(1000), Weight: 1_001_001, Node: nodes[pick.Uint64()], Thread: r.Uint32N(40), State: profile.StateRunning,
		})
	}
	p := b.Finish()
	p.Meta.Start = time.Unix(1_700_000_000, 0)
	p.Meta.Duration = time.Hour
	return p
})

// write writes the hour to a file and returns its size.
func write(b *testing.B, write func(io.Writer, *profile.Profile) error) (path string, size int64) {
	f, err := os.Create(filepath.Join(b.TempDir(), "hour.jfr"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := write(f, hour()); err != nil {
		b.Fatal(err)
	}
	st, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	return f.Name(), st.Size()
}

func BenchmarkWrite(b *testing.B) {
	p := hour()
	b.ReportAllocs()
	for b.Loop() {
		write(b, Write)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(p.Samples)), "ns/sample")
}

// BenchmarkRead reads the hour.
func BenchmarkRead(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		benchmarkRead(b, Write, func(f *os.File, size int64) (*profile.Profile, error) { return Read(f, size) })
	})
	for name, write := range map[string]func(io.Writer, *profile.Profile) error{"gzip": WritePacked, "zstd": WriteZstd} {
		b.Run(name, func(b *testing.B) {
			benchmarkRead(b, write, func(f *os.File, _ int64) (*profile.Profile, error) {
				in, err := OpenPacked(f)
				if err != nil {
					return nil, err
				}
				return Read(in, in.Size())
			})
		})
	}
}

func benchmarkRead(b *testing.B, as func(io.Writer, *profile.Profile) error, read func(*os.File, int64) (*profile.Profile, error)) {
	path, size := write(b, as)
	n := len(hour().Samples)
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	b.ReportAllocs()
	for b.Loop() {
		p, err := read(f, size)
		if err != nil || len(p.Samples) != n {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size)/float64(n), "bytes/sample")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/sample")
}

// BenchmarkStreamSample measures one more sample of a known stack during recording.
func BenchmarkStreamSample(b *testing.B) {
	p := hour()
	out := &file{b: make([]byte, 0, 64<<20)}
	s := NewStream(out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Add(p.Samples[i%100_000]); err != nil {
			b.Fatal(err)
		}
		if i++; i%1000 == 0 {
			if err := s.Flush(); err != nil {
				b.Fatal(err)
			}
			if s.size > 60<<20 {
				s.next()
				s.base, out.b = 0, out.b[:0]
			}
		}
	}
}
