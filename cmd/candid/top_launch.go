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

// openOutput opens what takes the output of the program that top launches: it has to
// go somewhere, for the terminal is drawn on.
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

// ending is how sampling ended.
type ending struct {
	res *record.Result
	err error
}

const (
	// justEnded is how long a program that has ended by itself may take to be known to.
	justEnded = 100 * time.Millisecond
	// sayAfter is after how long of waiting that is told.
	sayAfter = time.Second
)

// waitingFor is what is said then.
const waitingFor = "the program was asked to end (SIGTERM); waiting for it, press Ctrl-C to kill it"

// endProgram ends the program that was launched, if there is one and it has not
// ended by itself, and gives its exit code as an error; failure goes first. A program
// was asked to end if the user had seen enough of it, so its code then says nothing.
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
		_ = end.res.Signal(syscall.SIGTERM) // it may have ended just now
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
