package fileid

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// A file keeps its identity however often it is opened. Another file, and the same file once it was written,
// have another, even if size and time of the last write were made the same.
func TestOf(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) Content {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		return of(t, path)
	}
	one, two := write("one", "1"), write("two", "2")
	if one == two || one.ID == (ID{}) || one.Size != 1 {
		t.Errorf("%+v and %+v", one, two)
	}
	if again := of(t, filepath.Join(dir, "one")); again != one {
		t.Errorf("%+v, then %+v", one, again)
	}
	time.Sleep(20 * time.Millisecond) // the kernel's clock of files may have a tick of 10 ms
	if changed := write("one", "3"); changed.ID != one.ID || runtime.GOOS != "windows" && changed == one {
		t.Errorf("%+v, then %+v", one, changed)
	}
}

func of(t *testing.T, path string) Content {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := Of(f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
