package speedscope

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

type file struct {
	Schema string `json:"$schema"`
	Shared struct {
		Frames []struct {
			Name, File string
			Line       int
		}
	}
	Profiles []struct {
		Type, Name, Unit     string
		StartValue, EndValue uint64
		Samples              [][]int
		Weights              []uint64
	}
}

func TestWrite(t *testing.T) {
	var b, again bytes.Buffer
	if err := Write(&b, profiletest.Java()); err != nil {
		t.Fatal(err)
	}
	if err := Write(&again, profiletest.Java()); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("two files of the same profile differ, %v", err)
	}
	var f file
	if err := json.Unmarshal(b.Bytes(), &f); err != nil {
		t.Fatal(err)
	}
	if f.Schema != schema || len(f.Profiles) != 4 || f.Profiles[0].Name != "http-worker-1 (tid 4712)" {
		t.Fatalf("%s, %d profiles, first %s", f.Schema, len(f.Profiles), f.Profiles[0].Name)
	}
	self := map[string]int{}
	roots := map[string]int{}
	for _, p := range f.Profiles {
		var sum uint64
		for i, s := range p.Samples {
			sum += p.Weights[i]
			self[f.Shared.Frames[s[len(s)-1]].Name]++
			roots[f.Shared.Frames[s[0]].Name]++
		}
		if p.Type != "sampled" || p.Unit != "nanoseconds" || p.EndValue != sum || len(p.Weights) != len(p.Samples) {
			t.Errorf("%s: %s %s, weights %d, end %d", p.Name, p.Type, p.Unit, sum, p.EndValue)
		}
	}
	sel := profiletest.Java().Select(profile.Filter{})
	for _, m := range sel.List() {
		if got := self[sel.Func(m.Method).Name]; got != int(m.Self.Samples) {
			t.Errorf("%s: %d samples, want %d", sel.Func(m.Method).Name, got, m.Self.Samples)
		}
	}
	if roots["[truncated]"] != 60 || roots["[broken: bad pc]"] != 30 || roots["start_thread"] != 9900 {
		t.Errorf("roots %v", roots)
	}
}

func TestEmpty(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, profile.NewBuilder().Profile()); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b.Bytes()) {
		t.Errorf("%s", b.Bytes())
	}
}
