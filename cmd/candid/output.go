package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/outfile"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/report"
)

// outputFlags are the flags of every command that writes a profile.
type outputFlags struct {
	path    string
	format  string
	force   bool
	threads bool
	suffix  bool
	mode    modeFlag
}

func (f *outputFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&f.path, "output", "o", "", "`FILE` to write; '-' is standard output")
	fl.StringVar(&f.format, "format", "", "`NAME` of the format, if the extension does not say it")
	fl.BoolVar(&f.force, "force", false, "overwrite the file if it is there")
	fl.Var(&f.mode, "mode", "who may read the file, as for chmod: `MODE` 644 lets everybody")
	fl.BoolVarP(&f.threads, "threads", "t", false, "split by thread")
	fl.BoolVar(&f.suffix, "kinds", false, "in collapsed files: mark each frame's kind (_[j] _[i] _[k] _[1])")
}

// output is a place for a profile that has been checked to be writable.
type output struct {
	path  string
	name  string // of the format
	flags *outputFlags
}

// open checks, before anything is recorded, that the file can be written.
func (f *outputFlags) open() (*output, error) {
	if f.path == "" {
		return nil, usage("give -o FILE")
	}
	if st, err := os.Stat(f.path); err == nil && st.IsDir() {
		return nil, &codedError{exitFailed, fmt.Errorf("cannot write %s: it is a directory", f.path)}
	}
	name, err := format.ForPath(f.path, f.format)
	if err != nil {
		return nil, &codedError{exitUsage, pictured(err, f.path, f.format)}
	}
	o := &output{f.path, name, f}
	if f.path == "-" || throughSystem(f.path) {
		return o, nil
	}
	place, err := outfile.Look(f.path)
	if err != nil {
		return nil, failedWrite(f.path, err)
	}
	defer place.Close()
	switch {
	case place.Kind == outfile.Regular && !f.force:
		return nil, &codedError{exitFailed, fmt.Errorf("%s exists; --force overwrites it", f.path)}
	case place.Kind == outfile.Special:
		return o, nil // opened when there is something to write
	}
	tmp, err := place.Create()
	if err != nil {
		return nil, failedWrite(f.path, err)
	}
	tmp.Close()
	return o, nil
}

// throughSystem reports whether a path is one of the system's names for a device or for something
// that is open already, such as /dev/stdout, /dev/null, or /dev/fd/63 of a shell's process
// substitution: it is opened as it is.
func throughSystem(path string) bool {
	path = filepath.Clean(path)
	if strings.HasPrefix(path, "/dev/shm/") || strings.HasPrefix(path, "/dev/mqueue/") {
		return false // anybody may write there
	}
	st, err := os.Stat(path)
	named := strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/self/fd/")
	return (named || path == os.DevNull) && err == nil && !st.Mode().IsRegular()
}

// pictured adds to the error for an unknown format what candid writes instead: people ask for a
// flame graph by the name or extension that other tools use.
func pictured(err error, path, name string) error {
	wanted := strings.ToLower(name)
	if wanted == "" {
		wanted = strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	}
	switch wanted {
	case "svg", "flamegraph", "flame", "png":
		if name == "" {
			return fmt.Errorf("a flame graph is one HTML file here, not .%s: write -o %s.html", wanted, strings.TrimSuffix(path, filepath.Ext(path)))
		}
		return fmt.Errorf("a flame graph is one HTML file here: write -o flame.html, or --format html instead of %s", name)
	}
	return err
}

// write writes the profile and returns the name of the file. The file appears whole or not at all;
// if its disk is full, the profile goes to the directory for temporary files and the error says so.
func (o *output) write(p *profile.Profile) (string, error) { return o.put(o.emitter(p)) }

// put writes the output of emit, as write does.
func (o *output) put(emit func(io.Writer) error) (string, error) {
	name := o.path
	var err error
	if o.path == "-" {
		name = "standard output"
		err = emit(os.Stdout)
	} else {
		err = writeOut(o.path, o.flags.force, o.flags.mode.mode(), emit)
	}
	if err == nil {
		return name, nil
	}
	spare, spareErr := o.spare(emit)
	if spareErr != nil {
		return "", fmt.Errorf("%w; nor could it be saved in %s: %w", failedWrite(name, err), os.TempDir(), reasonOf(spareErr))
	}
	return "", fmt.Errorf("%w; the profile was saved as %s instead", failedWrite(name, err), spare)
}

// tell prints what was written, unless it went to standard output.
func (o *output) tell(w io.Writer, name string) {
	if o.path == "-" {
		return
	}
	size := ""
	if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() {
		size = " (" + report.Size(uint64(st.Size())) + ")"
	}
	fmt.Fprintf(w, "candid: wrote %s%s\n", report.Clean(name), size)
}

// emitter returns a function that writes a profile in the output's format.
func (o *output) emitter(p *profile.Profile) func(io.Writer) error {
	return func(w io.Writer) error {
		return format.Write(w, o.name, p, format.Options{Threads: o.flags.threads, Kinds: o.flags.suffix})
	}
}

// spare writes the profile to the directory for temporary files, under an unused name.
func (o *output) spare(emit func(io.Writer) error) (string, error) {
	base := filepath.Base(o.path)
	if o.path == "-" {
		base = "candid." + o.name
	}
	name := base + "-*"
	if stem, ext, ok := strings.Cut(base, "."); ok {
		name = stem + "-*." + ext
	}
	f, err := os.CreateTemp(os.TempDir(), name)
	if err != nil {
		return "", err
	}
	if err := errors.Join(emit(f), f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// unfinished is the name of a file that is being written, which is removed if candid is ended in
// the middle; nil if there is none.
var unfinished atomic.Pointer[string]

// writeOut writes a file, which gets its name when it is complete, or through a pipe or a device.
func writeOut(path string, force bool, mode os.FileMode, emit func(io.Writer) error) error {
	if throughSystem(path) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(emit(f), f.Close())
	}
	place, err := outfile.Look(path)
	if err != nil {
		return err
	}
	if place.Kind == outfile.Special {
		defer place.Close()
		f, err := place.Open()
		if err != nil {
			return err
		}
		return errors.Join(emit(f), f.Close())
	}
	f, err := place.Create()
	if err != nil {
		place.Close()
		return err
	}
	noteUnfinished(f)
	defer unfinished.Store(nil)
	// Formats write to a file in place: they look for an *os.File.
	if err = errors.Join(emit(f.File), f.Chmod(mode)); err == nil {
		err = f.Keep(force)
	}
	return errors.Join(err, f.Close())
}

// noteUnfinished keeps the name of a file that is being written, if it has one.
func noteUnfinished(f *outfile.File) {
	if name := f.Unfinished(); name != "" {
		unfinished.Store(&name)
	}
}

// reasonOf returns an error without the name of the file, which may be a temporary one.
func reasonOf(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func failedWrite(path string, err error) error {
	err = reasonOf(err)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, outfile.ErrOthers) {
		return &codedError{exitPermission, fmt.Errorf("cannot write %s: %w; choose another place with -o", path, err)}
	}
	return &codedError{exitFailed, fmt.Errorf("cannot write %s: %w; choose another place with -o", path, err)}
}
