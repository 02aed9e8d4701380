package captures

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/format/jfr"
)

// A capture is found again by its service, whatever that is called, and by nothing else.
func TestNames(t *testing.T) {
	at := time.Date(2026, 3, 1, 14, 3, 20, 250e6, time.UTC)
	long := strings.Repeat("ä", 100)
	names := []string{"shop", "shop/eu", "shop_eu", "shop%2Feu", "../../etc", ".", "-", "shop~1", "a b\n", "ä #1", long, long + "1"}
	files := map[string]string{}
	for _, name := range names {
		file := Name(name, at)
		if other, twice := files[file]; twice {
			t.Errorf("captures of %q and %q have the name %s", name, other, file)
		}
		files[file] = name
		if filepath.Base(file) != file || len(file) > 255 {
			t.Errorf("%q gives %q, which is no file's name", name, file)
		}
		service, when, ok := parse(file)
		want := name
		if len(name) > mostEscaped {
			want = strings.Repeat("ä", cutEscaped/len("%C3%A4")) + "…"
		}
		if !ok || service != want || !when.Equal(at) {
			t.Errorf("%s is read as %q at %v, %v; want %q", file, service, when, ok, want)
		}
		for _, other := range names {
			if c := (Capture{File: file, From: when}); c.Of(other) != (name == other) {
				t.Errorf("a capture of %q is one of %q: %v", name, other, name != other)
			}
		}
	}
	for _, file := range []string{"", suffix, "20260301T140320.250Z-a.jfr", "20260301T140320.250Z-%.jfr.zst", "20260301T140320.250Z-%4.jfr.zst", "20260301T140320.250Z-%zz.jfr.zst", "20261301T140320.250Z-a.jfr.zst"} {
		if service, _, ok := parse(file); ok {
			t.Errorf("%q is read as a capture of %q", file, service)
		}
	}
}

// List returns what was made in a range of time, and says what is being written.
func TestList(t *testing.T) {
	store := t.TempDir()
	now := time.Now()
	if list, err := List(store, now, now.Add(time.Hour)); err != nil || list != nil {
		t.Fatalf("a store without captures has %v, %v", list, err)
	}
	dir := filepath.Join(store, Dir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(name string, at time.Time, lasted time.Duration) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("1234"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at.Add(lasted), at.Add(lasted)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	hour := func(n int) time.Time { return now.Add(time.Duration(n) * time.Hour).Truncate(time.Second) }
	for i := range 4 {
		put(Name("shop", hour(-5+i)), hour(-5+i), time.Minute)
	}
	put("notes.txt", hour(-3), 0)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, Name("link", hour(-3)))); err != nil {
		t.Fatal(err)
	}
	growing := put(Name("mail", now.Truncate(time.Millisecond)), now, 0)
	f, err := os.OpenFile(growing, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	jfr.MarkWritten(f)
	count := func(from, to time.Time) int {
		t.Helper()
		list, err := List(store, from, to)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if c := &list[i]; c.Size != 4 || !c.Of(c.Service) || i > 0 && !list[i-1].From.Before(c.From) || c.Written != (c.Service == "mail") {
				t.Errorf("capture %d: %+v", i, *c)
			}
		}
		return len(list)
	}
	for _, c := range []struct {
		from, to time.Time
		want     int
	}{
		{hour(-9), now.Add(time.Hour), 5},
		{hour(-5).Add(30 * time.Second), hour(-3), 2},
		{hour(-5).Add(2 * time.Minute), hour(-4), 0},
		{hour(-1), now.Add(time.Hour), 1},
	} {
		if got := count(c.from, c.to); got != c.want {
			t.Errorf("from %v to %v there are %d captures, want %d", c.from, c.to, got, c.want)
		}
	}
	complete := Name("shop", hour(-5))
	if p, err := Path(store, complete); err != nil || p != filepath.Join(dir, complete) {
		t.Errorf("%s, %v", p, err)
	}
	if _, err := Path(store, filepath.Base(growing)); err == nil || !strings.Contains(err.Error(), "still being made") {
		t.Errorf("a capture that is being written: %v", err)
	}
	f.Close()
	if _, err := Path(store, filepath.Base(growing)); err != nil {
		t.Errorf("a capture that was written: %v", err)
	}
	for _, name := range []string{"notes.txt", Name("link", hour(-3)), Name("none", now), "../" + complete, "x/../" + complete} {
		if p, err := Path(store, name); !errors.Is(err, ErrNone) {
			t.Errorf("%q: %s, %v", name, p, err)
		}
	}
}
