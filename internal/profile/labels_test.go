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
		i, _ := b.Labeled(call, labels)
		b.Add(Sample{Weight: weight, Thread: th, Syscall: i})
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
	lost := 0
	for i := range maxCircumstances + 10 {
		n, whole := b.Labeled("read", []Label{{Key: "span", Number: int64(i)}})
		switch {
		case whole && i < maxLabeled-1: // index 0 is none
			if int(n) != i+1 {
				t.Fatalf("the labels %d have the index %d", i, n)
			}
		case whole || b.p.Syscalls[n] != "read" || b.p.labels(int(n)) != nil:
			t.Fatalf("the labels %d have the index %d: %v of %q, whole %v", i, n, b.p.labels(int(n)), b.p.Syscalls[n], whole)
		default:
			lost++
		}
	}
	if want := maxCircumstances + 10 - (maxLabeled - 1); lost != want || len(b.p.Syscalls) != maxLabeled+1 {
		t.Errorf("%d samples lost their labels, want %d, of %d combinations", lost, want, len(b.p.Syscalls))
	}
	if n, whole := b.Labeled("read", []Label{{Key: "span", Number: 7}}); n != 8 || !whole {
		t.Errorf("known labels have the index %d, want 8", n)
	}
	// There is room for as many system calls as a profile may have.
	for i := range maxSyscalls - 1 {
		name := fmt.Sprint("call", i)
		if n := b.Syscall(name); b.p.Syscalls[n] != name {
			t.Fatalf("%s has the index %d", name, n)
		}
	}
	if n := b.Syscall("further"); n != 0 || len(b.p.Syscalls) != maxCircumstances {
		t.Errorf("a system call too many has the index %d of %d", n, len(b.p.Syscalls))
	}
}

// People see only some of many keys.
func TestManyKeys(t *testing.T) {
	b := NewBuilder()
	for i := range 30 {
		b.Labeled("", []Label{TextLabel(fmt.Sprintf("key%02d", i), "x")})
	}
	if keys := b.p.SomeLabelKeys(); len(keys) != 21 || keys[19] != "key19" || keys[20] != "and 10 more" {
		t.Errorf("the keys are %q", keys)
	}
}

func TestLongLabels(t *testing.T) {
	b := NewBuilder()
	for _, long := range []string{strings.Repeat("ä", MaxLabelText), strings.Repeat("\x01", MaxLabelText)} {
		i, whole := b.Labeled("", []Label{TextLabel("key", long)})
		if l := b.p.Labels[i][0]; len(l.Text) > MaxLabelText || !strings.HasPrefix(PlainText(long), l.Text) || !whole {
			t.Errorf("of a label of %d bytes, %d are kept", len(long), len(l.Text))
		}
	}
	// Labels are kept as long as they fit together.
	var labels []Label
	for i := range 8 {
		labels = append(labels, TextLabel(fmt.Sprint("key", i), strings.Repeat("x", MaxLabelText)))
	}
	i, whole := b.Labeled("read", append(labels, TextLabel("short", "y")))
	kept := b.p.Labels[i]
	if len(kept) != 4 || whole || kept[3] != TextLabel("short", "y") || b.p.Syscalls[i] != "read" {
		t.Errorf("%d labels of %d are kept, whole %v", len(kept), len(labels)+1, whole)
	}
	if text := FormatLabels(kept); len(text) > MaxLabelBytes || !reflect.DeepEqual(ParseLabels(text), kept) {
		t.Errorf("of %d labels in %d bytes, %d are read again", len(kept), len(text), len(ParseLabels(text)))
	}
}

func TestLabelTwice(t *testing.T) {
	b := NewBuilder()
	b.p.Events = []Event{NamedEvent("cpu", "nanoseconds", 1)}
	acme := TextLabel("tenant", "acme")
	twice := []Label{acme, TextLabel("tenant", "b"), acme}
	if got := ParseLabels(FormatLabels(twice)); len(got) != 2 {
		t.Errorf("a label twice in a file: %v", got)
	}
	i, _ := b.Labeled("", twice)
	b.Add(Sample{Weight: 1, Thread: b.Thread(1, 1, "main"), Syscall: i})
	for _, row := range b.Finish().Select(Filter{}).ByLabel() {
		if row.Count != (Count{1, 1}) {
			t.Errorf("one sample counts %+v", row)
		}
	}
}

func FuzzParseLabels(f *testing.F) {
	f.Add(FormatLabels([]Label{TextLabel("a b", "c\"\n=d"), {Key: "n", Number: -5, Unit: "bytes"}, {Key: ""}}))
	f.Add(`"a"="b" "c"=`)
	f.Add(`"a"=1`)
	f.Add("\"\\x01\"=\"b\" \"\\x01\"=\"b\" ")
	f.Fuzz(func(t *testing.T, text string) {
		labels := ParseLabels(text)
		again := ParseLabels(FormatLabels(labels))
		if len(labels) > 0 && !reflect.DeepEqual(labels, again) {
			t.Errorf("%q is %+v, written and read again %+v", text, labels, again)
		}
	})
}
