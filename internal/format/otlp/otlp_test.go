package otlp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
	"github.com/candid-profiler/candid/internal/walk"
)

func written(t *testing.T, p *profile.Profile) []byte {
	t.Helper()
	var b, again bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	if err := Write(&again, p); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("two files of the same profile differ, %v", err)
	}
	return b.Bytes()
}

// decoded reads a file with OpenTelemetry's own package.
func decoded(t *testing.T, b []byte) *profiles.ProfilesData {
	t.Helper()
	var data profiles.ProfilesData
	if err := proto.Unmarshal(b, &data); err != nil {
		t.Fatal(err)
	}
	if n := len(data.ProtoReflect().GetUnknown()) + len(data.Dictionary.ProtoReflect().GetUnknown()); n > 0 {
		t.Errorf("%d bytes that the schema does not know", n)
	}
	return &data
}

func text(v *common.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	}
	return "?"
}

func attributes(d *profiles.ProfilesDictionary, list []int32) string {
	var out []string
	for _, i := range list {
		kv := d.AttributeTable[i]
		out = append(out, d.StringTable[kv.KeyStrindex]+"="+text(kv.Value))
	}
	return strings.Join(out, ",")
}

// lines returns sums as lines.
func lines(sums map[string]int64) []string {
	var out []string
	for what, sum := range sums {
		out = append(out, fmt.Sprintf("%s: %d", what, sum))
	}
	slices.Sort(out)
	return out
}

// theirs returns the sums of a file.
func theirs(data *profiles.ProfilesData) []string {
	sums := map[string]int64{}
	d := data.Dictionary
	for _, rp := range data.ResourceProfiles {
		pid := ""
		for _, kv := range rp.Resource.Attributes {
			if kv.Key == "process.pid" {
				pid = text(kv.Value)
			}
		}
		for _, sp := range rp.ScopeProfiles {
			for _, p := range sp.Profiles {
				for _, s := range p.Samples {
					stack := ""
					for _, l := range d.StackTable[s.StackIndex].LocationIndices {
						loc := d.LocationTable[l]
						for i, line := range loc.Lines {
							f := d.FunctionTable[line.FunctionIndex]
							inlined := ""
							if i < len(loc.Lines)-1 {
								inlined = "inlined"
							}
							stack += fmt.Sprintf(" %s|%s|%d|%s", d.StringTable[f.NameStrindex], d.StringTable[f.FilenameStrindex], line.Line, inlined)
						}
						stack += fmt.Sprintf(" at %#x of %q (%s)", loc.Address, d.StringTable[d.MappingTable[loc.MappingIndex].FilenameStrindex], attributes(d, loc.AttributeIndices))
					}
					for _, v := range s.Values {
						sums[fmt.Sprintf("%s %s/%s pid=%s %s%s", sp.Scope.Name, d.StringTable[p.SampleType.TypeStrindex], d.StringTable[p.SampleType.UnitStrindex],
							pid, attributes(d, s.AttributeIndices), stack)] += v
					}
				}
			}
		}
	}
	return lines(sums)
}

// ours returns the sums of a profile in the same form.
func ours(p *profile.Profile) []string {
	sums := map[string]int64{}
	for _, s := range p.Samples {
		t := p.Threads[s.Thread]
		attrs := []string{fmt.Sprintf("thread.id=%d", t.TID), "thread.name=" + t.Name}
		if t.Kind != "" {
			attrs = append(attrs, "candid.thread.kind="+t.Kind)
		}
		if s.State != 0 {
			attrs = append(attrs, "candid.thread.state="+s.State.String())
		}
		if s.Syscall != 0 {
			attrs = append(attrs, "candid.syscall="+p.Syscalls[s.Syscall])
		}
		switch {
		case s.End == walk.EndTruncated:
			attrs = append(attrs, "candid.stack=truncated")
		case s.End != 0:
			attrs = append(attrs, "candid.stack=broken: "+s.End.String())
		case s.Flags&profile.Guessed != 0:
			attrs = append(attrs, "candid.stack=heuristic")
		case s.Flags&profile.Stitched != 0:
			attrs = append(attrs, "candid.stack=stitched")
		}
		stack := ""
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			f := p.Frames[p.Nodes[n].Frame]
			fn := p.Funcs[f.Func]
			inlined := ""
			if f.Kind == walk.KindInlined {
				inlined = "inlined"
			}
			stack += fmt.Sprintf(" %s|%s|%d|%s", fn.Name, fn.File, f.Line, inlined)
			if inlined != "" {
				continue
			}
			frame := "candid.frame.kind=" + profile.KindName(f.Kind)
			switch f.Kind {
			case walk.KindKernel:
				frame = "profile.frame.type=kernel," + frame
			case walk.KindNative:
				frame = "profile.frame.type=native," + frame
			case walk.KindInterpreted, walk.KindC1, walk.KindC2, walk.KindNativeMethod:
				frame = "profile.frame.type=jvm," + frame
			}
			switch f.Prov {
			case walk.Derived:
				frame += ",candid.frame.provenance=derived"
			case walk.Heuristic:
				frame += ",candid.frame.provenance=heuristic"
			}
			addr := f.Addr
			if f.Kind != walk.KindNative && f.Kind != walk.KindKernel {
				addr = 0
			}
			stack += fmt.Sprintf(" at %#x of %q (%s)", addr, fn.Module, frame)
		}
		e := p.Events[s.Event]
		name, value := e.TypeName()
		pid, thread := fmt.Sprint(t.PID), strings.Join(attrs, ",")
		if t.PID == 0 {
			pid = ""
		}
		if t.Name == "" { // a thread without a name has no attribute for it
			thread = strings.Replace(thread, ",thread.name=", "", 1)
		}
		sums[fmt.Sprintf("%s %s/%s pid=%s %s%s", name, value, e.Unit, pid, thread, stack)] += int64(s.Weight)
	}
	return lines(sums)
}

