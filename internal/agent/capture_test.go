package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/agent/config"
	"github.com/candid-profiler/candid/internal/agent/service"
	"github.com/candid-profiler/candid/internal/store/captures"
)

// A service is captured when it has used too much for long enough without a pause, later if other captures are under
// way, and not again for a while.
func TestThresholds(t *testing.T) {
	conf := config.Default()
	conf.Store.Dir = t.TempDir()
	conf.Capture.When = []config.Threshold{{Line: 3, Service: "shop-*", CPUs: 1.5, For: time.Minute, Duration: time.Second, Rate: 99, Pause: time.Hour}}
	var mu sync.Mutex
	var said []string
	a := &Agent{conf: conf, names: service.NewContainers(t.TempDir()), o: Options{Log: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, line)
	}}}
	c := &a.capture
	c.a = a
	c.ctx, c.cancel = context.WithCancel(t.Context())
	defer c.end()
	// part ends a part of half a minute, and returns whether a capture was begun, or refused.
	part := func(name string, cpus float64) string {
		c.exceeded(name, cpus, 30*time.Second)
		c.exceeded("", 0, 30*time.Second)
		c.background.Wait()
		mu.Lock()
		defer mu.Unlock()
		all := strings.Join(said, "; ")
		said = nil
		begun := strings.Contains(all, "capturing it")
		switch {
		case begun && strings.Contains(all, "under way already"):
			return "busy"
		case begun && strings.Contains(all, "there is no service"):
			return "begun"
		case all == "":
			return ""
		}
		return all
	}
	c.running.Store(int32(conf.Capture.Concurrent))
	for i, p := range []struct {
		name string
		cpus float64
		want string
	}{
		{"shop-eu", 1.6, ""}, // for half of the time
		{"shop-eu", 1.4, ""},
		{"shop-eu", 1.6, ""}, // from the beginning
		{"mail", 9, ""},      // no rule; the other one is not sampled at all
		{"mail", 9, ""},
		{"shop-eu", 1.6, ""},
		{"shop-eu", 1.6, "busy"},
		{"shop-eu", 1.6, "busy"}, // at once
		{"free", 0, ""},
		{"shop-eu", 1.6, ""}, // it was not sampled for a while: from the beginning
		{"shop-eu", 1.6, "begun"},
		{"shop-eu", 1.6, ""}, // paused
		{"shop-eu", 1.6, ""},
		{"shop-us", 2, ""},
		{"shop-us", 2, "begun"}, // another service
	} {
		if p.name == "free" {
			c.running.Store(0)
		}
		if p.want == "begun" {
			a.conf.Capture.When[0].Line++ // the file was read again
		}
		if got := part(p.name, p.cpus); got != p.want {
			t.Errorf("part %d, %s at %g CPUs: %q, want %q", i, p.name, p.cpus, got, p.want)
		}
	}
	if got := c.refused.Load(); got != 4 {
		t.Errorf("%d captures were refused, want 4", got)
	}
}

// Captures are deleted with the history, and the oldest ones if they take more than a quarter of the store; the newest
// one stays.
func TestClean(t *testing.T) {
	conf := config.Default()
	conf.Store.Dir, conf.Store.Keep, conf.Store.Max = t.TempDir(), 24*time.Hour, 4000
	c := &capturer{a: &Agent{conf: conf}}
	c.clean() // there are none
	dir := filepath.Join(conf.Store.Dir, captures.Dir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(hours, size int) {
		at := time.Now().Add(-time.Duration(hours) * time.Hour)
		file := filepath.Join(dir, captures.Name(fmt.Sprint("h", hours), at))
		if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	left := func() string {
		c.clean()
		list, err := captures.List(conf.Store.Dir, time.Time{}, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range list {
			names = append(names, c.Service)
		}
		return strings.Join(names, " ")
	}
	put(30, 10)
	put(23, 10)
	put(5, 600)
	put(4, 300)
	if got := left(); got != "h23 h5 h4" {
		t.Errorf("of captures of which one is too old, %s stay", got)
	}
	put(3, 200)
	if got := left(); got != "h4 h3" {
		t.Errorf("of captures that are too many, %s stay", got)
	}
	put(2, 9000)
	if got := left(); got != "h2" {
		t.Errorf("of captures of which the newest is too large, %s stay", got)
	}
}
