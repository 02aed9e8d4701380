package format

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

// zeros is a file without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A file may unpack to as much as it likes up to a limit, and beyond that to what is in proportion to
// its size.
func TestProportionate(t *testing.T) {
	const free = 1 << 20
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.CopyN(z, zeros{}, 4*free); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		free int64
		want string
	}{{free, "200 times its size"}, {4 * free, ""}} {
		from := &counted{in: bytes.NewReader(packed.Bytes())}
		z, err := gzip.NewReader(from)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, &proportionate{in: z, packed: from, free: c.free})
		if got := ""; err != nil {
			got = err.Error()
			if c.want == "" || !strings.Contains(got, c.want) || n > 2*free {
				t.Errorf("%d: %d bytes, %v", c.free, n, err)
			}
		} else if c.want != "" {
			t.Errorf("%d: %d bytes are read", c.free, n)
		}
	}
	// A file that is not packed is in proportion.
	from := &counted{in: io.LimitReader(zeros{}, 4*free)}
	if n, err := io.Copy(io.Discard, &proportionate{in: from, packed: from, free: free}); err != nil || n != 4*free {
		t.Errorf("%d bytes, %v", n, err)
	}
}
