package main

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/target"
)

// Exit codes of every command.
const (
	exitOK         = 0
	exitFailed     = 1
	exitUsage      = 2
	exitPermission = 3
	exitNoTarget   = 4
	exitNoSamples  = 5
	exitEarly      = 6 // everything is saved, but the recording did not end as requested

	// Exit codes of a command that launches a program, as in env(1) and timeout(1).
	exitCandidFailed  = 125
	exitNotExecutable = 126
	exitNotFound      = 127
)

// codedError is an error with its exit code. If err is nil, candid exits without a message.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *codedError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &codedError{exitUsage, fmt.Errorf(format, args...)}
}

// failed returns an error with the exit code of its kind.
func failed(err error) error {
	var coded *codedError
	if err == nil || errors.As(err, &coded) {
		return err
	}
	code := exitFailed
	if errors.Is(err, syscall.EMFILE) && !errors.Is(err, target.ErrFiles) {
		err = fmt.Errorf("%w%s", err, filesHint())
	}
	switch {
	case errors.Is(err, target.ErrPermission), errors.Is(err, capture.ErrPermission):
		code = exitPermission
	case errors.Is(err, target.ErrNoProcess), errors.Is(err, target.ErrZombie), errors.Is(err, target.ErrKernelThread),
		errors.Is(err, syscall.ESRCH): // it ended during the attachment
		code = exitNoTarget
	}
	return &codedError{code, err}
}
