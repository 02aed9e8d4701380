package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/outfile"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
)

// flushEvery is how long samples wait before they are written: together with the time for a batch
// it is less than a second.
const flushEvery = 700 * time.Millisecond

// streaming writes a recording to its file while it is being made. If candid is ended, or the disk
// is full, what was written until then is a valid file.
type streaming struct {
	out  *output
	say  func(string)
	path string // of the file, with links resolved

	begun   record.Begun
	losses  profile.Losses
	file    *outfile.File
	mine    os.FileInfo // which file it is
	grown   *watched    // the same, for the stream to write to
	stream  *jfr.Stream
	flushed time.Time
	until   time.Duration // up to when samples were flushed
	pending bool          // some samples have not been flushed
	whole   bool          // the profile is needed with all of its samples
	summed  time.Duration // up to when the profile may lack single samples
	placed  bool          // the file has its name
	named   func()        // called when it has; may be nil
	err     error
}

// streamOf starts a stream of each format that can grow.
var streamOf = map[string]func(jfr.Output, jfr.Source, func() jfr.Info) *jfr.Stream{
	"jfr": jfr.NewStream, "jfr.gz": jfr.NewPackedStream, "jfr.zst": jfr.NewZstdStream,
}

// streams reports whether a recording can be written as it comes: to a file, in a format that can
// grow.
func (o *output) streams() bool {
	if streamOf[o.name] == nil || o.path == "-" {
		return false
	}
	st, err := os.Stat(o.path)
	return err != nil || st.Mode().IsRegular()
}

func newStreaming(o *output, say func(string)) *streaming {
	s := &streaming{out: o, say: say, path: o.path}
	if real, err := filepath.EvalSymlinks(s.path); err == nil {
		s.path = real
	}
	return s
}

// Begin implements record.Live.
func (s *streaming) Begin(b record.Begun) { s.begun = b }

// Sample implements record.Live.
func (s *streaming) Sample(b *profile.Builder, sample profile.Sample) {
	s.pending = true
	if s.ready(b) {
		s.check(s.stream.Add(sample))
	}
}

// Kept implements record.Keeper.
func (s *streaming) Kept() bool {
	if s.whole || s.err != nil || !s.placed || s.pending {
		return false
	}
	s.summed = s.until
	return true
}

// Batch implements record.Live.
func (s *streaming) Batch(b *profile.Builder, now record.Progress) {
	s.losses = profile.Losses{Lost: now.Stats.Lost, Throttled: now.Stats.Throttled}
	if t := time.Now(); t.Sub(s.flushed) >= flushEvery && s.ready(b) {
		s.flushed = t
		if s.check(s.stream.Flush()); s.err == nil {
			s.until, s.pending = now.Elapsed, false
			s.check(s.place())
		}
	}
}

// ready opens the file, under a temporary name; false if there is none.
func (s *streaming) ready(b *profile.Builder) bool {
	if s.err != nil {
		return false
	}
	if s.file != nil {
		return true
	}
	place, err := outfile.Look(s.out.path)
	if err != nil {
		s.check(err)
		return false
	}
	f, err := place.Create()
	if err != nil {
		place.Close()
		s.check(err)
		return false
	}
	noteUnfinished(f)
	s.file, s.grown = f, &watched{file: f.File}
	// Wine does not know the volume of an open file any more when it has been renamed.
	s.mine, _ = f.Stat()
	jfr.MarkWritten(f.File)
	s.check(f.Chmod(s.out.flags.mode.mode()))
	s.stream = streamOf[s.out.name](s.grown, b, func() jfr.Info { return jfr.Info{Meta: b.Meta(), Events: s.begun.Events, Losses: s.losses} })
	return s.err == nil
}

// place gives the file its name, once the file can be read.
func (s *streaming) place() error {
	if s.placed {
		return nil
	}
	err := s.file.Keep(s.out.flags.force)
	s.placed = err == nil
	if s.placed && s.named != nil {
		s.named()
	}
	s.file.Drop() // a name that nobody asked for
	unfinished.Store(nil)
	return err
}

// check keeps the first error and prints it.
func (s *streaming) check(err error) {
	if err == nil || s.err != nil {
		return
	}
	s.err = err
	s.say(failedWrite(s.out.path, err).Error() + "; recording goes on and is saved elsewhere when it ends")
}

