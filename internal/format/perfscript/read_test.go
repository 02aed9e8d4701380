package perfscript

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// stacks returns a profile's samples as text: event, thread, time, weight, frames from the
// outermost in, each with its kind and module.
func stacks(p *profile.Profile) []string {
	var out []string
	for _, s := range p.Samples {
		var names []string
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			f := p.Frames[p.Nodes[n].Frame]
			fn := p.Funcs[f.Func]
			name := fmt.Sprintf("%s/%s/%s", fn.Name, profile.KindName(f.Kind), fn.Module)
			if f.Line != 0 {
				name += fmt.Sprintf("@%s:%d", fn.File, f.Line)
			}
			names = append(names, name)
		}
		slices.Reverse(names)
		t := p.Threads[s.Thread]
		out = append(out, fmt.Sprintf("%s %s %d/%d %d %d %s %s", p.Events[s.Event].Name, t.Name, t.PID, t.TID, s.Time, s.Weight, s.End, strings.Join(names, " ")))
	}
	return out
}

func TestReads(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"as perf prints it", "java 11/12 46167.000001:    2004008 cpu-clock:ppp: \n" +
			"\tffffffff81b73c18 _copy_to_user+0x28 ([kernel.kallsyms])\n" +
			"\tffffffffc0001000 ext4_read+0x28 ([ext4])\n" +
			"\t            1304 inl+0x14 (inlined)\n" +
			"\t            1304 std::vector<int, A<int> >::push(int const&)+0x14 (/opt/my app/lib (x).so)\n" +
			"\t    7f0012345678 java.lang.Object java.util.HashMap.get(java.lang.Object)+0x10 (/tmp/perf-11.map)\n" +
			"\t    7f0012345679 [unknown] (/usr/lib/libc.so.6 (deleted))\n" +
			"\t    7f001234567a [unknown] ([unknown])\n\n" +
			"my thread 2 11/13 46167.100001:    2004008 cpu-clock:ppp: \n\t 12be leaf+0x2e (/w)\n\n",
			[]string{
				"cpu-clock:ppp java 11/12 0 2004008 complete [unknown]/unknown/ [unknown]/native/libc.so.6 java.util.HashMap.get/compiled/[jit]" +
					" std::vector<int, A<int> >::push(int const&)/native/lib (x).so inl/inlined/lib (x).so ext4_read/kernel/[ext4] _copy_to_user/kernel/[kernel]",
				"cpu-clock:ppp my thread 2 11/13 100000000 2004008 complete leaf/native/w",
			}},
		{"no call chains, with the CPU and without a period", "# comment\n" +
			"               w 29488 [001] 46173.323379: cycles:      55f9c8b5f2be leaf+0x2e (/w)\n" +
			"         swapper     0 [000] 46173.323380: cycles:  ffffffff821f39e5 idle+0x105 ([kernel.kallsyms])\n",
			[]string{"cycles w 0/29488 0 1 complete leaf/native/w", "cycles swapper 0/0 1000 1 complete idle/kernel/[kernel]"}},
		{"several events, the one of time first", "w 1 1.000000001: 1 page-faults: \n\t 12 a (/w)\n\nw 1 1.000000002: 7 cycles:u: \n\t 13 b (/w)\n\n" +
			"w 1 [000] 1.000000003: sched:sched_switch: prev_comm=w prev_pid=1 ==> next_comm=x (y)\n\t 14 c (/w)\n",
			[]string{"page-faults w 0/1 0 1 complete a/native/w", "cycles:u w 0/1 1 7 complete b/native/w", "sched:sched_switch w 0/1 2 1 complete c/native/w"}},
		{"names of threads that look like fields", "pool 12 7 [x] 8 1.000000: 5 cycles: \n\t1 a (/w)\n\n:8 8 2.000000: 5 cycles: \n\t1 a (/w)\n\n",
			[]string{"cycles pool 12 7 [x] 0/8 0 5 complete a/native/w", "cycles pool 12 7 [x] 0/8 1000000000 5 complete a/native/w"}},
		{"source lines and code", "w 1/1 1.0: 5 cycles: \n\t1234 a+0x1 (/w)\n  w.c:6\n|6    x = y;\n\t1235 b (/w)\n  w.c:9\n\n",
			[]string{"cycles w 1/1 0 5 complete b/native/w@w.c:9 a/native/w@w.c:6"}},
		{"only addresses and symbols", "\n\t            12be leaf\n\t  1305 middle\n\n\n\t 12be leaf\n\n",
			[]string{"samples [unknown] 0/0 0 1 complete middle/native/ leaf/native/", "samples [unknown] 0/0 0 1 complete leaf/native/"}},
		{"only symbols", "w 1 1.0: cycles: \n\tadd (/w)\n\tmain (/w)\n\n", []string{"cycles w 0/1 0 1 complete main/native/w add/native/w"}},
		{"another name of a function taken for inlined", "w 1 1.0: 3 cycles: \n\t12 read (inlined)\n\t13 inl (inlined)\n\t13 main (/w)\n\n",
			[]string{"cycles w 0/1 0 3 complete main/native/w inl/inlined/w read/native/"}},
		{"no thread", "1.500000: 3 cycles: \n\t12 a (/w)\n", []string{"cycles [unknown] 0/0 0 3 complete a/native/w"}},
		{"letters of the mode", "w 1 [000] U 1.0: 3 cycles:  12 a (/w)\r\n", []string{"cycles w 0/1 0 3 complete a/native/w"}},
		{"a sample without a stack", "w 1 1.0: 3 cycles: \n\nw 1 1.0: 3 cycles: \n\t12 a (/w)\n", []string{"cycles w 0/1 0 3 stack not readable ", "cycles w 0/1 0 3 complete a/native/w"}},
		{"what is no sample", "w 1 1.0: PERF_RECORD_COMM: w:1/1\nw 1 1.0: 3 cycles: \n\t12 a (/w)\n\nw 1 1.2: PERF_RECORD_LOST lost 77\n",
			[]string{"cycles w 0/1 0 3 complete a/native/w"}},
		{"off the CPU", "w 1/1 1.0: 300 offcpu-time: \n\t12 a (/w)\n", []string{"offcpu-time w 1/1 0 300 complete a/native/w"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !Is([]byte(c.text)) {
				t.Error("it is not recognised")
			}
			p, err := Read(strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := stacks(p); !slices.Equal(got, c.want) {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
			if c.name == "what is no sample" && p.Losses.Lost != 77 {
				t.Errorf("%d lost", p.Losses.Lost)
			}
			if c.name == "several events, the one of time first" && p.Events[0].Name != "cycles:u" {
				t.Errorf("events %v", p.Events)
			}
			if c.name == "as perf prints it" && p.Events[0] != (profile.Event{Name: "cpu-clock:ppp", Kind: profile.EventCPUPart, Unit: "nanoseconds", Period: 2004008}) {
				t.Errorf("events %v", p.Events)
			}
		})
	}
}