// several returns a profile of two processes and two events, in all states.
func several() *profile.Profile {
	b := profile.NewBuilder()
	p := b.Profile()
	p.Meta = profile.Meta{Start: time.Unix(1700000000, 5), Host: "box", Version: "1.0"}
	p.Events = []profile.Event{{Name: "cpu", Kind: profile.EventCPU, Unit: "nanoseconds", Period: 10}, {Name: "page-faults", Kind: profile.EventCounter, Unit: "count", Period: 1}}
	b.AddProcess(profile.Process{PID: 1, Command: "/usr/bin/one -x"})
	b.AddProcess(profile.Process{PID: 2, Command: "two", Runtime: "hotspot 17"})
	node := uint32(0)
	for i := range 6 {
		fn := b.Func(profile.Func{Name: fmt.Sprintf("f%d\xff", i), Raw: "raw", File: "f.c", Module: "lib.so"})
		kind := walk.KindNative
		if i%3 == 1 {
			kind = walk.KindInlined
		}
		node = b.Node(node, b.Frame(profile.Frame{Func: fn, Line: int32(i), Kind: kind, Addr: uint64(i) << 4, Prov: walk.Provenance(i % 3), BCI: -1}))
		for j := range 20 {
			b.Add(profile.Sample{Time: uint64(i*100 + j), Weight: uint64(j % 4), Node: node, Thread: b.Thread(1+j%2, j%3, "t"), Event: uint16(j % 5 / 4),
				State: profile.State(j % profile.NumStates), End: walk.End(j) % walk.NumEnds, Syscall: b.Syscall([]string{"", "read"}[j%2])})
		}
	}
	b.Add(profile.Sample{Thread: b.Thread(0, 0, "")})
	p = b.Profile()
	for i := range p.Funcs {
		p.Funcs[i].Name = strings.ToValidUTF8(p.Funcs[i].Name, "\uFFFD")
	}
	return p
}

// TestDecodedByOpenTelemetry: the file has the sum of all samples that are the same but for their time
// and weight, with their stack, thread and everything else known of them.
func TestDecodedByOpenTelemetry(t *testing.T) {
	java := profiletest.Java()
	java.Meta.Start = time.Unix(1700000000, 0)
	for name, p := range map[string]*profile.Profile{"Java": java, "several processes and events": several()} {
		t.Run(name, func(t *testing.T) {
			b := written(t, p)
			got, want := theirs(decoded(t, b)), ours(p)
			if len(got) != len(want) {
				t.Fatalf("%d sums, want %d", len(got), len(want))
			}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("sum %d:\n got %s\nwant %s", i, got[i], want[i])
				}
			}
			if !Is(b) {
				t.Error("it is not recognised")
			}
		})
	}
}

