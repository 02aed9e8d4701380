package symbol

import (
	"os"
	"testing"

	"github.com/candid-profiler/candid/internal/walk"
)

// Functions are named even if there is no room for source lines. The size of the lines is known
// before they are read, also if they are compressed.
func TestNoRoomForLines(t *testing.T) {
	for _, flags := range [][]string{{"-g", "-O2"}, {"-g", "-O2", "-gz"}} {
		path, at := buildC(t, flags...)
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, is := range []bool{true, false} {
			asked := uint64(0)
			n := NewNative(oneFile{path, "t"}, nil)
			n.Room = func(bytes uint64) bool { asked = bytes; return is }
			fr := n.Resolve(walk.Frame{PC: at["main"], Kind: walk.KindNative}, nil)
			if last := fr[len(fr)-1]; last.Function != "main" || (last.Line != 0) != is {
				t.Errorf("%v, room %v: %+v", flags, is, last)
			}
			if asked < 300 || asked > 3*uint64(st.Size()) {
				t.Errorf("%v: a file of %d bytes with lines of %d", flags, st.Size(), asked)
			}
			n.Close()
		}
	}
	path, at := buildC(t, "-O2")
	n := NewNative(oneFile{path, "t"}, nil)
	defer n.Close()
	n.Room = func(uint64) bool { t.Error("room is asked for without lines"); return true }
	n.Resolve(walk.Frame{PC: at["main"]}, nil)
}
