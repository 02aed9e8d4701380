package target

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestParseMapsLines(t *testing.T) {
	for _, c := range []struct {
		line string
		want Mapping
	}{
		{"00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon",
			Mapping{Start: 0x400000, End: 0x452000, Perm: PermRead | PermExec, Dev: 8<<20 | 2, Inode: 173521, Path: "/usr/bin/dbus-daemon"}},
		{"7f0-7f8 rw-s 1000 fd:00 9 /a b  c (deleted)",
			Mapping{Start: 0x7f0, End: 0x7f8, Offset: 0x1000, Perm: PermRead | PermWrite | PermShared, Dev: 0xfd << 20, Inode: 9, Path: "/a b  c", Deleted: true}},
		{`7f0-7f8 ---p 0 00:01 1 /new\012line\\x`,
			Mapping{Start: 0x7f0, End: 0x7f8, Dev: 1, Inode: 1, Path: "/new\nline\\\\x"}},
		{"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
			Mapping{Start: 0xffffffffff600000, End: 0xffffffffff601000, Perm: PermExec, Path: "[vsyscall]"}},
		{"1000-2000 rw-p 00000000 00:00 0 ", Mapping{Start: 0x1000, End: 0x2000, Perm: PermRead | PermWrite}},
		{"1000-2000 rw-p 00000000 00:00 0", Mapping{Start: 0x1000, End: 0x2000, Perm: PermRead | PermWrite}},
		{"1000-2000 rw-s 0 00:01 18446744073709551615 /memfd:x (deleted)",
			Mapping{Start: 0x1000, End: 0x2000, Perm: PermRead | PermWrite | PermShared, Dev: 1, Inode: 1<<64 - 1, Path: "/memfd:x", Deleted: true}},
	} {
		got, err := parseMaps([]byte(c.line + "\n"))
		if err != nil || len(got) != 1 || got[0] != c.want {
			t.Errorf("%q\n got %+v, %v\nwant %+v", c.line, got, err, c.want)
		}
	}
	for _, bad := range []string{
		"x", "-", "1000", "1000-", "1000-1000 r-xp 0 0:0 0", "2000-1000 r-xp 0 0:0 0",
		"11112222333344445-2 r-xp 0 0:0 0", "1000-2000 r-x 0 0:0 0", "1000-2000 r-xp 0 0:0 -1",
		"1000-2000 r-xp 0 0:0 18446744073709551616 /x", "1000-2000 r-xp 0 0:0 1x /x",
		"1000-2000 r-xp  0:0 1 /x", "1000-2000 r-xp 0 1000:0 1 /x",
		"1000-2000 r-xp 0 0:0 1 /" + strings.Repeat("a", maxPath),
	} {
		if got, err := parseMaps([]byte(bad)); !errors.Is(err, ErrFormat) || len(got) != 0 {
			t.Errorf("%.60q: %+v, %v", bad, got, err)
		}
	}
}

