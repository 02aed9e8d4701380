package symbol

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/walk"
)

// placed is oneFile with a content, so that it is shared.
type placed struct {
	oneFile
	content fileid.Content
}

func (o placed) Locate(f walk.Frame) (Place, bool) {
	p, ok := o.oneFile.Locate(f)
	p.Content = o.content
	return p, ok
}

// The files that are kept for other processes are bounded in bytes: the least recently requested
// goes first, and one that is too large goes at once.
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
		n := NewNative(placed{oneFile{name, fmt.Sprint("f", i)}, fileid.Content{ID: fileid.ID{Inode: uint64(i + 1)}, Size: 1}}, nil)
		n.Share(shared)
		if fr := n.Resolve(walk.Frame{PC: at["out"], Kind: walk.KindNative}, nil); fr[len(fr)-1].Function != "out" {
			t.Fatalf("%+v", fr)
		}
		return n.files[fileid.ID{Dev: 1, Inode: 2}]
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

// The memory of files in use can be freed: the least recently used files go, and are read again
// when something new in them is requested.
func TestShrink(t *testing.T) {
	path, at := buildC(t, "-g", "-O2")
	shared := NewShared()
	var all []*Native
	ask := func(n *Native, name string) {
		t.Helper()
		if fr := n.Resolve(walk.Frame{PC: at[name], Kind: walk.KindNative}, nil); fr[len(fr)-1].Function != name || fr[len(fr)-1].Line == 0 {
			t.Errorf("%+v, want %s", fr, name)
		}
	}
	for i := range 6 {
		n := NewNative(placed{oneFile{path, fmt.Sprint("f", i)}, fileid.Content{ID: fileid.ID{Inode: uint64(i + 1)}, Size: 1}}, nil)
		n.Share(shared)
		ask(n, "out")
		all = append(all, n)
	}
	whole := shared.Held()
	ask(all[0], "out") // the most recently used
	shared.Shrink(whole / 2)
	if held := shared.Held(); held > whole/2 || held == 0 {
		t.Errorf("%d bytes of %d are held where half of it may be", held, whole)
	}
	released := 0
	for i, n := range all {
		nf := n.files[fileid.ID{Dev: 1, Inode: 2}]
		if nf.released {
			released++
		}
		if nf.released != (nf.f == nil) || nf.released != (i >= 1 && i <= 3) {
			t.Errorf("file %d: released %v", i, nf.released)
		}
		// A file that was released is read again, which may have ended by the time that Prepare asks.
		was := nf.released
		ready := n.Prepare(walk.Frame{PC: at["main"]})
		if now := n.files[fileid.ID{Dev: 1, Inode: 2}]; !ready && !was || ready && now.f == nil {
			t.Errorf("file %d: released %v, ready %v", i, was, ready)
		}
		ask(n, "main")
		ask(n, "out")
		if notes := n.Notes(); len(notes) > 0 {
			t.Errorf("file %d: %v", i, notes)
		}
	}
	if released != 3 || shared.Held() < whole {
		t.Errorf("%d files were released, and now take %d bytes of %d", released, shared.Held(), whole)
	}
	if shared.Shrink(0); shared.Held() != 0 || len(shared.files) != 0 {
		t.Errorf("%d bytes are held, %d files", shared.Held(), len(shared.files))
	}
	for _, n := range all {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}
