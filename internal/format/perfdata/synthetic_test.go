package perfdata

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// words concatenates numbers, uint64, uint32, uint16, and text as it is.
func words(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch v := p.(type) {
		case uint64:
			b = le.AppendUint64(b, v)
		case int:
			b = le.AppendUint64(b, uint64(v))
		case uint32:
			b = le.AppendUint32(b, v)
		case uint16:
			b = le.AppendUint16(b, v)
		case string:
			b = append(b, v...)
		case []byte:
			b = append(b, v...)
		default:
			panic(fmt.Sprintf("%T", p))
		}
	}
	return b
}

func rec(typ uint32, misc uint16, parts ...any) []byte {
	body := words(parts...)
	return append(words(typ, misc, uint16(len(body)+recordHeader)), body...)
}

// padded returns text with zeros up to a multiple of 8.
func padded(text string) string { return text + strings.Repeat("\x00", 8-len(text)%8) }

const usual = sampleIP | sampleTID | sampleTime | samplePeriod | sampleCallchain

// attribute returns a perf_event_attr.
func attribute(typ uint32, config, sampleType, flags uint64) []byte {
	b := make([]byte, 128)
	le.PutUint32(b, typ)
	le.PutUint32(b[4:], 128)
	for at, v := range map[int]uint64{8: config, 16: 99, 24: sampleType, 40: flags} {
		le.PutUint64(b[at:], v)
	}
	return b
}

// inPipe concatenates records as perf writes them into a pipe.
func inPipe(parts ...[]byte) []byte {
	return append(words(magic, pipeHeader), bytes.Join(parts, nil)...)
}

// inFile does so as perf writes a file, with features by their bit.
func inFile(attr []byte, features map[int][]byte, parts ...[]byte) []byte {
	data := bytes.Join(parts, nil)
	at := uint64(fileHeader)
	attrs := words(attr, 0, 0)
	b := words(magic, fileHeader, len(attrs), at, len(attrs), at+uint64(len(attrs)), len(data), 0, 0)
	var flags [32]byte
	var table, content []byte
	begin := at + uint64(len(attrs)+len(data)+16*len(features))
	for bit := range numFeatures {
		f, ok := features[bit]
		if !ok {
			continue
		}
		flags[bit/8] |= 1 << (bit % 8)
		table = append(table, words(begin+uint64(len(content)), len(f))...)
		content = append(content, f...)
	}
	return bytes.Join([][]byte{b, flags[:], attrs, data, table, content}, nil)
}

func call(pid, tid uint32, at, period uint64, chain ...uint64) []byte {
	list := words(len(chain))
	for _, pc := range chain {
		list = append(list, words(pc)...)
	}
	return rec(recordSample, modeUser, chain[len(chain)-1], pid, tid, at, period, list)
}

// side returns the trailer of a record that is not a sample.
func side(pid, tid uint32, at uint64) []byte { return words(pid, tid, at) }

func comm(pid, tid uint32, at uint64, name string, exec bool) []byte {
	misc := uint16(0)
	if exec {
		misc = miscCommExec
	}
	return rec(recordComm, misc, pid, tid, padded(name), side(pid, tid, at))
}

func mapping(pid uint32, at, start, size uint64, path string) []byte {
	return rec(recordMmap2, modeUser, pid, pid, start, size, 0x1000, uint32(1), uint32(2), 77, 0, uint32(5), uint32(2), padded(path), side(pid, pid, at))
}

func fork(pid, parent, tid, ptid uint32, at uint64) []byte {
	return rec(recordFork, 0, pid, parent, tid, ptid, at, side(pid, tid, at))
}

var round = rec(recordFinishedRound, 0)