// TestRules checks what the schema requires of a file.
func TestRules(t *testing.T) {
	data := decoded(t, written(t, several()))
	d := data.Dictionary
	for name, empty := range map[string]bool{
		"mapping": proto.Size(d.MappingTable[0]) == 0, "location": proto.Size(d.LocationTable[0]) == 0, "function": proto.Size(d.FunctionTable[0]) == 0,
		"string": d.StringTable[0] == "", "attribute": proto.Size(d.AttributeTable[0]) == 0, "stack": proto.Size(d.StackTable[0]) == 0,
		"link": len(d.LinkTable[0].TraceId) == 16 && len(d.LinkTable[0].SpanId) == 8,
	} {
		if !empty {
			t.Errorf("the first %s is not the zero value", name)
		}
	}
	if len(data.ResourceProfiles) != 3 {
		t.Fatalf("%d resources", len(data.ResourceProfiles))
	}
	strs := slices.Clone(d.StringTable)
	slices.Sort(strs)
	if len(slices.Compact(strs)) != len(d.StringTable) {
		t.Error("a string is there twice")
	}
	for _, rp := range data.ResourceProfiles {
		for _, p := range rp.ScopeProfiles[0].Profiles {
			seen := map[string]bool{}
			for _, s := range p.Samples {
				id := fmt.Sprint(s.StackIndex, s.AttributeIndices)
				if seen[id] {
					t.Errorf("two samples are the same: %s", id)
				}
				seen[id] = true
				// With several values Pyroscope refuses the file, and with times Parca takes each for a sample.
				if len(s.Values) != 1 || len(s.TimestampsUnixNano) != 0 {
					t.Errorf("%d values at %d times", len(s.Values), len(s.TimestampsUnixNano))
				}
			}
			if p.TimeUnixNano != uint64(several().Meta.Start.UnixNano()) || p.DurationNano == 0 {
				t.Errorf("a profile from %d, %d long", p.TimeUnixNano, p.DurationNano)
			}
		}
	}
	first := data.ResourceProfiles[0]
	var attrs []string
	for _, kv := range first.Resource.Attributes {
		attrs = append(attrs, kv.Key+"="+text(kv.Value))
	}
	want := []string{"service.name=unknown_service:one", "host.name=box", "process.pid=1", "process.command_line=/usr/bin/one -x"}
	if !slices.Equal(attrs, want) || first.ScopeProfiles[0].Scope.Name != "process_cpu" || first.ScopeProfiles[0].Scope.Version != "1.0" {
		t.Errorf("%q, scope %v", attrs, first.ScopeProfiles[0].Scope)
	}
}

// TestWithoutTimes: if it is not known when the recording began, the profile is not from 1970.
func TestWithoutTimes(t *testing.T) {
	p := several()
	p.Meta.Start = time.Time{}
	for _, rp := range decoded(t, written(t, p)).ResourceProfiles {
		for _, sp := range rp.ScopeProfiles {
			for _, pr := range sp.Profiles {
				if pr.TimeUnixNano != 0 {
					t.Error("it has a time")
				}
			}
		}
	}
}

// TestSums: what is sent to a server has the sums that it is given, and no attributes of samples.
func TestSums(t *testing.T) {
	p := several()
	var sums []Sum
	want := int64(0)
	for node := range p.Nodes {
		sums = append(sums, Sum{Node: uint32(node), Weight: uint64(node) << 40})
		want += int64(node) << 40
	}
	data := decoded(t, Sums(p, []Attribute{{"service.name", "shop"}, {"env", ""}}, sums))
	if len(data.ResourceProfiles) != 1 || len(data.ResourceProfiles[0].Resource.Attributes) != 1 {
		t.Fatalf("%v", data.ResourceProfiles)
	}
	got := int64(0)
	for _, s := range data.ResourceProfiles[0].ScopeProfiles[0].Profiles[0].Samples {
		got += s.Values[0]
		if len(s.AttributeIndices) > 0 || len(s.Values) != 1 {
			t.Errorf("%v", s)
		}
	}
	if got != want {
		t.Errorf("%d in all, want %d", got, want)
	}
}

func TestEmpty(t *testing.T) {
	b := written(t, profile.NewBuilder().Profile())
	if data := decoded(t, b); len(data.ResourceProfiles) != 0 || len(data.Dictionary.StringTable) != 1 {
		t.Errorf("%v", data)
	}
	if Is(b) {
		t.Error("nothing is taken for a profile")
	}
}

// TestLabels: the keys of attributes are unique, and candid's own come before a label's.
func TestLabels(t *testing.T) {
	b := profile.NewBuilder()
	b.Profile().Events = []profile.Event{profile.NamedEvent("cpu", "nanoseconds", 1)}
	call, _ := b.Labeled("read", []profile.Label{
		profile.TextLabel("tenant", "acme"), profile.TextLabel("tenant", "b"), profile.TextLabel("candid.syscall", "write"), {Key: "thread.id", Number: 9}, {Key: "size", Number: 5}, {Key: "size", Number: 6},
		profile.TextLabel("candid.stack", "complete"),
	})
	b.Add(profile.Sample{Weight: 1, Thread: b.Thread(1, 2, "t"), Syscall: call, End: walk.EndTruncated})
	data := decoded(t, written(t, b.Finish()))
	got := attributes(data.Dictionary, data.ResourceProfiles[0].ScopeProfiles[0].Profiles[0].Samples[0].AttributeIndices)
	if want := "thread.id=2,thread.name=t,candid.syscall=read,candid.stack=truncated,size=5,tenant=acme"; got != want {
		t.Errorf("the attributes are %s, want %s", got, want)
	}
}
