package format

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/candid-profiler/candid/internal/format/html"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

func TestForPath(t *testing.T) {
	for _, c := range []struct{ path, name, want string }{
		{"a.pb.gz", "", "pprof"}, {"a/b.pprof", "", "pprof"}, {"x.FOLDED", "", "collapsed"}, {"x.html", "", "html"}, {"x.txt", "", "text"},
		{"x.json", "", "json"}, {"x.jfr", "", "jfr"}, {"x.jfr.gz", "", "jfr.gz"}, {"x.jfr.zst", "", "jfr.zst"}, {"-", "jfr.zst", "jfr.zst"}, {"x.speedscope.json", "", "speedscope"}, {"x.json", "html", "html"}, {"-", "collapsed", "collapsed"}, {"-", "pb.gz", "pprof"},
	} {
		if got, err := ForPath(c.path, c.name); got != c.want || err != nil {
			t.Errorf("ForPath(%q, %q) = %q, %v, want %q", c.path, c.name, got, err, c.want)
		}
	}
	for _, c := range []struct{ path, name string }{{"x.xyz", ""}, {"noextension", ""}, {"-", ""}, {"x.html", "nope"}} {
		_, err := ForPath(c.path, c.name)
		if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "pprof") || strings.Contains(err.Error(), "\n") {
			t.Errorf("ForPath(%q, %q): %v", c.path, c.name, err)
		}
	}
}

func written(t *testing.T, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, name, profiletest.Java(), Options{Threads: true, Kinds: true}); errors.Is(err, html.ErrNotBuilt) {
		t.Skip(err)
	} else if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b.Bytes()
}

func TestWritesAllAndReadsBack(t *testing.T) {
	for _, e := range entries {
		if e.write == nil {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			data := written(t, e.name)
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := Read(path)
			switch {
			case !e.reads:
				if err == nil || strings.Contains(err.Error(), "\n") {
					t.Errorf("reading %s: %v", e.name, err)
				}
			case err != nil:
				t.Error(err)
			case len(p.Samples) != 10000 || len(p.Threads) != 4:
				t.Errorf("%d samples, %d threads", len(p.Samples), len(p.Threads))
			}
		})
	}
}

