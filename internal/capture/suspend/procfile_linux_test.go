package suspend

import (
	"os"
	"testing"
)

func TestParseStatus(t *testing.T) {
	line := "17 (a b) c) R 1 17 17 0 -1 4194304 95 0 0 0 7 8 0 0 20 0 1 0 4711 9000 200 18446744073709551615 4198400 5000000 140724603453440 0 0 0 0 0 0 0 0 0 17 3 0 0 0\n"
	s, ok := parseStatus([]byte(line))
	want := status{state: 'R', cpu: 3, startCode: 4198400, startStack: 140724603453440, started: 4711, system: 8}
	if !ok || s != want {
		t.Errorf("%+v %v, want %+v", s, ok, want)
	}
	if parent := parseParent([]byte(line)); parent != 1 {
		t.Errorf("parent %d", parent)
	}
	if _, ok := parseStatus([]byte("17 (x) R 1 2")); ok {
		t.Error("half a line is taken")
	}
}

func TestParseAccount(t *testing.T) {
	if a, delay, ok := parseAccount([]byte("690320 1520016 3\n")); !ok || a != (account{690320, 3}) || delay != 1520016 {
		t.Errorf("%+v %v", a, ok)
	}
	if _, _, ok := parseAccount([]byte("690320")); ok {
		t.Error("half a line is taken")
	}
}

func TestParseVoluntary(t *testing.T) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := parseVoluntary(b); !ok || n == 0 {
		t.Errorf("%d %v of\n%s", n, ok, b)
	}
	if n, ok := parseVoluntary([]byte("x\nvoluntary_ctxt_switches:\t42\nnonvoluntary_ctxt_switches:\t7\n")); !ok || n != 42 {
		t.Errorf("%d %v", n, ok)
	}
}

func TestParseStart(t *testing.T) {
	line := "x (1, #threads: 1)\n---\nse.exec_start                                :      11604035.607469\nse.vruntime   :  127.479270\n"
	if n, ok := parseStart([]byte(line)); !ok || n != 11604035607469 {
		t.Errorf("%d %v", n, ok)
	}
	for _, s := range []string{"", "\nse.exec_start", "\nse.exec_start : 12", "\nse.exec_start : 12.34", "\nse.exec_start : 12.34x678"} {
		if n, ok := parseStart([]byte(s)); ok {
			t.Errorf("%q: %d", s, n)
		}
	}
}

func FuzzProcFiles(f *testing.F) {
	f.Add([]byte("17 (a) R 1 17 17 0 -1 4194304 95"))
	f.Add([]byte("1 2 3"))
	f.Add([]byte("\nvoluntary_ctxt_switches:\t1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseStatus(b)
		parseAccount(b)
		parseVoluntary(b)
		parseParent(b)
		parseStart(b)
		parseThreads(b, make([]int, 4))
	})
}

func TestDecodeStop(t *testing.T) {
	for status, want := range map[uint32]stop{
		0x80057f: {},              // the stop that was requested
		0x80137f: {},              // the process is stopped
		0x06057f: {exiting: true}, // PTRACE_EVENT_EXIT
		0x000a7f: {signal: 10},    // SIGUSR1 is to be delivered
		0x000009: {ended: true},   // killed
		0x000100: {ended: true},   // exit code 1
	} {
		if got := decodeStop(status); got != want {
			t.Errorf("%#x: %+v, want %+v", status, got, want)
		}
	}
}
