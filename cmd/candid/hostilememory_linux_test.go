package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	wire "encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/format/protobuf"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// Numbers of types in files of package jfr.
const (
	jfrString     = 12
	jfrThread     = 14
	jfrStackTrace = 18
	jfrMethod     = 20
	jfrSymbol     = 22
)

// hostileJFR returns a recording with n constants of a type, each of which has that content.
func hostileJFR(t *testing.T, typ uint64, n int, content string) []byte {
	t.Helper()
	var small bytes.Buffer
	if err := format.Write(&small, "jfr", profiletest.Java(), format.Options{}); err != nil {
		t.Fatal(err)
	}
	// As any other profiler writes it.
	file := bytes.ReplaceAll(small.Bytes(), []byte("candid.types."), []byte("unknown.type."))
	const atSize, atCheckpoint, atMetadata, headerSize = 8, 16, 24, 68
	be := wire.BigEndian
	metadata := file[be.Uint64(file[atMetadata:]):]
	size, _ := wire.Uvarint(metadata)
	metadata = metadata[:size]
	event := []byte{1, 1, 0, 0, 0} // a checkpoint
	event = wire.AppendUvarint(event, 1)
	event = wire.AppendUvarint(event, typ)
	event = wire.AppendUvarint(event, uint64(n))
	for i := range n {
		event = append(wire.AppendUvarint(event, uint64(i+1)), content...)
	}
	out := append([]byte(nil), file[:headerSize]...)
	head := uint64(len(event) + 4) // the size in four bytes
	out = append(out, byte(head)|0x80, byte(head>>7)|0x80, byte(head>>14)|0x80, byte(head>>21))
	out = append(out, event...)
	be.PutUint64(out[atCheckpoint:], headerSize)
	be.PutUint64(out[atMetadata:], uint64(len(out)))
	out = append(out, metadata...)
	be.PutUint64(out[atSize:], uint64(len(out)))
	return out
}

// hostilePprof returns a profile of pprof's with n of what each returns.
func hostilePprof(n int, each func(m *protobuf.Message, i int)) []byte {
	var m protobuf.Message
	m.Bytes(1, nil) // a type of samples
	m.Bytes(6, nil) // a text
	m.Bytes(6, []byte("main"))
	for i := range n {
		each(&m, i)
	}
	return m
}

// inner returns a message with one number.
func inner(field int, v uint64) []byte {
	var m protobuf.Message
	m.Uint(field, v)
	return m
}

// TestFilesThatTakeMemory reads files a few bytes of which describe much: reading them takes at most
// 64 MB and eight times what they unpack to, or fails with a line that says so.
func TestFilesThatTakeMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("reads files of some megabytes")
	}
	n, formats := 400_000, []string{"collapsed"}
	if fixture.Full(t) {
		n, formats = 8_000_000, []string{"collapsed", "jfr"}
	}
	var perf strings.Builder
	for i := range n / 8 {
		fmt.Fprintf(&perf, "a %d/%d %d.1: cycles:\n\t%x f%d (a)\n\n", i, i, i, i, i)
	}
	for name, data := range map[string][]byte{
		"texts.jfr":     hostileJFR(t, jfrString, n, "\x01"),
		"symbols.jfr":   hostileJFR(t, jfrSymbol, n, "\x03\x01a"),
		"threads.jfr":   hostileJFR(t, jfrThread, n, strings.Repeat("\x00", 6)),
		"stacks.jfr":    hostileJFR(t, jfrStackTrace, n, "\x00\x00"),
		"methods.jfr":   hostileJFR(t, jfrMethod, n, strings.Repeat("\x00", 5)),
		"samples.pb":    hostilePprof(4*n, func(m *protobuf.Message, _ int) { m.Bytes(2, nil) }),
		"threads.pb":    hostilePprof(n, func(m *protobuf.Message, i int) { m.Bytes(2, nil) }),
		"mappings.pb":   hostilePprof(n, func(m *protobuf.Message, i int) { m.Bytes(3, inner(1, uint64(i))) }),
		"locations.pb":  hostilePprof(n, func(m *protobuf.Message, i int) { m.Bytes(4, inner(1, uint64(i))) }),
		"addresses.pb":  hostilePprof(n, func(m *protobuf.Message, i int) { m.Bytes(4, inner(3, uint64(i))) }),
		"functions.pb":  hostilePprof(n, func(m *protobuf.Message, i int) { m.Bytes(5, inner(1, uint64(i))) }),
		"texts.pb":      hostilePprof(4*n, func(m *protobuf.Message, _ int) { m.Bytes(6, nil) }),
		"comments.pb":   hostilePprof(4*n, func(m *protobuf.Message, _ int) { m.Uint(13, 1) }),
		"types.pb":      hostilePprof(4*n, func(m *protobuf.Message, _ int) { m.Bytes(1, nil) }),
		"one sample.pb": append(hostilePprof(1, func(m *protobuf.Message, _ int) { m.Bytes(4, inner(1, 1)) }), hugeSample(4*n)...),
		"counts.pb":     hostilePprof(64, func(m *protobuf.Message, _ int) { m.Bytes(2, inner(2, 1<<40)) }),
		"frames.speedscope.json": []byte(`{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[` +
			strings.Repeat(`{},`, n) + `{}]}}`),
		"stacks.speedscope.json": []byte(`{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{}]},"profiles":[{"type":"sampled","unit":"none","samples":[` +
			strings.Repeat(`[],`, 2*n) + `[]]}]}`),
		"deep.collapsed":  []byte(deep(n) + " 1\n"),
		"wide.collapsed":  []byte(wide(n)),
		"many.perfscript": []byte(perf.String()),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, name)
			if strings.HasSuffix(name, ".pb") {
				var packed bytes.Buffer
				z := gzip.NewWriter(&packed)
				z.Write(data)
				z.Close()
				writeFile(t, file, packed.Bytes())
			} else {
				writeFile(t, file, data)
			}
			for _, to := range formats {
				r, peak := peakOf(t, command(t, "convert", file, "-o", filepath.Join(dir, "out."+to)))
				allowed := int64(64<<10 + 8*len(data)>>10)
				t.Logf("%s: %d KiB of %d, exit code %d %s", to, peak, allowed, r.code, r.err)
				if peak > allowed {
					t.Errorf("%s: %d KiB for a file that unpacks to %d KiB, want %d at most", to, peak, len(data)>>10, allowed)
				}
				if r.code != exitOK && (strings.Count(strings.TrimSpace(r.err), "\n") > 0 || r.code != exitFailed) {
					t.Errorf("exit code %d, %q", r.code, r.err)
				}
			}
		})
	}
}

