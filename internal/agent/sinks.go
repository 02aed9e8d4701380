package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"time"

	"github.com/candid-profiler/candid/internal/agent/config"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/push"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/store"
)

// sinks are where profiles go.
type sinks struct {
	store  *store.Writer // nil: no history is kept
	pushes []*pushed
	labels map[string]string
}

// pushed is a server that profiles are pushed to.
type pushed struct {
	conf   config.Push
	pusher *push.Pusher
}

// openSinks opens the store and the pushes of a file.
func (a *Agent) openSinks(c *config.Config) (*sinks, error) {
	s := &sinks{labels: c.Labels}
	if c.Store.Dir != "" {
		w, err := a.openStore(c.Store)
		if err != nil {
			return nil, err
		}
		s.store = w
	}
	if err := a.openPushes(c, s); err != nil {
		return nil, errors.Join(err, s.close(0))
	}
	return s, nil
}

func (a *Agent) openStore(c config.Store) (*store.Writer, error) {
	return store.Create(c.Dir, store.Options{
		Keep: c.Keep, Max: c.Max, MinFree: c.MinFree.Bytes, MinFreePercent: c.MinFree.Share * 100,
		Log: func(line string) { a.o.Log("store: " + line) },
	})
}

// openPushes opens the pushes of a file. What waits to be sent is buffered beside the store.
func (a *Agent) openPushes(c *config.Config, s *sinks) error {
	for i, p := range c.Push {
		buffer := ""
		if c.Store.Dir != "" {
			buffer = filepath.Join(c.Store.Dir, "push", fmt.Sprintf("%d-%s", i, p.Type))
		}
		pusher, err := push.New(push.Config{
			Type: p.Type, URL: p.URL, Every: p.Every, TLS: push.TLS(p.TLS), TokenFile: p.TokenFile, Tenant: p.Tenant,
			Buffer: push.Buffer{Dir: buffer, Max: p.Buffer.Max, Age: p.Buffer.Age}, Probability: p.Probability,
		}, push.Options{Labels: a.labels(c), Log: func(line string) { a.o.Log(line) }})
		if err != nil {
			return fmt.Errorf("push %d (line %d): %w", i+1, p.Line, err)
		}
		s.pushes = append(s.pushes, &pushed{p, pusher})
	}
	return nil
}

// close stores and sends the rest, for at most that long.
func (s *sinks) close(atMost time.Duration) error {
	var err error
	if s.store != nil {
		err = s.store.Close()
	}
	return errors.Join(err, s.closePushes(atMost))
}

func (s *sinks) closePushes(atMost time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	done := make(chan error, len(s.pushes))
	for _, p := range s.pushes {
		go func() { done <- p.pusher.Close(ctx) }()
	}
	var err error
	for range s.pushes {
		err = errors.Join(err, <-done)
	}
	return err
}