// TestEveryWay: a profile that is written in one format that can be read, and from there in
// another, still has every sample, with its stack, and every thread.
func TestEveryWay(t *testing.T) {
	counts := func(p *profile.Profile) map[string]int {
		n := map[string]int{}
		for _, s := range p.Samples {
			key := fmt.Sprintf("%d %v", p.Threads[s.Thread].TID, s.End)
			for at := s.Node; at != profile.RootNode; at = p.Nodes[at].Parent {
				key += ";" + p.Funcs[p.Frames[p.Nodes[at].Frame].Func].Name
			}
			n[key]++
		}
		return n
	}
	want := counts(profiletest.Java())
	for _, from := range entries {
		if !from.reads || from.write == nil {
			continue
		}
		first, err := Decode(bytes.NewReader(written(t, from.name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range entries {
			if to.write == nil {
				continue
			}
			var out bytes.Buffer
			err := Write(&out, to.name, first, Options{Threads: true, Kinds: true})
			if errors.Is(err, html.ErrNotBuilt) {
				continue
			} else if err != nil {
				t.Errorf("%s to %s: %v", from.name, to.name, err)
			}
			if !to.reads {
				continue
			}
			second, err := Decode(&out)
			if err != nil {
				t.Errorf("%s to %s and back: %v", from.name, to.name, err)
			} else if got := counts(second); !maps.Equal(got, want) {
				t.Errorf("%s to %s: %d different stacks, want %d", from.name, to.name, len(got), len(want))
			}
		}
	}
}

func TestStandardInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, written(t, "collapsed"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	os.Stdin = f
	if p, err := Read("-"); err != nil || len(p.Samples) != 10000 {
		t.Error(err)
	}
	if _, err := Read("-"); !errors.Is(err, ErrNotRead) || !strings.Contains(err.Error(), "standard input") {
		t.Error(err)
	}
}

func TestUnpackedAndPackedAlike(t *testing.T) {
	z, err := gzip.NewReader(bytes.NewReader(written(t, "pprof")))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write(written(t, "collapsed"))
	w.Close()
	for name, data := range map[string][]byte{
		"pprof": raw, "collapsed.gz": packed.Bytes(), "collapsed.zst": zstandard(t, written(t, "collapsed")), "pprof.zst": zstandard(t, raw),
		"jfr.zst by zstd": zstandard(t, written(t, "jfr")), "jfr.zst": written(t, "jfr.zst"), "jfr.gz": written(t, "jfr.gz"),
		"after a frame to be skipped": append([]byte{0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}, zstandard(t, written(t, "speedscope"))...),
	} {
		if p, err := Decode(bytes.NewReader(data)); err != nil || len(p.Samples) != 10000 {
			t.Errorf("%s: %v", name, err)
		}
		file := filepath.Join(t.TempDir(), "any name")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := Read(file); err != nil || len(p.Samples) != 10000 {
			t.Errorf("%s in a file: %v", name, err)
		}
	}
}

// zstandard compresses as the zstd program does.
func zstandard(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return z.EncodeAll(b, nil)
}

// Damaged zstd data is an error of one line, whatever the damage.
func TestZstdDamaged(t *testing.T) {
	data := zstandard(t, written(t, "pprof"))
	for _, n := range []int{4, 5, 9, 100, len(data) / 2, len(data) - 1} {
		_, err := Decode(bytes.NewReader(data[:n]))
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("cut to %d of %d bytes: %v", n, len(data), err)
		}
	}
	wrong := bytes.Clone(data)
	wrong[len(wrong)/2] ^= 0x55
	if _, err := Decode(bytes.NewReader(wrong)); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("damaged: %v", err)
	}
	// A window of 16 GiB, and a window as large as the content size that the frame claims.
	for name, head := range map[string][]byte{
		"a window":  {0x28, 0xb5, 0x2f, 0xfd, 0, 24 << 3, 1, 0, 0},
		"a content": {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0},
	} {
		if _, err := Decode(bytes.NewReader(head)); err == nil || !strings.Contains(err.Error(), "window") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCutOff(t *testing.T) {
	data := written(t, "pprof")
	for _, n := range []int{0, 1, 2, 9, 100, len(data) / 2, len(data) - 9, len(data) - 1} {
		_, err := Decode(bytes.NewReader(data[:n]))
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("cut to %d of %d bytes: %v", n, len(data), err)
		}
	}
}

func TestBombIsNotUnpacked(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for range 40 {
		w.Write(zeros)
	}
	w.Close()
	if _, err := decode(&b, 8<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a bomb of %d bytes: %v", b.Len(), err)
	}
}

// Data that unpacks to too much takes no more memory than the limit, whether there is room on disk
// or not.
func TestBombIsBounded(t *testing.T) {
	const limit = 64 << 20
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	w.Write([]byte{0x0a, 4, 8, 1, 16, 2}) // begins like a pprof file
	zeros := make([]byte, 1<<20)
	for range limit>>20 + 8 {
		w.Write(zeros)
	}
	w.Close()
	for dir, most := range map[string]uint64{t.TempDir(): 2 * spooledInMemory, filepath.Join(t.TempDir(), "none"): limit + spooledInMemory} {
		t.Setenv("TMPDIR", dir)
		t.Setenv("TMP", dir)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := decode(bytes.NewReader(packed.Bytes()), limit); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a bomb of %d bytes: %v", packed.Len(), err)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("a bomb took %d MiB in all, with a limit of %d MiB, expected %d at most", took>>20, limit>>20, most>>20)
		}
	}
}

func TestOtherFiles(t *testing.T) {
	for name, data := range map[string]string{"HTML": "<!DOCTYPE html>", "JSON": " {}", "empty": ""} {
		if _, err := Decode(strings.NewReader(data)); !errors.Is(err, ErrNotRead) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("a;b 3\n"))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x58\x49\x00\x00main;run 12\n\x13\x9c\x25\x61"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decode(bytes.NewReader(data), 1<<20)
		if err == nil {
			err = p.Check()
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// However samples are kept while they are read, their sums are the same.
func TestKeptAlike(t *testing.T) {
	sums := func(p *profile.Profile) (map[string]profile.Count, uint64) {
		all := map[string]profile.Count{}
		last := uint64(0)
		p.Each(func(s *profile.Sample, n uint64) {
			key := fmt.Sprintf("%d %d %v %v %v %s", p.Threads[s.Thread].TID, s.Event, s.End, s.State, s.Flags, p.Events[s.Event].Name)
			for at := s.Node; at != profile.RootNode; at = p.Nodes[at].Parent {
				key += ";" + p.Funcs[p.Frames[p.Nodes[at].Frame].Func].Name
			}
			c := all[key]
			c.Add(profile.Count{Samples: n, Weight: s.Weight})
			all[key] = c
			last = max(last, s.Time)
		})
		return all, last
	}
	inputs := map[string][]byte{"perf script": []byte("java 12/13 100.000100: 1000 cycles:\n\t4005 main+0x5 (/bin/java)\n\t4001 start+0x1 (/bin/java)\n\n" +
		"java 12/14 100.000300: 1000 cycles:\n\t4001 start+0x1 (/bin/java)\n\n")}
	for _, e := range entries {
		if e.reads && e.write != nil {
			inputs[e.name] = written(t, e.name)
		}
	}
	for name, data := range inputs {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		plain, err := Read(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, end := sums(plain)
		for _, keep := range []profile.Keep{profile.KeepPacked, profile.KeepTracks, profile.KeepSums} {
			p, left, err := Reading{Keep: keep}.Read(path)
			if err != nil || left != 0 {
				t.Fatalf("%s: %v, %d left out", name, err, left)
			}
			got, last := sums(p)
			if !maps.Equal(got, want) || len(p.Samples) != 0 || p.SampleCount() != plain.SampleCount() || p.HasTimes() != plain.HasTimes() {
				t.Errorf("%s, kept as %d: %d samples of %d, want %d of %d", name, keep, p.SampleCount(), len(got), plain.SampleCount(), len(want))
			}
			if keep != profile.KeepSums && last != end {
				t.Errorf("%s, kept as %d: the last sample is at %d, want %d", name, keep, last, end)
			}
		}
		if strings.HasPrefix(name, "jfr") {
			continue // this one knows for each sample at once whether a range of time cuts it
		}
		p, _, err := Reading{Keep: profile.KeepSums, Filter: profile.Filter{From: 1}}.Read(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, last := sums(p); last != end {
			t.Errorf("%s: the last sample of a stretch is at %d, want %d", name, last, end)
		}
	}
}

// Data from a pipe is kept in memory only up to a size, or if there is no room on disk.
func TestSpool(t *testing.T) {
	all := bytes.Repeat([]byte("a recording"), 2*spooledInMemory/11)
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		t.Setenv("TMPDIR", dir)
		t.Setenv("TMP", dir)
		for _, n := range []int{100, spooledInMemory, spooledInMemory + 1, len(all)} {
			s, err := spool(bytes.NewReader(all[:n]), MaxUnpacked, maxSpooled)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, s.size)
			if _, err := s.ReadAt(got, 0); err != nil && err != io.EOF || !bytes.Equal(got, all[:n]) {
				t.Errorf("%d bytes of %d came back, %v", len(got), n, err)
			}
			if n, err := s.ReadAt(got[:9], s.size-5); n != 5 || err != io.EOF || !bytes.Equal(got[:5], all[s.size-5:s.size]) {
				t.Errorf("%d bytes at the end of %d, %v", n, s.size, err)
			}
			if got, err := s.whole(); err != nil || !bytes.Equal(got, all[:n]) {
				t.Errorf("%d bytes of %d as one, %v", len(got), n, err)
			}
			if _, err := spool(bytes.NewReader(all[:n]), MaxUnpacked, int64(n)-1); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%d bytes where there may be one less: %v", n, err)
			}
		}
		if _, err := spool(io.MultiReader(bytes.NewReader(all), badReader{}), MaxUnpacked, maxSpooled); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a pipe that breaks: %v", err)
		}
	}
}

// Data that does not fit on disk any more is moved back to memory.
func TestSpoolDiskFillsUp(t *testing.T) {
	all := bytes.Repeat([]byte("a recording"), 2*spooledInMemory/11)
	for _, full := range []int{spooledInMemory + 1, 20<<20 + 77} {
		s := &spooled{inMemory: MaxUnpacked, most: maxSpooled}
		for at := 0; at < len(all); {
			if at >= full && s.onDisk {
				if err := s.toMemory(); err != nil { // what Write does when the file accepts no more
					t.Fatal(err)
				}
			}
			n, err := s.Write(all[at:min(at+100_001, len(all))])
			if err != nil {
				t.Fatal(err)
			}
			at += n
		}
		if got, err := s.whole(); err != nil || s.onDisk || !bytes.Equal(got, all) {
			t.Errorf("%d bytes of %d came back, %v", len(got), len(all), err)
		}
	}
}

type badReader struct{}

func (badReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
