package hotspot

import (
	"fmt"
	"path"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/hotspot/threads"
	"github.com/candid-profiler/candid/internal/javaname"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// javaStack walks the Java frames of a blocked thread from its anchor.
func javaStack(t testing.TB, vm *VM, p *target.Process, thread threads.Thread) []symbol.Frame {
	t.Helper()
	var stack walk.Stack
	sp, _ := vm.Mem.U64(thread.Addr + vm.off.anchor + vm.off.lastSP)
	top, _ := vm.Mem.U64(thread.Addr + vm.Field("JavaThread::_stack_base", "Thread::_stack_base").Offset)
	if sp == 0 || top <= sp {
		return nil
	}
	p.Memory().Invalidate()
	c := walk.Cursor{Stack: &stack, Mem: p.Memory(), High: top, TID: thread.TID}
	c.Regs.Arch = vm.Arch
	c.Regs.SetSP(sp - 64)
	if !vm.Resume(&c) {
		return nil
	}
	for range 10000 {
		v := vm.Step(&c)
		if v == walk.Done {
			break
		}
		if v != walk.Stepped && !vm.Resume(&c) {
			break
		}
	}
	var frames []symbol.Frame
	for _, f := range stack.Frames {
		frames = vm.Resolve(f, frames)
	}
	return frames
}

var decimalHash = regexp.MustCompile(`/\d+$`)

// The Java frames of blocked threads are those that the JDK prints: methods, including inlined
// ones, files and lines.
func TestStacksOfBlockedThreads(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the JDK's thread ids, which are the kernel's only on Linux")
	}
	for _, flags := range []string{"", "-Xcomp"} {
		t.Run("flags"+flags, func(t *testing.T) {
			forMajors(t, func(t *testing.T, major int) {
				if flags != "" && major != 21 && !fixture.Full(t) {
					return
				}
				t.Parallel()
				p := startProgram(t, major, append(strings.Fields(flags), "Parked", "800")...)
				vm := openVM(t, p)
				var compared, frames, inlined, compiled int
				// A thread of the VM's own, most of all the one that handles references, may have
				// something to do between the two looks; most times it has not.
				fixture.Attempts(t, 5, func() (wrong string) {
					p.Memory().Invalidate()
					var different []string
					want := jstack(t, major, p.PID)
					vm.BeginBatch()
					compared, frames, inlined, compiled = 0, 0, 0, 0
					list, _ := vm.Threads.List()
					for _, thread := range list {
						w := want[int(thread.TID)]
						if w == nil || len(w.frames) == 0 || w.name == "Attach Listener" {
							continue
						}
						var got []symbol.Frame
						for _, f := range javaStack(t, vm, p, thread) {
							if f.Kind != walk.KindStub {
								got = append(got, f)
							}
						}
						compared++
						if d := differs(major, got, w.frames); d != "" {
							different = append(different, fmt.Sprintf("%q: %s\nwe say:\n%s\nthe JDK says:\n%s", w.name, d, listed(got), w.frames))
						}
						frames += len(got)
						for _, f := range got {
							if f.Kind == walk.KindInlined {
								inlined++
							}
							if f.Kind == walk.KindC1 || f.Kind == walk.KindC2 {
								compiled++
							}
						}
					}
					return strings.Join(different, "\n")
				})
				if compiled == 0 {
					t.Error("no compiled frame was compared")
				}
				if compared < 8 {
					t.Errorf("only %d threads compared", compared)
				}
				t.Logf("%d threads, %d frames, %d compiled, %d inlined", compared, frames, compiled, inlined)
			})
		})
	}
}

// differs returns where the frames differ from the JDK's, "" if nowhere.
func differs(major int, got []symbol.Frame, want []jstackFrame) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d frames, not %d", len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		dot := strings.LastIndexByte(w.function, '.')
		// Up to 8 the JDK adds an identity hash to the names of anonymous classes.
		plain, _ := javaname.Class(decimalHash.ReplaceAllString(w.function[:dot], ""))
		if name := plain + w.function[dot:]; g.Function != name {
			return fmt.Sprintf("frame %d is %s, not %s", i, g.Function, name)
		}
		if major >= 15 && g.Raw != "" && g.Raw != w.function {
			return fmt.Sprintf("frame %d is %s, not %s", i, g.Raw, w.function)
		}
		file, line := w.file, w.line
		if file == "Native Method" || file == "Unknown Source" || file == "<generated>" {
			file = ""
		}
		if w.file != "Native Method" && g.File != file && path.Base(g.File) != file {
			return fmt.Sprintf("frame %d is in %q, not %q", i, g.File, file)
		}
		if line == "" {
			line = "0"
		}
		if fmt.Sprint(g.Line) != line {
			return fmt.Sprintf("frame %d is at line %d, not %s", i, g.Line, line)
		}
	}
	return ""
}

func listed(frames []symbol.Frame) string {
	var s strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&s, "  %s (%s:%d) bci %d kind %d\n", f.Function, f.File, f.Line, f.BCI, f.Kind)
	}
	return s.String()
}