// TestFilesThatUnpackToMuch reads packed recordings whose content is a thousand and more times their
// size. They are refused before they fill the disk, and take no more memory than other files.
func TestFilesThatUnpackToMuch(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("reads files that unpack to some hundred megabytes")
	}
	large, huge := 16<<20, int64(0)
	if fixture.Full(t) {
		large, huge = 256<<20, 1280<<20
	}
	data := hostileJFR(t, jfrSymbol, 1, "\x03"+string(wire.AppendUvarint(nil, uint64(large)))+strings.Repeat("x", large))
	for _, kind := range []string{"gz", "zst"} {
		t.Run(kind, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.jfr."+kind)
			packed := packedBy(t, kind, data, huge)
			writeFile(t, file, packed)
			r, peak := peakOf(t, command(t, "report", file))
			allowed := int64(64<<10 + 8*len(data)>>10)
			t.Logf("%d bytes unpack to %d and %d zeros: %d KiB of %d, exit code %d %s", len(packed), len(data), huge, peak, allowed, r.code, r.err)
			if peak > allowed {
				t.Errorf("%d KiB of memory, want %d at most", peak, allowed)
			}
			if r.code != exitNoSamples && r.code != exitFailed || strings.Count(strings.TrimSpace(r.err), "\n") > 0 {
				t.Errorf("exit code %d, %q", r.code, r.err)
			}
			if huge > 0 && !strings.Contains(r.err, "times its size") {
				t.Errorf("%d bytes that unpack to %d are read\n%s", len(packed), huge, r.err)
			}
		})
	}
}

// packedBy packs data and as many zeros behind it.
func packedBy(t *testing.T, kind string, data []byte, zeros int64) []byte {
	t.Helper()
	var out bytes.Buffer
	z := io.WriteCloser(gzip.NewWriter(&out))
	if kind == "zst" {
		var err error
		if z, err = zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := z.Write(data)
	for piece := make([]byte, 1<<20); err == nil && zeros > 0; zeros -= int64(len(piece)) {
		_, err = z.Write(piece)
	}
	if err := cmp.Or(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestMaxMemory reads a recording that takes more than --max-memory permits.
func TestMaxMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "wide.collapsed"), filepath.Join(dir, "out.jfr")
	var b strings.Builder
	for i := range 400_000 {
		fmt.Fprintf(&b, "main;a frame with a name as long as many have, of a class in a package %d;run 1\n", i)
	}
	writeFile(t, file, []byte(b.String()))
	candid(t, "convert", file, "-o", out, "--"+maxMemory, "64M").refused(t, exitFailed, "more than 64 MiB", "--"+maxMemory)
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	ok(t, "convert", file, "-o", out, "--"+maxMemory, "1G")
	for _, bad := range []string{"1M", "much", "-1G", "9999999T", "NaN"} {
		candid(t, "report", file, "--"+maxMemory, bad).refused(t, exitUsage, maxMemory)
	}
}

func writeFile(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// hugeSample is one sample with a stack of n frames.
func hugeSample(n int) []byte {
	var sample, m protobuf.Message
	sample.Bytes(1, bytes.Repeat([]byte{1}, n))
	sample.Bytes(2, []byte{1})
	m.Bytes(2, sample)
	return m
}

// deep is a stack of n different frames, as far as a line may have them.
func deep(n int) string {
	var b strings.Builder
	for i := range min(n, 2_000_000) {
		fmt.Fprintf(&b, ";%x", i)
	}
	return b.String()[1:]
}

// wide is n stacks of one frame each.
func wide(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%x 1\n", i)
	}
	return b.String()
}
