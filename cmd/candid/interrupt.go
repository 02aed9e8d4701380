package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
)

// interrupts makes signals end a recording. The first one that asks candid to stop ends the
// recording, which is then saved; another one during that ends candid at once. A launched program
// gets every signal that candid gets.
type interrupts struct {
	ch      chan os.Signal
	cancel  context.CancelFunc
	onFirst func()

	mu    sync.Mutex
	pass  func(os.Signal) error // to the launched program; nil if there is none
	asked bool
	saved bool
}

// interruptible returns a context that ends with the first signal to stop.
func interruptible(parent context.Context, launching bool, onFirst func()) (context.Context, *interrupts) {
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithCancel(parent)
	in := &interrupts{ch: make(chan os.Signal, 16), cancel: cancel, onFirst: onFirst}
	var wanted []os.Signal
	for _, s := range stopSignals {
		// Under nohup a hangup ends nothing. Shells start background commands with Ctrl-C ignored:
		// a launched program inherits that, but without one the signal can only be meant for
		// candid.
		if signal.Ignored(s) && (s != os.Interrupt || launching) {
			continue
		}
		wanted = append(wanted, s)
	}
	if launching {
		for _, s := range passedSignals {
			if !signal.Ignored(s) {
				wanted = append(wanted, s)
			}
		}
	}
	if len(wanted) > 0 { // Notify without a list means all signals
		signal.Notify(in.ch, wanted...)
	}
	go func() {
		for sig := range in.ch {
			in.take(sig)
		}
	}()
	return ctx, in
}

// passTo sets the function that passes signals to the launched program.
func (in *interrupts) passTo(pass func(os.Signal) error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pass = pass
}

// done says that everything is saved: from here on candid only waits for the launched program, and
// signals go to that program.
func (in *interrupts) done() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.saved = true
}

func (in *interrupts) stop() {
	signal.Stop(in.ch)
	in.cancel()
}

func (in *interrupts) take(sig os.Signal) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.pass != nil && !fromTerminal(sig) {
		_ = in.pass(sig) // it may have ended
	}
	switch {
	case in.saved || !slices.Contains(stopSignals, sig):
	case !in.asked:
		in.asked = true
		in.onFirst()
		in.cancel()
	default:
		if name := unfinished.Load(); name != nil {
			os.Remove(*name)
		}
		os.Exit(128 + signalNumber(sig))
	}
}
