package snapshot

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"
)

// recorded are the files of testdata; TestRecord makes them.
func recordedFiles(t testing.TB) map[string][]*Snapshot {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.snapshot")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no snapshots in testdata: %v", err)
	}
	out := map[string][]*Snapshot{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if out[p], err = Decode(b); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
	}
	return out
}

// Every snapshot has the frames that it had when it was taken, whichever system this is.
func TestReplay(t *testing.T) {
	for path, list := range recordedFiles(t) {
		for _, s := range list {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".snapshot")+"/"+s.Note, func(t *testing.T) {
				t.Parallel()
				got, err := s.Replay()
				if err != nil {
					t.Fatal(err)
				}
				if d := s.Want.Diff(got); d != "" {
					t.Errorf("%s (%s): the stack is another one:\n%s", s.Title, s.Note, d)
				}
			})
		}
	}
}

// A snapshot notices if its stack holds something else, or the memory does.
func TestReplayNotices(t *testing.T) {
	for path, list := range recordedFiles(t) {
		s := list[0]
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			stack := s.Capture.Stack
			s.Capture.Stack = make([]byte, len(stack))
			if got, err := s.Replay(); err == nil && s.Want.Diff(got) == "" {
				t.Error("the frames are the same without the stack")
			}
			s.Capture.Stack = stack
			for i := range s.Memory {
				clear(s.Memory[i].Bytes)
			}
			for i := range s.Files {
				s.Files[i].Pieces = nil
			}
			if got, err := s.Replay(); err == nil && s.Want.Diff(got) == "" {
				t.Error("the frames are the same without memory and files")
			}
		})
	}
}

// What is read is what was written.
func TestEncode(t *testing.T) {
	for path, list := range recordedFiles(t) {
		b, err := Encode(list...)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if a, b := fmt.Sprintf("%+v", list[i]), fmt.Sprintf("%+v", again[i]); a != b {
				t.Errorf("%s: snapshot %d is another one", path, i)
			}
		}
	}
}

// private are texts by which a machine or a user would be known.
var private = regexp.MustCompile(`/(root|home|work)/[\w.-]|/tmp/[\w.-]+/|(^|\x00)(PATH|HOME|USER|LOGNAME|HOSTNAME|PWD)=|(?i)[A-Z]:\\+users\\`)

// Files of testdata hold no paths, names of machines or users, or environment: of the memory that a
// JVM has, only what was read.
func TestPrivate(t *testing.T) {
	host, _ := os.Hostname()
	for path, list := range recordedFiles(t) {
		for _, s := range list {
			check := func(what string, b []byte) {
				for _, text := range [][]byte{b, narrow(b, 0), narrow(b, 1)} {
					if m := private.FindIndex(text); m != nil {
						t.Errorf("%s (%s): %s holds %q", path, s.Note, what, text[max(m[0]-16, 0):min(m[1]+48, len(text))])
					}
					if len(host) > 5 && bytes.Contains(text, []byte(host)) {
						t.Errorf("%s (%s): %s holds the name of the machine", path, s.Note, what)
					}
				}
			}
			check("the stack", s.Capture.Stack)
			check("the second stack", s.Capture.Other)
			for _, r := range s.Capture.Regions {
				check("a region", r.Bytes)
			}
			for _, p := range s.Memory {
				check("memory", p.Bytes)
			}
			for _, f := range s.Files {
				for _, p := range f.Pieces {
					check(f.Name, p.Bytes)
				}
			}
		}
	}
}

// narrow returns the text in UTF-16 as bytes.
func narrow(b []byte, from int) []byte {
	var u []uint16
	for i := from; i+1 < len(b); i += 2 {
		u = append(u, uint16(b[i])|uint16(b[i+1])<<8)
	}
	return []byte(string(utf16.Decode(u)))
}

// A damaged file is an error.
func TestDamaged(t *testing.T) {
	b, err := Encode(&Snapshot{Title: "x", OS: "linux"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(b); err != nil {
		t.Fatal(err)
	}
	for n := range b {
		if _, err := Decode(b[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are a snapshot", n, len(b))
		}
	}
	b[7]++
	if _, err := Decode(b); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("of another version: %v", err)
	}
}

// FuzzReplay replays what is read from any bytes.
func FuzzReplay(f *testing.F) {
	for _, list := range recordedFiles(f) {
		w := writer{}
		w.length(1, 1)
		list[0].code(&w)
		f.Add(w.b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4<<20 {
			return
		}
		list, err := decode(b)
		if err != nil {
			return
		}
		for _, s := range list {
			_, _ = s.Replay()
			_ = s.Want.String()
		}
	})
}

// BenchmarkReplay replays one snapshot of a JVM.
func BenchmarkReplay(b *testing.B) {
	list := recordedFiles(b)["testdata/jdk17.snapshot"]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := list[0].Replay(); err != nil {
			b.Fatal(err)
		}
	}
}