func TestLongHeader(t *testing.T) {
	head := "# ========\n# captured on    : Sat Nov 21 10:24:49 2026\n# missing features: " + strings.Repeat("X", 5000)
	if !Is([]byte(head[:4096])) {
		t.Error("it is not recognised")
	}
}

func TestHeaderOfTheFile(t *testing.T) {
	p, err := Read(strings.NewReader("# ========\n# hostname : box\n# perf version : 6.1\n# cmdline : /usr/bin/perf record ./w \n# ========\n#\nw 1/1 1.0: 3 cycles: \n\t12 a (/w)\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Meta.Host != "box" || p.Meta.Command != "/usr/bin/perf record ./w" || p.Meta.Describe != "recorded by perf 6.1" {
		t.Errorf("%+v", p.Meta)
	}
}

func TestDeepStackIsCut(t *testing.T) {
	text := "w 1 1.0: 3 cycles: \n" + strings.Repeat("\t12 a (/w)\n", maxDepth+1)
	p, err := Read(strings.NewReader(text))
	if err != nil || p.Samples[0].End != walk.EndTruncated {
		t.Errorf("%v, end %v", err, p.Samples[0].End)
	}
}

func TestIsNot(t *testing.T) {
	for _, text := range []string{"", "main;a b;c 3\n", "main 2.0\n", "#\n\n", "a b: c\n", "java 12\n", "[x tid=3];a 4\n", "{}", "java 1 1.0: 3 cycles"} {
		if Is([]byte(text)) {
			t.Errorf("%q is taken for perf script", text)
		}
	}
}

func TestWrong(t *testing.T) {
	_, err := Read(strings.NewReader("w 1 1.0: 3 cycles: \n\t12 a (/w)\n\nwhat is this\n"))
	if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), "line 4") {
		t.Error(err)
	}
	if _, err := Read(strings.NewReader("w 1 1.0: 3 cycles: \n" + strings.Repeat("x", maxLine+1))); err == nil || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("java 11/12 [001] 46167.000001:    2004008 cpu-clock:ppp: \n\tffffffff81b73c18 _copy_to_user+0x28 ([kernel.kallsyms])\n\t 1304 inl+0x14 (inlined)\n  w.c:3\n\t 1304 f (/w (deleted))\n\n")
	f.Add("               w 29488 [001] 46173.323379: cycles:      55f9c8b5f2be leaf+0x2e (/w)\n")
	f.Add("\n\t            12be leaf\n\t  1305 middle\n\n")
	f.Add("# hostname : x\nw 1 1.2: PERF_RECORD_LOST lost 77\n")
	f.Fuzz(func(t *testing.T, text string) {
		Is([]byte(text))
		p, err := Read(strings.NewReader(text))
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
