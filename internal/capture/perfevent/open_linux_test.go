package perfevent

import (
	"slices"
	"testing"
)

func TestParseCPUs(t *testing.T) {
	got, err := parseCPUs("0-2,5,7-8")
	if err != nil || !slices.Equal(got, []int{0, 1, 2, 5, 7, 8}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "a", "3-1", "0-99999999", "-1"} {
		if _, err := parseCPUs(bad); err == nil {
			t.Errorf("%q is a list of CPUs", bad)
		}
	}
}