func parsed(t *testing.T, data []byte) *profile.Profile {
	t.Helper()
	p, err := Read(bytes.NewReader(data), int64(len(data)), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lines returns a profile's samples as text.
func lines(p *profile.Profile) []string {
	var out []string
	for _, s := range p.Samples {
		th := p.Threads[s.Thread]
		line := fmt.Sprintf("%s %s %d/%d %d %d", p.Events[s.Event].Name, th.Name, th.PID, th.TID, s.Time, s.Weight)
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			f := p.Frames[p.Nodes[n].Frame]
			line += " " + p.Funcs[f.Func].Name
		}
		out = append(out, line)
	}
	return out
}

const all = flagSampleIDAll

// story returns a recording in which numbers of processes are reused, and records of two CPUs are
// not in order.
func story() [][]byte {
	return [][]byte{
		comm(10, 10, 0, "one", true), mapping(10, 0, 0x10000, 0x1000, "/nowhere/one"),
		call(10, 10, 300, 7, contextUser, 0x10010, 0x10020),
		comm(10, 11, 250, "second", false),
		call(10, 11, 310, 7, contextKernel, 0xffffffff81000010, contextUser, 0x10010),
		round,
		fork(20, 10, 20, 10, 200), call(20, 20, 260, 7, contextUser, 0x10030),
		comm(20, 20, 270, "other", true), mapping(20, 270, 0x10000, 0x1000, "/nowhere/other"),
		call(20, 20, 280, 7, contextUser, 0x10030, 0x99999),
		round, round,
		rec(recordLost, 0, 1, 42, side(10, 10, 400)),
		rec(recordExit, 0, uint32(20), uint32(10), uint32(20), uint32(10), 410, side(20, 20, 410)),
		fork(20, 10, 20, 11, 420), call(20, 20, 430, 7, contextUser, 0x10010),
	}
}

var storyTold = []string{
	"task-clock one 20/20 0 7 one+0x1030",
	"task-clock other 20/20 20 7 other+0x1030 [unknown]",
	"task-clock one 10/10 40 7 one+0x1010 one+0x101f",
	"task-clock second 10/11 50 7 [kernel]+0xffffffff81000010 one+0x1010",
	"task-clock second 20/20 170 7 one+0x1010",
}

func TestStory(t *testing.T) {
	attr := attribute(1, 1, usual, all)
	packed := func() []byte {
		var out bytes.Buffer
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		var parts [][]byte
		for _, r := range story() {
			if le.Uint32(r) == recordFinishedRound {
				parts = append(parts, r)
				continue
			}
			// A record may begin in one packet and end in the next.
			for _, piece := range [][]byte{r[:5], r[5:]} {
				out.Reset()
				z.Write(piece)
				z.Flush()
				parts = append(parts, rec(recordCompressed, 0, slices.Clone(out.Bytes())))
			}
		}
		return inFile(attr, nil, parts...)
	}
	for name, data := range map[string][]byte{
		"a file": inFile(attr, map[int][]byte{featureHostname: words(uint32(8), "a\x00\x00\x00\x00\x00\x00\x00")}, story()...),
		"a pipe": inPipe(rec(recordHeaderAttr, 0, attr, 1), bytes.Join(story(), nil)),
		"packed": packed(),
	} {
		t.Run(name, func(t *testing.T) {
			p := parsed(t, data)
			if got := lines(p); !slices.Equal(got, storyTold) {
				t.Errorf("\n got %q\nwant %q", got, storyTold)
			}
			if p.Losses.Lost != 42 || len(p.Processes) != 4 {
				t.Errorf("%d lost, processes %+v", p.Losses.Lost, p.Processes)
			}
			if name == "a file" && p.Meta.Host != "a" {
				t.Errorf("host %q", p.Meta.Host)
			}
		})
	}
}

func TestEventsByTheirNumbers(t *testing.T) {
	with := uint64(usual | sampleIdentifier)
	sample := func(id, at uint64) []byte {
		return rec(recordSample, modeUser, id, 0x10, uint32(1), uint32(1), at, 5, 0)
	}
	p := parsed(t, inPipe(
		rec(recordHeaderAttr, 0, attribute(0, 0, with, all), 101, 102), rec(recordHeaderAttr, 0, attribute(1, 2, with, all), 201),
		rec(recordHeaderAttr, 0, attribute(1, 9, with, all), 301),
		rec(recordEventUpdate, 0, 2, 201, padded("faults")),
		sample(201, 3), sample(102, 2), sample(101, 1)))
	want := []string{"cycles [unknown] 1/1 0 5 [unknown]", "cycles [unknown] 1/1 1 5 [unknown]", "faults [unknown] 1/1 2 5 [unknown]"}
	if got := lines(p); !slices.Equal(got, want) || len(p.Events) != 2 {
		t.Errorf("%q, events %v", got, p.Events)
	}
}

// TestAllFields: fields before those that matter are skipped.
func TestAllFields(t *testing.T) {
	types := uint64(usual | sampleAddr | sampleRead | sampleID | sampleCPU | sampleStreamID | sampleRaw | sampleBranch)
	attr := attribute(0, 0, types, all)
	le.PutUint64(attr[32:], readEnabled|readRunning|readID|readGroup|readLost)
	le.PutUint64(attr[72:], branchHardwareIndex)
	p := parsed(t, inFile(attr, nil, rec(recordSample, modeUser, 0x10, uint32(3), uint32(4), 9, 0xadd, 1, 2, 3, 77,
		2, 11, 12, 1, 2, 3, 4, 5, 6, 3, contextUser, 0x10, 0x20, uint32(4), "rawr", 1, 0, 1, 2, 3)))
	if got := lines(p); !slices.Equal(got, []string{"cycles [unknown] 3/4 0 77 [unknown] [unknown]"}) {
		t.Errorf("%q", got)
	}
}

func TestCutOff(t *testing.T) {
	whole := inFile(attribute(1, 1, usual, all), map[int][]byte{featureCmdline: words(uint32(1), uint32(8), "perf\x00\x00\x00\x00")}, story()...)
	for n := range whole {
		p, err := Read(bytes.NewReader(whole[:n]), int64(n), time.Time{})
		switch {
		case err != nil && strings.Contains(err.Error(), "\n"):
			t.Fatalf("%q", err)
		case err == nil && n < len(whole)-24 && len(p.Samples) > len(storyTold):
			t.Fatalf("cut to %d bytes: %d samples", n, len(p.Samples))
		case err == nil && n < fileHeader:
			t.Fatalf("cut to %d bytes, and read", n)
		case err == nil && len(p.Samples) < len(storyTold) && !strings.Contains(strings.Join(p.Meta.Notes, ""), "cut off"):
			t.Fatalf("cut to %d bytes: %d samples and notes %q", n, len(p.Samples), p.Meta.Notes)
		}
	}
}

func TestRefused(t *testing.T) {
	attr := attribute(1, 1, usual, all)
	for name, data := range map[string][]byte{
		"big-endian":           append([]byte(magicSwapped), make([]byte, 200)...),
		"no events":            inPipe(round),
		"a small record":       inFile(attr, nil, words(uint32(9), uint16(0), uint16(3))),
		"a small sample":       inFile(attr, nil, rec(recordSample, 0, 1)),
		"a chain without end":  inFile(attr, nil, rec(recordSample, 0, 1, uint32(1), uint32(1), 1, 1, 1<<61)),
		"a directory":          inFile(attr, map[int][]byte{featureDirFormat: words(1)}),
		"not what was packed":  inFile(attr, nil, rec(recordCompressed, 0, "what is this?")),
		"endless trace data":   inFile(attr, nil, rec(recordAuxtrace, 0, uint64(1)<<60)),
		"a wrong header":       words(magic, fileHeader, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0),
		"an attr beyond it":    words(magic, fileHeader, 144, 1<<40, 144, 104, 0, 0, 0, 0, 0, 0, 0),
		"build ids of no size": inFile(attr, map[int][]byte{featureBuildID: words(0)}),
	} {
		_, err := Read(bytes.NewReader(data), int64(len(data)), time.Time{})
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "read perf.data: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(bytes.NewReader([]byte(magic)), 8, time.Time{}); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
}

// TestKeptKernel: the recorded kernel was at another address than when perf kept its symbols; its
// modules did not move with it.
func TestKeptKernel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kallsyms")
	text := "ffffffff81000000 T _text\nffffffff81000100 T do_it\nffffffff81000200 T after.isra.0\nffffffff81000300 T _etext\nffffffffc0000100 t in_module\t[ext4]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for moved, want := range map[uint64][]string{
		0:         {"do_it/[kernel]", "after/[kernel]", "in_module/[ext4]"},
		0x3000000: {"do_it/[kernel]", "after/[kernel]", "[ext4]+0xffffffffc0000110/[ext4]"},
	} {
		k := kernelNames{chosen: true}
		k.mapped(target.Mapping{Path: kernelImage + "_text", Offset: 0xffffffff81000000 + moved})
		k.mapped(target.Mapping{Path: "/lib/modules/6/ext4.ko.xz", Start: 0xffffffffc0000000, End: 0xffffffffc0001000})
		k.load(file)
		for i, pc := range []uint64{0xffffffff81000110 + moved, 0xffffffff81000200 + moved, 0xffffffffc0000110} {
			fr := k.resolve(walk.Frame{PC: pc, Kind: walk.KindKernel}, nil)[0]
			if got := fr.Function + "/" + fr.Module; got != want[i] {
				t.Errorf("moved by %#x: %s, want %s", moved, got, want[i])
			}
		}
	}
}

