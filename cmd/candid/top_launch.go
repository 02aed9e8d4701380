package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/candid-profiler/candid/internal/record"
)

// openOutput opens the destination for the output of the program that top launches: it cannot go to
// the terminal, which is drawn on.
func (f *topFlags) openOutput() (*os.File, error) {
	name := f.output
	if name == "" {
		name = os.DevNull
	}
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, fs.FileMode(0o666))
	if err != nil {
		return nil, failed(fmt.Errorf("keep what the program prints: %w; choose another --output", err))
	}
	return out, nil
}

// ending is the outcome of sampling.
type ending struct {
	res *record.Result
	err error
}

const (
	// justEnded is how long it may take until it is known that a program has ended by itself.
	justEnded = 100 * time.Millisecond
	// sayAfter is how long the wait lasts before waitingFor is printed.
	sayAfter = time.Second
)

// waitingFor is the message while candid waits for the program.
const waitingFor = "the program was asked to end (SIGTERM); waiting for it, press Ctrl-C to kill it"

// endProgram ends the launched program, if there is one and it has not ended by itself, and returns
// its exit code as an error; failure takes precedence. If the user quit, the program was asked to
// end, so its code then says nothing.
func endProgram(o *record.Options, end ending, failure error, say func(string)) error {
	if len(o.Command) == 0 {
		return failure
	}
	failure = launchFailure(true, failure)
	if end.res == nil {
		return failure
	}
	type exit struct {
		code int
		err  error
	}
	done := make(chan exit, 1)
	go func() {
		code, _, err := end.res.Wait()
		done <- exit{code, err}
	}()
	var e exit
	select {
	case e = <-done:
	case <-time.After(justEnded):
		interrupts := make(chan os.Signal, 4)
		signal.Notify(interrupts, stopSignals...)
		defer signal.Stop(interrupts)
		_ = end.res.Signal(syscall.SIGTERM) // it may have just ended
		patience := time.AfterFunc(sayAfter, func() {
			say(waitingFor)
		})
		defer patience.Stop()
		for waiting := true; waiting; {
			select {
			case e = <-done:
				waiting = false
			case <-interrupts:
				_ = end.res.Signal(os.Kill)
			}
		}
		e.code = 0
	}
	switch {
	case failure != nil:
		return failure
	case e.err != nil:
		return &codedError{exitCandidFailed, e.err}
	case e.code != 0:
		return &codedError{e.code, nil}
	}
	return nil
}
