package profile

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestLabels(t *testing.T) {
	b := NewBuilder()
	b.p.Events = []Event{NamedEvent("cpu", "nanoseconds", 1)}
	th := b.Thread(1, 1, "main")
	add := func(weight uint64, call string, labels ...Label) {
		b.Add(Sample{Weight: weight, Thread: th, Syscall: b.Labeled(call, labels)})
	}
	acme, size := TextLabel("tenant", "acme"), Label{Key: "size", Number: 16, Unit: "bytes"}
	add(1, "read", acme, size)
	add(2, "read", size, acme) // in another order
	add(4, "read")
	add(8, "", TextLabel("tenant", "globex"))
	add(16, "")
	p := b.Finish()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	if n := len(p.Syscalls); n != 4 || p.Samples[0].Syscall != p.Samples[1].Syscall {
		t.Errorf("%d combinations of system call and labels, want none and 3: %q %v", n, p.Syscalls, p.Labels)
	}
	var got []string
	for _, r := range p.Select(Filter{}).ByLabel() {
		got = append(got, fmt.Sprintf("%s=%s %d/%d", r.Key, r.Value(), r.Samples, r.Weight))
	}
	if want := []string{"size=16 bytes 2/3", "tenant=globex 1/8", "tenant=acme 2/3"}; !reflect.DeepEqual(got, want) {
		t.Errorf("labels are %q, want %q", got, want)
	}
	for _, row := range p.Select(Filter{}).ByState() {
		if row.Syscall == "read" && row.Count != (Count{3, 7}) {
			t.Errorf("in read are %+v, with and without labels 3 samples of 7", row)
		}
	}
	for text, want := range map[string]uint64{"tenant": 11, "tenant=^a": 3, "size=16": 3, "size=^1$": 0, "other": 0} {
		f := LabelFilter{Key: text}
		if m := regexp.MustCompile("^(.*)=(.*)$").FindStringSubmatch(text); m != nil {
			f = LabelFilter{m[1], regexp.MustCompile(m[2])}
		}
		if s := p.Select(Filter{Labels: []LabelFilter{f}}); s.Chosen.Weight != want {
			t.Errorf("%s leaves %d, want %d", text, s.Chosen.Weight, want)
		}
		sums := Summed(Apply(p, Filter{Labels: []LabelFilter{f}}))
		if w := sums.EventWeights()[0]; w != want {
			t.Errorf("%s leaves %d in sums, want %d", text, w, want)
		}
	}
}

func TestTooManyLabels(t *testing.T) {
	b := NewBuilder()
	for i := range maxCircumstances + 10 {
		if n := b.Labeled("read", []Label{{Key: "span", Number: int64(i)}}); i < 10 && int(n) != i+1 {
			t.Fatalf("the labels %d have the index %d", i, n)
		}
	}
	// Index 0 is none; from then on everything is without labels, and has no room for a system call.
	if n := b.Unlabeled(); n != 11 || len(b.p.Syscalls) != maxCircumstances {
		t.Errorf("%d samples lost their labels, of %d combinations", n, len(b.p.Syscalls))
	}
	if n := b.Labeled("read", []Label{{Key: "span", Number: 7}}); n != 8 {
		t.Errorf("known labels have the index %d, want 8", n)
	}
}

func TestLongLabels(t *testing.T) {
	b := NewBuilder()
	long := strings.Repeat("ä", maxLabelText)
	i := b.Labeled("", []Label{TextLabel(long, long)})
	if l := b.p.Labels[i][0]; len(l.Key) > maxLabelText || len(l.Text) > maxLabelText || !strings.HasPrefix(long, l.Text) {
		t.Errorf("of a label of %d bytes, %d and %d are kept", len(long), len(l.Key), len(l.Text))
	}
}

func FuzzParseLabels(f *testing.F) {
	f.Add(FormatLabels([]Label{TextLabel("a b", "c\"\n=d"), {Key: "n", Number: -5, Unit: "bytes"}, {Key: ""}}))
	f.Add(`"a"="b" "c"=`)
	f.Add(`"a"=1`)
	f.Fuzz(func(t *testing.T, text string) {
		labels := ParseLabels(text)
		again := ParseLabels(FormatLabels(labels))
		if len(labels) > 0 && !reflect.DeepEqual(labels, again) {
			t.Errorf("%q is %+v, written and read again %+v", text, labels, again)
		}
	})
}
