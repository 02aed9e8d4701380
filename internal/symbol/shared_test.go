package symbol

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/candid-profiler/candid/internal/walk"
)

// placed is oneFile with a content, so that it is shared.
type placed struct {
	oneFile
	content ContentID
}

func (o placed) Locate(f walk.Frame) (Place, bool) {
	p, ok := o.oneFile.Locate(f)
	p.Content = o.content
	return p, ok
}

// What is kept of files that other processes had read is bounded in bytes: what was
// asked for longest ago goes first, and what is too large at once.
func TestSharedBytes(t *testing.T) {
	path, at := buildC(t, "-g", "-O2")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir, shared := t.TempDir(), NewShared()
	ask := func(i int) *nativeFile {
		name := filepath.Join(dir, fmt.Sprint("f", i))
		if err := os.WriteFile(name, data, 0o755); err != nil {
			t.Fatal(err)
		}
		n := NewNative(placed{oneFile{name, fmt.Sprint("f", i)}, ContentID{Inode: uint64(i + 1), Size: 1}}, nil)
		n.Share(shared)
		if fr := n.Resolve(walk.Frame{PC: at["out"], Kind: walk.KindNative}, nil); fr[len(fr)-1].Function != "out" {
			t.Fatalf("%+v", fr)
		}
		return n.files[FileID{1, 2}]
	}
	first := ask(0)
	size := first.size()
	if size < 500 || size > len(data)*20 {
		t.Fatalf("a file of %d bytes takes %d bytes of memory", len(data), size)
	}
	shared.limit = 4*size + size/2
	for i := 1; i < 4; i++ {
		ask(i)
	}
	if ask(0) != first {
		t.Error("the first file is read again")
	}
	for i := 4; i < 12; i++ {
		ask(i)
		if n := len(shared.files); n > 5 || n != len(shared.order) { // the last one is not counted yet
			t.Errorf("%d files of %d bytes are kept, %d in order, limit %d", n, size, len(shared.order), shared.limit)
		}
		if i < 6 && ask(0) != first {
			t.Error("a file that is asked for again and again is read again")
		}
	}
	if ask(0) == first {
		t.Error("a file that was not asked for any more is still kept")
	}
	shared.limit = size
	shared.trim()
	if len(shared.files) != 0 {
		t.Errorf("%d files are kept that take half of the room", len(shared.files))
	}
}