// TestManyWaiting: records that no round ends are passed on in the order of time too, and do not
// accumulate.
func TestManyWaiting(t *testing.T) {
	var q queue
	last, n := uint64(0), 0
	take := func(x *queued) error {
		if x.time < last {
			t.Fatalf("%d after %d", x.time, last)
		}
		last = x.time
		n++
		return nil
	}
	body := make([]byte, 60000)
	for i := range 5000 {
		q.put(uint64(i^1), record{body: body}, nil)
		if err := q.crowded(take); err != nil {
			t.Fatal(err)
		}
		if q.bytes > maxQueued {
			t.Fatalf("%d bytes wait", q.bytes)
		}
	}
	if err := q.rest(take); err != nil || n != 5000 {
		t.Errorf("%v, %d given", err, n)
	}
}

func FuzzRead(f *testing.F) {
	attr := attribute(1, 1, usual, all)
	f.Add(inFile(attr, map[int][]byte{featureCmdline: words(uint32(1), uint32(8), "perf\x00\x00\x00\x00"), featureBuildID: rec(0, 0, uint32(1), make([]byte, 24), padded("/x"))}, story()...))
	f.Add(inPipe(rec(recordHeaderAttr, 0, attr, 1), bytes.Join(story(), nil)))
	copied := attribute(1, 0, sampleIP|sampleTID|sampleTime|sampleRegsUser|sampleStackUser, all)
	le.PutUint64(copied[80:], 0xff0fff)
	f.Add(inPipe(rec(recordHeaderAttr, 0, copied, 1), mapping(1, 0, 0x1000, 0x1000, "/usr/bin/true"),
		rec(recordSample, modeUser, 0x1010, uint32(1), uint32(1), 5, abi64, 1, 2, 3, 4, 5, 6, 7, 0x7000, 0x1010, 9, 10, 11, 1, 2, 3, 4, 5, 6, 7, 8, 16, 0x1020, 0x1030, 16)))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(bytes.NewReader(data), int64(len(data)), time.Time{})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
