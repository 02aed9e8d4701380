package record

import (
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// byPC names frames by their PC.
type byPC map[uint64]string

func (n byPC) Resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	return append(out, symbol.Frame{Function: n[f.PC], BCI: -1, Kind: f.Kind, Addr: f.PC})
}

// A stack that is missing because its program is gone is complete; one that could not be read for
// any other reason is not.
func TestStackOfNoProgram(t *testing.T) {
	for _, c := range []struct {
		inner string
		end   walk.End
		want  walk.End
		left  int
	}{
		{"load_elf_binary", walk.EndUnread, walk.EndComplete, 2},
		{"do_exit", walk.EndUnread, walk.EndComplete, 2},
		{"filemap_fault", walk.EndUnread, walk.EndUnread, 3},
		{"do_exit", walk.EndReadError, walk.EndReadError, 3},
	} {
		in := newInterner(profile.NewBuilder(), byPC{1: c.inner, 2: "do_syscall_64"})
		in.resolvers, in.byRef = []symbol.Resolver{nil, byPC{3: "do_exit"}}, []bool{false, false}
		var st walk.Stack
		st.Push(walk.Frame{PC: 1, Kind: walk.KindKernel})
		st.Push(walk.Frame{PC: 2, Kind: walk.KindKernel})
		st.Push(walk.Frame{PC: 3, Kind: walk.KindNative, Owner: 1}) // a do_exit of the user's own is not the kernel's
		st.End = c.end
		if in.execs(&st); st.End != c.want || len(st.Frames) != c.left {
			t.Errorf("%s, %v: %v with %d frames", c.inner, c.end, st.End, len(st.Frames))
		}
	}
}
