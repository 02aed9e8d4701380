package jfr

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// journal is an Output that records each change of the file.
type journal struct {
	file
	changes []change
	named   int // how many changes there were when the file got its name
}

type change struct {
	at   int64
	data []byte // nil: the file is cut off there
}

func (j *journal) WriteAt(p []byte, off int64) (int, error) {
	j.changes = append(j.changes, change{off, bytes.Clone(p)})
	return j.file.WriteAt(p, off)
}

func (j *journal) Truncate(size int64) error {
	j.changes = append(j.changes, change{at: size})
	return j.file.Truncate(size)
}

// form is a format in which a recording is written, and how other programs unpack it.
type form struct {
	name   string
	begin  newStream
	unpack func(t testing.TB, name string, b []byte) []byte
	read   func(b []byte) (*profile.Profile, error)
	torn   tornFiles
}

// tornFiles visits every file that a recording of n samples in a form leaves if it is ended at any
// time from its first complete step on.
type tornFiles func(t testing.TB, f *form, n, stride int, visit func(name string, b []byte))

var (
	plainForm   = form{"plain", NewStream, func(_ testing.TB, _ string, b []byte) []byte { return b }, parse, tornWithinPages}
	packedForms = []form{{"gzip", NewPackedStream, gunzip, parsePacked, tornAtEnd}, {"zstd", NewZstdStream, unzstandard, parsePacked, tornWithinPages}}
	allForms    = append([]form{plainForm}, packedForms...)
)

// inSteps returns the changes that a recording of n samples makes to its file, in steps of 20
// samples and chunks that are full after some of them.
func inSteps(t testing.TB, begin newStream, n int) (*profile.Profile, *journal) {
	t.Helper()
	p := part(profiletest.Java(), n)
	out := &journal{}
	s := begin(out, whole{p}, func() Info { return Info{&p.Meta, p.Events, p.Losses} })
	s.MaxChunk = 23_000
	for i, sample := range p.Samples {
		if i%20 == 0 {
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				out.named = len(out.changes)
			}
		}
		if err := s.Add(sample); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Finish(p); err != nil {
		t.Fatal(err)
	}
	if s.base == 0 {
		t.Fatal("there is one chunk only")
	}
	return p, out
}

// tornWithinPages is for files that grow by pages. A write of up to a page that does not cross one
// cannot be torn by a kill: it is done or not. Any other is torn anywhere.
func tornWithinPages(t testing.TB, form *form, n, stride int, visit func(name string, b []byte)) {
	t.Helper()
	_, j := inSteps(t, form.begin, n)
	var f file
	for i, c := range j.changes {
		if c.data == nil {
			if i < len(j.changes)-1 {
				t.Fatal("the file was made shorter before its end")
			}
			f.Truncate(c.at)
			visit(fmt.Sprintf("%04d", i), f.b)
			return
		}
		whole := c.at/pageSize == (c.at+int64(len(c.data))-1)/pageSize
		if i >= j.named && int(c.at)+len(c.data) > len(f.b) && (len(c.data) != pageSize || !whole || int(c.at) != len(f.b)) {
			t.Fatalf("change %d, %d bytes at %d, makes a file of %d bytes longer by more or less than a page", i, len(c.data), c.at, len(f.b))
		}
		if !whole && i >= j.named {
			before := bytes.Clone(f.b)
			for cut := stride; cut < len(c.data); cut += stride {
				copy(f.b[c.at:], c.data[:cut])
				visit(fmt.Sprintf("%04d-%05d", i, cut), f.b)
			}
			f.b = before
		}
		if _, err := f.WriteAt(c.data, c.at); err != nil {
			t.Fatal(err)
		}
		if i+1 >= j.named {
			visit(fmt.Sprintf("%04d", i), f.b)
		}
	}
}

// Whenever candid is ended the file is complete, both as it is and unpacked by others, without a
// note that something is missing, and no sample is lost later.
func TestEndedAnywhere(t *testing.T) {
	for _, f := range allForms {
		t.Run(f.name, func(t *testing.T) { endedAnywhere(t, &f) })
	}
}

func endedAnywhere(t *testing.T, f *form) {
	const n = 200
	p := part(profiletest.Java(), n)
	files := 0
	last := map[string]int{}
	check := func(name, how string, got *profile.Profile, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s, %s: %v", name, how, err)
		}
		k := len(got.Samples)
		if k < last[how] || k%20 != 0 || len(got.Meta.Notes) != len(p.Meta.Notes) {
			t.Fatalf("%s, %s: %d samples after %d, notes %q", name, how, k, last[how], got.Meta.Notes)
		}
		if k > last[how] {
			a, b := counts(got), counts(part(p, k))
			for m, c := range b {
				if a[m] != c {
					t.Fatalf("%s, %s: %s: %v, want %v", name, how, m, a[m], c)
				}
			}
		}
		last[how] = k
	}
	stride := 509
	if fixture.Full(t) {
		stride = 211
	}
	f.torn(t, f, n, stride, func(name string, b []byte) {
		files++
		got, err := f.read(b)
		check(name, "as it is", got, err)
		got, err = parse(f.unpack(t, name, b))
		check(name, "unpacked", got, err)
		if last["as it is"] != last["unpacked"] {
			t.Fatalf("%s: %v samples", name, last)
		}
	})
	if last["as it is"] != n || files < 100 {
		t.Errorf("%v samples in the last of %d files", last, files)
	}
}

// A file that grows while it is read is not malformed: the header is the old one, the rest was
// written in the meantime.
func TestReadWhileItGrows(t *testing.T) {
	_, j := inSteps(t, NewStream, 200)
	var f file
	var headers [][]byte
	for _, c := range j.changes {
		f.WriteAt(c.data, c.at)
		headers = append(headers, bytes.Clone(f.b[:headerSize]))
	}
	for i, h := range headers {
		b := append(bytes.Clone(h), f.b[headerSize:]...)
		// The header is old, everything else is new.
		_, err := parse(b)
		if i+1 >= j.named && err != nil {
			t.Fatalf("with the header of change %d: %v", i, err)
		}
	}
}

// A page that is read as an event ends where its filler begins, and its type does not exist.
func TestPageAsEvent(t *testing.T) {
	if magic[0] != pageAsEvent || magic[1] != typeOfPage {
		t.Errorf("a header begins with %q", magic)
	}
	for i := range typeDefs {
		if typeDefs[i].id == typeOfPage {
			t.Errorf("%s is of the type that pages seem to have", typeDefs[i].name)
		}
	}
	if n := len(emptyPage().b); n != pageSize {
		t.Error(n)
	}
}
