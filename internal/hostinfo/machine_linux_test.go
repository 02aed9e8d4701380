package hostinfo

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/target"
)

func TestFiles(t *testing.T) {
	if got := prettyName([]byte("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n")); got != "Debian GNU/Linux 12 (bookworm)" {
		t.Error(got)
	}
	var i Info
	virtual, known := i.cpuinfo([]byte("processor\t: 0\nmodel name\t: A CPU @ 1 GHz\nphysical id\t: 0\ncore id\t\t: 0\nflags\t: fpu sse hypervisors\n\nprocessor\t: 1\nmodel name\t: A CPU @ 1 GHz\nphysical id\t: 0\ncore id\t\t: 0\n"))
	if i.CPU != "A CPU @ 1 GHz" || i.Sockets != 1 || i.Cores != 1 || i.Threads != 2 || virtual || !known {
		t.Errorf("%+v, %v, %v", i, virtual, known)
	}
	if virtual, known := new(Info).cpuinfo([]byte("flags\t\t: fpu hypervisor lahf_lm\n")); !virtual || !known {
		t.Error(virtual, known)
	}
	if virtual, known := new(Info).cpuinfo([]byte("processor\t: 0\nFeatures\t: fp asimd\n")); virtual || known {
		t.Error(virtual, known)
	}
	if used, all, err := busy([]byte("cpu  10 1 5 100 20 1 2 3 7 7\ncpu0 1")); used != 22 || all != 142 || err != nil {
		t.Error(used, all, err)
	}
	for _, bad := range []string{"", "cpu", "cpu a b c d e", "intr 1 2 3 4 5 6"} {
		if _, _, err := busy([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	for text, want := range map[string]uint64{"A: 1 kB\nVmRSS:\t  12 kB\n": 12, "VmRSS: 1 kB": 1, "VmRSS: x kB\n": 0, "VmRSS: 12 MB\n": 0, "xVmRSS: 12 kB\n": 0, "VmRSS:": 0, "": 0} {
		if v, ok := kib([]byte(text), "VmRSS:"); v != want<<10 || ok != (want > 0) {
			t.Errorf("%q: %d, %v", text, v, ok)
		}
	}
}

// The resource usage of this process itself is visible.
func TestThisMachine(t *testing.T) {
	i, err := Look()
	if err != nil || i.OS == "" || i.CPU == "" || i.Threads < 1 {
		t.Fatalf("%+v, %v", i, err)
	}
	if resident, peak, err := Memory(os.Getpid()); err != nil || resident < 1<<20 || peak < resident {
		t.Fatal(resident, peak, err)
	}
	self, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	ticks := func() uint64 {
		user, system, err := target.CPUTicks(self, 0)
		if err != nil {
			t.Fatal(err)
		}
		return user + system
	}
	before := ticks()
	load, err := Now()
	if err != nil || load.Memory == 0 || load.MemoryUsed == 0 || load.MemoryUsed >= load.Memory {
		t.Fatalf("%+v, %v", load, err)
	}
	x := 0
	for begin := time.Now(); ; x++ {
		if x%(1<<20) != 0 {
			continue
		}
		now, err := Now()
		if err != nil {
			t.Fatal(err)
		}
		used := ticks() - before
		if used >= 3 && now.Busy-load.Busy >= 3 && now.All > load.All {
			return
		}
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("%d ticks of this process, %d of the machine in two minutes of work", used, now.Busy-load.Busy)
		}
	}
}

func TestInterfaces(t *testing.T) {
	const titles = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
	got, err := interfaces([]byte(titles + "    lo: 10 1 0 0 0 0 0 0 20 2 0 0 0 0 0 0\neth0:0:18446744073709551615 1 0 0 0 0 0 0 7 2 0 0 0 0 0 0\n"))
	if want := []Interface{{"lo", 10, 20}, {"eth0:0", 1<<64 - 1, 7}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"lo 10 1", "lo: 1 2 3", "lo: x 1 0 0 0 0 0 0 20 2", "lo: 1 1 0 0 0 0 0 0 -20 2"} {
		if _, err := interfaces([]byte(titles + bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if got, err := interfaces(nil); len(got) != 0 || err != nil {
		t.Error(got, err)
	}
	// The interfaces of this process.
	if n, err := Network(os.Getpid()); err != nil {
		t.Errorf("%+v, %v", n, err)
	}
	if space, err := NetworkSpace(os.Getpid()); err != nil || space == "" {
		t.Errorf("%q, %v", space, err)
	}
}

func FuzzFiles(f *testing.F) {
	f.Add([]byte("a: 1 kB\n"))
	f.Add([]byte("cpu  10 1 5 100 20 1 2 3 7 7\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var i Info
		i.cpuinfo(b)
		busy(b)
		kib(b, "a")
		prettyName(b)
		interfaces(b)
	})
}
