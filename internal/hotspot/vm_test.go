package hotspot

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/target"
)

// testClasses compiles the Java programs in testdata for the oldest JDK.
func testClasses(t testing.TB) string {
	t.Helper()
	return fixture.Classes(t, 8, "-g", "testdata/Parked.java", "testdata/Churn.java", "testdata/Locks.java", "testdata/Unsafepoint.java")
}

// startProgram starts a test program and waits until it reports that it is ready.
func startProgram(t testing.TB, major int, args ...string) *target.Process {
	t.Helper()
	args = append([]string{"-Xmx256m", "-XX:ReservedCodeCacheSize=64m", "-cp", testClasses(t)}, args...)
	started := fixture.Start(t, exec.Command(fixture.JDKTool(t, major, "java"), args...))
	started.Await("ready")
	return openProcess(t, started.PID())
}

func openProcess(t testing.TB, pid int) *target.Process {
	t.Helper()
	p, err := target.Open(pid)
	if err != nil {
		t.Fatal(err) // it is a child
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// parkedPrograms holds the results of parkedProgram, by JDK.
var parkedPrograms struct {
	sync.Mutex
	of map[int]*fixture.Program
}

// parkedProgram returns the program Parked in a VM of that JDK, the same one for all tests that
// only look at it, or stop it while they do. It has reached the place where it waits.
func parkedProgram(t testing.TB, major int) *target.Process {
	t.Helper()
	all := &parkedPrograms
	all.Lock()
	defer all.Unlock()
	if all.of[major] == nil {
		args := []string{"-Xmx256m", "-XX:ReservedCodeCacheSize=64m", "-cp", testClasses(lasting{t}), "Parked"}
		started := fixture.Start(lasting{t}, exec.Command(fixture.JDKTool(t, major, "java"), args...))
		started.Await("ready")
		if all.of == nil {
			all.of = map[int]*fixture.Program{}
		}
		all.of[major] = started
	}
	return openProcess(t, all.of[major].PID())
}

// TestMain ends the programs that parkedProgram has started.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, p := range parkedPrograms.of {
		p.Kill()
	}
	for _, dir := range lastingDirs {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// lasting is a test whose fixtures stay for other tests.
type lasting struct{ testing.TB }

var lastingDirs []string

func (lasting) Cleanup(func()) {}

func (l lasting) TempDir() string {
	dir, err := os.MkdirTemp("", "hotspot-test-*")
	if err != nil {
		l.Fatal(err)
	}
	lastingDirs = append(lastingDirs, dir)
	return dir
}

func openVM(t testing.TB, p *target.Process) *VM {
	t.Helper()
	vm, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// eachBlob decodes every blob of the code cache by walking the heaps' blocks. It returns the number
// of used blocks in which no blob is found: those that the VM has just allocated.
func eachBlob(t testing.TB, vm *VM, f func(*blob)) (missing int) {
	t.Helper()
	length := vm.Field("HeapBlock::Header::_length")
	for i := range vm.code.heaps {
		h := &vm.code.heaps[i]
		for at := h.low; at < h.high; {
			n, ok := vm.Mem.Member(at, length)
			if !ok || n == 0 {
				break
			}
			used, _ := vm.Mem.Member(at, vm.code.layout.used)
			if used != 0 {
				start := at + vm.code.layout.blockHeader
				b := vm.find(start)
				if b == nil || b.start != start {
					missing++
				} else {
					f(b)
				}
			}
			at += n << h.shift
		}
	}
	return missing
}

func forMajors(t *testing.T, f func(t *testing.T, major int)) {
	for _, n := range fixture.JDKs(t, 8) {
		t.Run(fmt.Sprintf("jdk%d", n), func(t *testing.T) { f(t, n) })
	}
}

// Every blob is found by its first and last byte, and every PcDesc of every nmethod stands for a
// chain of methods that ends with the nmethod's own.
func TestCodeCache(t *testing.T) {
	forMajors(t, func(t *testing.T, major int) {
		p := parkedProgram(t, major)
		began := time.Now()
		vm := openVM(t, p)
		took := time.Since(began)
		if vm.Major != major {
			t.Errorf("major is %d, want %d", vm.Major, major)
		}
		if !strings.HasPrefix(vm.Version(), fmt.Sprint(major)) {
			t.Errorf("version %q", vm.Version())
		}
		for _, n := range vm.Notes() {
			t.Errorf("note: %s", n)
		}
		looks := 0
		// The VM may still have something to compile, and be about to put code in its place or to
		// drop some, but not forever.
		fixture.Settles(t, 8, func() string {
			if looks++; looks > 1 {
				time.Sleep(time.Second)
				vm = openVM(t, p)
			}
			var wrong []string
			bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
			kinds := make(map[blobKind]int)
			names := make(map[string]blobKind)
			pcs, scopes, depth, undecoded := 0, 0, 0, 0
			var chain []scope
			missing := eachBlob(t, vm, func(b *blob) {
				kinds[b.kind]++
				names[b.name] = b.kind
				if l := vm.find(b.end - 1); l != b && !b.dead {
					bad("%s [%#x,%#x): its last byte is of %+v", b.name, b.start, b.end, l)
				}
				if b.nm == nil {
					return
				}
				if b.nm.method == 0 && major == 8 {
					return // a zombie, which is on no stack
				}
				if b.nm.methodID == 0 && !b.dead {
					bad("nmethod at %#x has no method", b.start)
					return
				}
				for i, d := range b.nm.pcs {
					pcs++
					if d.scope == 0 {
						continue
					}
					var ok bool
					chain, ok = vm.chain(chain[:0], b, i)
					if !ok {
						undecoded++
						continue
					}
					depth = max(depth, len(chain))
					for _, s := range chain {
						scopes++
						id, ok := vm.method(s.method)
						m := vm.methodAt(id)
						if !ok || m == nil {
							undecoded++
							continue
						}
						if !m.native && s.bci >= int32(m.codeSize) {
							bad("%s: bci %d of %d", m.function, s.bci, m.codeSize)
						}
					}
				}
			})
			if missing > 0 {
				bad("%d used blocks without a blob", missing)
			}
			if undecoded > 0 {
				bad("%d of %d pcs (%d scopes) do not decode", undecoded, pcs, scopes)
			}
			for _, k := range []blobKind{blobNMethod, blobNativeMethod, blobInterpreter, blobStubRoutines, blobAdapter, blobRuntimeStub, blobDeopt, blobSafepoint} {
				if kinds[k] == 0 {
					bad("no blob of kind %d; names %v", k, names)
				}
			}
			if pcs < 1000 || depth < 3 {
				bad("only %d pcs, depth %d", pcs, depth)
			}
			t.Logf("%s %s: open %v; %d blobs, %d nmethods, %d pcs, %d scopes, depth %d, %d methods", vm.Version(), vm.GC(), took, vm.code.live, kinds[blobNMethod], pcs, scopes, depth, len(vm.methods.all))
			return strings.Join(wrong[:min(len(wrong), 10)], "\n")
		})
	})
}