// samePushes reports whether two files push the same.
func samePushes(a, b *config.Config) bool {
	if len(a.Push) != len(b.Push) || !maps.Equal(a.Labels, b.Labels) || a.Store.Dir != b.Store.Dir {
		return false
	}
	for i := range a.Push {
		x, y := a.Push[i], b.Push[i]
		x.Line, y.Line = 0, 0
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// changedSinks returns the sinks of a new file: those of the old one as far as they stay the same.
func (a *Agent) changedSinks(old, conf *config.Config) (*sinks, error) {
	s := *a.sinks
	same := true
	if old.Store != conf.Store {
		same = false
		switch {
		case conf.Store.Dir == "":
			s.store = nil
		case conf.Store.Dir == old.Store.Dir:
			// One directory has one writer.
			if err := a.sinks.store.Close(); err != nil {
				a.o.Log(fmt.Sprintf("store: %v", err))
			}
			w, err := a.openStore(conf.Store)
			if err != nil {
				if back, backErr := a.openStore(old.Store); backErr == nil {
					a.sinks.store = back
				}
				return nil, err
			}
			s.store, a.sinks.store = w, w
		default:
			w, err := a.openStore(conf.Store)
			if err != nil {
				return nil, err
			}
			s.store = w
		}
	}
	if !samePushes(old, conf) {
		same = false
		s.labels, s.pushes = conf.Labels, nil
		// A buffer on disk belongs to one pusher: the old ones are closed first.
		if err := a.sinks.closePushes(lastPushes); err != nil {
			a.o.Log(fmt.Sprintf("push: %v", err))
		}
		a.sinks.pushes = nil
		if err := a.openPushes(conf, &s); err != nil {
			if s.store != a.sinks.store {
				s.pushes = nil
				err = errors.Join(err, s.close(0))
			}
			if backErr := a.openPushes(old, a.sinks); backErr != nil {
				a.o.Log(fmt.Sprintf("push: %v", backErr))
			}
			return nil, err
		}
	}
	if same {
		return a.sinks, nil
	}
	return &s, nil
}

// leave closes what later sinks do not have.
func (s *sinks) leave(later *sinks) {
	if s != later && s.store != nil && s.store != later.store {
		_ = s.store.Close()
	}
}

// drop gives up new sinks that are not put in force.
func (s *sinks) drop(kept *sinks) error {
	if s == kept {
		return nil
	}
	kept.pushes = s.pushes // those of the old file are closed
	if s.store != nil && s.store != kept.store {
		return s.store.Close()
	}
	return nil
}

// take stores and pushes a part of the recording.
func (a *Agent) take(part *record.Result) {
	p := part.Profile
	from, to := p.Meta.Start, p.Meta.Start.Add(p.Meta.Duration)
	a.metrics.part(part)
	a.served.add(p, a.capture.exceeded)
	s := a.sinks
	if s.store != nil {
		if err := s.store.Append(p, func(i int) string { return serviceOf(p, i) }, from, to); err != nil {
			a.metrics.storeErrors.Add(1)
			a.o.Log(err.Error())
		} else {
			a.metrics.stored.Store(to.UnixNano())
		}
	}
	if len(s.pushes) > 0 && p.SampleCount() > 0 {
		w := push.Window{From: from, To: to, Profile: p, Of: a.labelled(p)}
		for _, t := range s.pushes {
			if err := t.pusher.Add(w); err != nil {
				a.o.Log(fmt.Sprintf("push to %s: %v", t.conf.URL, err))
			}
		}
	}
}

// serviceOf returns the service of a process of a profile.
func serviceOf(p *profile.Profile, process int) string {
	if process < 0 || process >= len(p.Processes) || p.Processes[process].Service == "" {
		return unknown
	}
	return p.Processes[process].Service
}

// labelled returns the service and the labels of threads for servers.
func (a *Agent) labelled(p *profile.Profile) func(*profile.Thread) (string, map[string]string, bool) {
	process := make(map[int]int, len(p.Processes))
	for i := range p.Processes {
		process[p.Processes[i].PID] = i
	}
	of := map[string]map[string]string{}
	return func(t *profile.Thread) (string, map[string]string, bool) {
		i, ok := process[t.PID]
		if !ok {
			return unknown, nil, true
		}
		id := p.Processes[i].Container
		labels, ok := of[id]
		if !ok && id != "" {
			c := a.names.Look(id)
			labels = map[string]string{"container.id": id[:min(len(id), 12)]}
			for name, value := range map[string]string{"k8s.namespace.name": c.Namespace, "k8s.pod.name": c.Pod, "k8s.container.name": c.Name} {
				if value != "" {
					labels[name] = value
				}
			}
			of[id] = labels
		}
		return serviceOf(p, i), labels, true
	}
}

// labels returns the labels of everything that is pushed.
func (a *Agent) labels(c *config.Config) map[string]string {
	l := map[string]string{}
	if h := hostname(); h != "" {
		l["host.name"] = h
	}
	maps.Copy(l, c.Labels)
	return l
}