// A mapping that grew between two pieces of the file is shown twice.
func TestParseMapsOverlap(t *testing.T) {
	got, err := parseMaps([]byte("1000-3000 r--p 0 0:1 5 /f\n" + "1000-2000 r--p 0 0:1 5 /f\n" +
		"2000-5000 r--p 1000 0:1 5 /f\n" + "nonsense\n" + "5000-6000 r--p 4000 0:1 5 /f\n"))
	want := []Mapping{
		{Start: 0x1000, End: 0x3000, Perm: PermRead, Dev: 1, Inode: 5, Path: "/f"},
		{Start: 0x3000, End: 0x5000, Offset: 0x2000, Perm: PermRead, Dev: 1, Inode: 5, Path: "/f"},
		{Start: 0x5000, End: 0x6000, Offset: 0x4000, Perm: PermRead, Dev: 1, Inode: 5, Path: "/f"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFileBacked(t *testing.T) {
	for _, c := range []struct {
		path      string
		inode     uint64
		file, ano bool
	}{
		{"/usr/lib/libc.so.6", 1, true, false}, {"/dev/shm/x", 1, true, false}, {"", 0, false, true},
		{"[heap]", 0, false, true}, {"/memfd:java_heap", 7, false, false}, {"/dev/zero", 7, false, false},
		{"/SYSV00000000", 7, false, false}, {"[anon:glibc: malloc]", 0, false, true}, {"anon_inode:[perf_event]", 9, false, false},
	} {
		m := Mapping{Path: c.path, Inode: c.inode}
		if m.FileBacked() != c.file || m.Anonymous() != c.ano {
			t.Errorf("%q: FileBacked %v, Anonymous %v", c.path, m.FileBacked(), m.Anonymous())
		}
	}
	wine := Mapping{Path: "/tmp/wine-Iq6EfM/server-fe00-9c2047/tmpmap-8705dbad", Inode: 7, Perm: PermRead | PermExec | PermShared, Deleted: true}
	if wine.FileBacked() {
		t.Error("memory of Windows' page file is taken for a file")
	}
	if wine.Deleted = false; !wine.FileBacked() {
		t.Error("a file that has its name is not taken for one")
	}
}

// statLine returns a real line with another command.
func statLine(comm string) string {
	return "4242 (" + comm + ") S 17 4242 17 34816 5000 4194560 1041 0 0 0 31 11 0 0 20 0 27 0 876543 2600960000 8000 18446744073709551615 94 95 140 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
}

func TestParseStat(t *testing.T) {
	for _, comm := range []string{"java", "", "a b", "a) R 1 (b", "((((", "))))", "x\ny", ") Z 1 1 1"} {
		got, ok := parseStat([]byte(statLine(comm)))
		want := stat{PID: 4242, Comm: comm, State: 'S', PPID: 17, Flags: 4194560, User: 31, System: 11, Threads: 27, StartTime: 876543, Program: program{94, 140}}
		if !ok || got != want {
			t.Errorf("%q: %+v, %v", comm, got, ok)
		}
	}
	whole := statLine("x")
	for _, bad := range []string{"", "1", "1 (", "1 ()", "(x) S 1", ")(", "1 (x) S 1", whole[:60], strings.Replace(whole, " 876543", " -876543", 1), "9" + strings.Repeat("9", 30) + whole} {
		if got, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestParseStatus(t *testing.T) {
	got := parseStatus([]byte("Name:\tUid:\t5 5 5 5\nUmask:\t0022\nTgid:\t77\nUid:\t1\t1000\t3\t4\nNSpid:\t77\t8\t1\nUid:\t9\t9\t9\t9\n"))
	if want := (status{UID: 1000, TGID: 77, NSpid: []int{77, 8, 1}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := parseStatus([]byte("Uid:\t1\nNSpid:\tx\n\x00")); got.UID != -1 || got.TGID != -1 || got.NSpid != nil {
		t.Errorf("got %+v", got)
	}
}

func TestParseSchedstat(t *testing.T) {
	for in, want := range map[string]uint64{"123456789 55 3\n": 123456789, "0 0 0\n": 0, "7": 7} {
		if got, ok := parseSchedstat([]byte(in)); !ok || got != want {
			t.Errorf("%q: %d, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", " 1", "-1 2", "99999999999999999999 0 0", "x"} {
		if got, ok := parseSchedstat([]byte(in)); ok {
			t.Errorf("%q: %d", in, got)
		}
	}
}

func TestSplitCmdline(t *testing.T) {
	for in, want := range map[string][]string{
		"":                        nil,
		"\x00\x00":                nil,
		"java\x00-jar\x00a b\x00": {"java", "-jar", "a b"},
		"a\x00\x00b\x00":          {"a", "", "b"},
		"nginx: worker":           {"nginx: worker"},
	} {
		if got := splitCmdline([]byte(in)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func FuzzMaps(f *testing.F) {
	f.Add([]byte("00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon\n1000-2000 rw-p 0 0:0 0"))
	f.Add([]byte("7f0-7f8 rw-s 1000 fd:00 9 /a\\012b (deleted)\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		maps, _ := parseMaps(b)
		var last uint64
		for _, m := range maps {
			if m.Start >= m.End || m.Start < last {
				t.Fatalf("not sorted: %+v", m)
			}
			last = m.End
		}
		n := 0
		for _, m := range ModulesOf(maps) {
			if m.Start >= m.End || len(m.Mappings) == 0 {
				t.Fatalf("bad module %+v", m)
			}
			n += len(m.Mappings)
			m.Bias(nil)
		}
		if n > len(maps) {
			t.Fatalf("%d mappings in modules, %d in all", n, len(maps))
		}
	})
}

func FuzzProcFiles(f *testing.F) {
	f.Add([]byte(statLine("a) (b")))
	f.Add([]byte("Tgid:\t77\nUid:\t1\t1000\t3\t4\nNSpid:\t77\t8\n"))
	f.Add([]byte("123 456 7\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := parseStat(b); ok && (s.PID < 0 || s.PPID < 0 || s.Threads < 0 || !strings.Contains(string(b), fmt.Sprintf("(%s)", s.Comm))) {
			t.Fatalf("%+v", s)
		}
		if s := parseStatus(b); s.UID < -1 || len(s.NSpid) > 64 {
			t.Fatalf("%+v", s)
		}
		parseSchedstat(b)
		for _, a := range splitCmdline(b) {
			if strings.Contains(a, "\x00") {
				t.Fatalf("%q", a)
			}
		}
	})
}

func TestBaseName(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/lib/libc.so.6": "libc.so.6", `C:\Windows\System32\ntdll.dll`: "ntdll.dll", `\\server\share\a b\x.exe`: "x.exe",
		`/tmp/with\backslash`: `with\backslash`, "libc.so.6": "libc.so.6", `C:\`: "",
	} {
		if got := BaseName(path); got != want {
			t.Errorf("%s: %q, not %q", path, got, want)
		}
	}
}
