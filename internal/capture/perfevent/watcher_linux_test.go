package perfevent

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// The thread that Go started first may be woken late, and no other.
func TestEaseWatcher(t *testing.T) {
	tid := watcher()
	if tid == 0 {
		t.Skip("the numbers of threads have begun anew")
	}
	if f, err := os.OpenFile(slackFile(tid), os.O_WRONLY, 0); err != nil {
		t.Skip(err) // the kernel does not have the file
	} else {
		f.Close()
	}
	slack := func(tid int) (int, error) {
		b, err := os.ReadFile(slackFile(tid))
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(string(b)))
	}
	before, err := slack(os.Getpid())
	if err != nil {
		t.Skip(err) // not permitted
	}
	easeWatcher()
	if got, err := slack(tid); err != nil || got != watcherSlack {
		t.Errorf("the watcher may be late by %d ns, %v", got, err)
	}
	if got, err := slack(os.Getpid()); err != nil || got != before {
		t.Errorf("the first thread may be late by %d ns, %v; it was %d", got, err, before)
	}
}