// finish writes the rest of what was recorded and returns the file's name.
func (s *streaming) finish(p *profile.Profile) (string, error) {
	if s.file == nil && s.err == nil {
		return s.out.write(p) // there was not even one batch
	}
	if s.err == nil {
		if s.err = s.stream.Finish(p); s.err == nil {
			s.err = s.place()
		}
	}
	var elsewhere string
	if s.err == nil {
		s.err = s.grown.intact()
	}
	if s.err == nil {
		elsewhere, s.err = s.rescue()
	}
	if s.file != nil {
		s.err = errors.Join(s.err, s.file.Close())
		if !s.placed {
			unfinished.Store(nil)
		}
	}
	if s.err == nil && elsewhere != "" {
		return "", &codedError{exitFailed, fmt.Errorf("another file has taken the place of %s; what was recorded was saved as %s", s.out.path, elsewhere)}
	}
	if s.err == nil {
		return s.out.path, nil
	}
	failure := failedWrite(s.out.path, s.err)
	cut := errors.Is(s.err, errCut)
	if s.placed && !cut {
		failure = fmt.Errorf("%w (it holds the first %v)", failure, s.until.Round(100*time.Millisecond))
	}
	if cut && uint64(len(p.Samples)) < p.SampleCount() {
		// Single samples were in the file only. Their sums are known.
		spare := *s.out
		spare.path = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(spare.path, ".gz"), ".zst"), ".jfr") + ".pb.gz"
		spare.name = "pprof"
		if path, err := spare.spare(spare.emitter(p)); err == nil {
			return "", fmt.Errorf("%w; what was recorded was saved as %s, without the times of its samples", failure, path)
		}
	}
	spare, err := s.out.spare(s.out.emitter(p))
	if err != nil {
		return "", fmt.Errorf("%w; nor could it be saved in %s: %w", failure, os.TempDir(), reasonOf(err))
	}
	if uint64(len(p.Samples)) < p.SampleCount() {
		return "", fmt.Errorf("%w; what was recorded after the first %v was saved as %s", failure, s.summed.Round(100*time.Millisecond), spare)
	}
	return "", fmt.Errorf("%w; the profile was saved as %s instead", failure, spare)
}

// errCut is the error of a recording whose file was truncated by somebody else.
var errCut = errors.New("it was truncated while it was recorded")

// watched is a file that detects truncation by others. Data written beyond the new end would be
// preceded by zeros: a file of the right size without its samples.
type watched struct {
	file *os.File
	size int64 // size after the last write
}

// intact checks that the file still holds everything that was written to it.
func (g *watched) intact() error {
	st, err := g.file.Stat()
	if err == nil && st.Size() < g.size {
		err = errCut
	}
	return err
}

// WriteAt implements jfr.Output.
func (g *watched) WriteAt(p []byte, off int64) (int, error) {
	if err := g.intact(); err != nil {
		return 0, err
	}
	n, err := g.file.WriteAt(p, off)
	g.size = max(g.size, off+int64(n))
	return n, err
}

// Truncate implements jfr.Output. A file that somebody has truncated is not extended again.
func (g *watched) Truncate(size int64) error {
	if errors.Is(g.intact(), errCut) {
		return nil
	}
	err := g.file.Truncate(size)
	if err == nil {
		g.size = size
	}
	return err
}

// rescue checks that the file still has its name. If somebody has removed it, it gets its name
// back; if another file has that name now, the file is saved elsewhere, and rescue returns where.
func (s *streaming) rescue() (elsewhere string, err error) {
	mine, err := s.file.Stat()
	if err != nil {
		return "", err
	}
	emit := func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(s.file, 0, mine.Size()))
		return err
	}
	there, err := os.Stat(s.path)
	switch {
	case err == nil && s.mine != nil && os.SameFile(s.mine, there):
		return "", nil
	case errors.Is(err, os.ErrNotExist):
		if err = writeOut(s.path, false, s.out.flags.mode.mode(), emit); err == nil {
			s.say(s.out.path + " was removed while it was recorded: it was written again")
			return "", nil
		}
	}
	return s.out.spare(emit)
}

// replace rewrites the file, with a part of what was recorded.
func (s *streaming) replace(p *profile.Profile) error {
	if err := writeOut(s.path, true, s.out.flags.mode.mode(), s.out.emitter(p)); err != nil {
		return failedWrite(s.out.path, err)
	}
	return nil
}
