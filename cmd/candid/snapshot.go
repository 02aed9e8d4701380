package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/snapshot"
	"github.com/candid-profiler/candid/internal/symbol"
)

// openSnapshots opens a file if it holds snapshots, and returns nil otherwise.
func openSnapshots(path string) *os.File {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	var head [8]byte
	if n, _ := f.ReadAt(head[:], 0); snapshot.Is(head[:n]) {
		return f
	}
	f.Close()
	return nil
}

// reportSnapshots walks the stacks in a file again, and prints what is found beside what was found when
// they were saved. The exit code is exitFailed if that differs.
func reportSnapshots(cmd *cobra.Command, path string, f *os.File) error {
	var other string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name != maxMemory {
			other = flag.Name
		}
	})
	if other != "" {
		return usage("--%s is for profiles; %s is a stack that was saved", other, path)
	}
	meter := memlimit.Start()
	b, err := io.ReadAll(io.LimitReader(meter.Reader(f), snapshot.MaxFile+1))
	meter.Stop()
	var list []*snapshot.Snapshot
	if err == nil {
		list, err = snapshot.Decode(b)
	}
	if err != nil {
		return failed(fmt.Errorf("read %s: %w", path, err))
	}
	different := false
	for i, s := range list {
		text, same := replayed(s)
		if i > 0 {
			text = "\n" + text
		}
		different = different || !same
		if _, err := io.WriteString(cmd.OutOrStdout(), text); err != nil {
			return failed(err)
		}
	}
	if different {
		return &codedError{exitFailed, nil}
	}
	return nil
}

// replayed walks one stack again and describes it. same reports whether it is what it was.
func replayed(s *snapshot.Snapshot) (text string, same bool) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%d), thread %d", orUnknown(s.Comm), s.Capture.PID, s.Capture.TID)
	for _, part := range []string{s.Title, s.OS + "/" + s.Capture.Regs.Arch.String(), s.Note} {
		if part != "" {
			b.WriteString(" · " + symbol.Printable(part))
		}
	}
	b.WriteString("\nwhen it was saved:\n")
	indent := func(lines string) {
		for line := range strings.Lines(lines) {
			b.WriteString("  " + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	indent(s.Want.String())
	got, err := s.Replay()
	switch {
	case err != nil:
		fmt.Fprintf(&b, "walked by this candid: %s\n", oneLine(err.Error()))
		return b.String(), false
	case got.Equal(s.Want):
		b.WriteString("walked by this candid: the same\n")
		return b.String(), true
	}
	b.WriteString("walked by this candid (- when it was saved, + now):\n")
	indent(s.Want.Diff(got))
	return b.String(), false
}

func orUnknown(name string) string {
	if name == "" {
		return "[unknown]"
	}
	return symbol.Printable(name)
}
