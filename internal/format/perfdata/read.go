package perfdata

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// Limits of what a file can make a reader hold.
const (
	maxNodes   = 32 << 20
	maxSamples = 16 << 20
	maxThreads = 1 << 20
	// maxAllFrames bounds the number of different places in code: real programs have some hundred
	// thousand.
	maxAllFrames = 4 << 20
)

var errTooLarge = errors.New("the file holds more than candid reads: 32 million stack nodes, 16 million samples, 4 million frames, a million threads")

const magic, magicSwapped = "PERFILE2", "2ELIFREP"

// Is reports whether a file with this beginning is a recording of perf.
func Is(head []byte) bool {
	return bytes.HasPrefix(head, []byte(magic)) || bytes.HasPrefix(head, []byte(magicSwapped))
}

// The file's header.
const (
	pipeHeader = 16
	fileHeader = 104
	atAttrSize = 16
	atAttrs    = 24
	atData     = 40
	atFlags    = 72
)

// Piped reports whether a file with this beginning was written into a pipe: such a file can be read
// from its beginning to its end.
func Piped(head []byte) bool {
	return len(head) >= pipeHeader && Is(head) && le.Uint64(head[8:]) == pipeHeader
}

// Read reads a recording of size bytes. The files that it names are looked up on this machine, to
// name its frames; frames of files that are not found are named by their address. Files whose
// content the recording does not identify must not have been changed since it was written; a zero
// time means that that is not known. The result has passed Check.
func Read(in io.ReaderAt, size int64, written time.Time) (*profile.Profile, error) {
	return ReadInto(profile.NewBuilder(), in, size, written)
}

// ReadInto is Read with an empty Builder of the caller, which may keep samples differently.
func ReadInto(b *profile.Builder, in io.ReaderAt, size int64, written time.Time) (*profile.Profile, error) {
	head := make([]byte, min(size, fileHeader))
	if _, err := in.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read perf.data: %w", err)
	}
	if Piped(head) {
		return ReadStream(b, io.NewSectionReader(in, 0, size), written)
	}
	r := newReader(b, written)
	defer r.close()
	return r.done(r.file(in, size, head))
}

// ReadStream reads a recording that perf wrote into a pipe; see ReadInto.
func ReadStream(b *profile.Builder, in io.Reader, written time.Time) (*profile.Profile, error) {
	r := newReader(b, written)
	defer r.close()
	return r.done(r.stream(in))
}

type reader struct {
	b     *profile.Builder
	gate  memlimit.Gate
	attrs []*attr
	byID  map[uint64]*attr
	about about
	files files
	names kernelNames
	procs processes
	queue queue

	modules int // files with samples that were reported

	settled  bool // the recorded machine has been compared with this one
	cut      bool
	sample   sample
	first    uint64 // time of the first sample
	last     uint64
	lost     uint64
	lostLate uint64 // from LOST_SAMPLES records
	throttle uint64
	copied   bool // stacks were copied
	bare     uint64
	weights  []uint64 // by event
	counts   []uint64
	kinds    []*attr // by event

	// For the sample that is being read.
	stack        walk.Stack
	kernel, user []uint64
	scratch      []symbol.Frame
	kernelSeen   bool
}

func newReader(b *profile.Builder, written time.Time) *reader {
	r := &reader{b: b, gate: b.Meter().Gate(), byID: map[uint64]*attr{}}
	r.files.init()
	r.files.written, r.files.meter = written, b.Meter()
	r.procs.init(r)
	return r
}

func (r *reader) close() {
	r.procs.close()
	r.names.close()
}

// done finishes the profile unless err is set.
func (r *reader) done(err error) (*profile.Profile, error) {
	if err != nil {
		return nil, fmt.Errorf("read perf.data: %w", err)
	}
	p := r.finish()
	if err := cmp.Or(r.b.Err(), p.Check()); err != nil {
		return nil, fmt.Errorf("read perf.data: %w", err)
	}
	return p, nil
}

// file reads a file with its sections.
func (r *reader) file(in io.ReaderAt, size int64, head []byte) error {
	if bytes.HasPrefix(head, []byte(magicSwapped)) {
		return errors.New("it was recorded on a big-endian machine, which candid does not read")
	}
	if len(head) < fileHeader || !Is(head) {
		return fmt.Errorf("%w: it is cut off", ErrMalformed)
	}
	u64 := func(at int) uint64 { return le.Uint64(head[at:]) }
	attrSize, attrs, attrsLen, data, dataLen := u64(atAttrSize), u64(atAttrs), u64(atAttrs+8), u64(atData), u64(atData+8)
	if attrSize < minAttr+16 || attrSize > 4096 || attrsLen/attrSize > maxAttrs || data > uint64(size) {
		return fmt.Errorf("%w: its header is wrong", ErrMalformed)
	}
	section := func(off, n, limit uint64) ([]byte, error) {
		if n > limit || off > uint64(size) || n > uint64(size)-off {
			return nil, fmt.Errorf("%w: %d bytes at %d of %d", ErrMalformed, n, off, size)
		}
		if err := r.b.Meter().Room(int(n)); err != nil {
			return nil, err
		}
		b := make([]byte, n)
		_, err := in.ReadAt(b, int64(off))
		return b, err
	}
	list, err := section(attrs, attrsLen, maxAttrs*4096)
	if err != nil {
		return fmt.Errorf("its events: %w", err)
	}
	for ; uint64(len(list)) >= attrSize; list = list[attrSize:] {
		at := list[attrSize-16:]
		ids, err := section(le.Uint64(at), le.Uint64(at[8:]), 8*maxIDs)
		if err != nil {
			return fmt.Errorf("its events: %w", err)
		}
		if err := r.addAttr(list[:attrSize-16], ids); err != nil {
			return err
		}
	}
	// perf writes the header again when it has finished: until then the data has no length, and
	// nothing follows it.
	if dataLen == 0 || dataLen > uint64(size)-data {
		r.cut = true
		dataLen = uint64(size) - data
	} else if err := r.features(head[atFlags:], data+dataLen, section); err != nil {
		return err
	}
	return r.records(io.NewSectionReader(in, int64(data), int64(dataLen)))
}

// features reads the features after the data.
func (r *reader) features(flags []byte, at uint64, section func(off, n, limit uint64) ([]byte, error)) error {
	for bit := range min(numFeatures, 8*len(flags)) {
		if flags[bit/8]>>(bit%8)&1 == 0 {
			continue
		}
		place, err := section(at, 16, 16)
		if err != nil {
			r.cut = true // the file was copied only in part; the samples are there
			return nil
		}
		at += 16
		switch bit {
		case featureBuildID, featureHostname, featureOSRelease, featureVersion, featureArch, featureCmdline, featureEventDesc, featureDirFormat, featureClockData:
			b, err := section(le.Uint64(place), le.Uint64(place[8:]), maxFeature)
			if err != nil {
				r.cut = true
				continue
			}
			if err := r.feature(bit, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// stream reads what was written into a pipe: all of it is records.
func (r *reader) stream(in io.Reader) error {
	head := make([]byte, pipeHeader)
	if _, err := io.ReadFull(in, head); err != nil || !Piped(head) {
		return fmt.Errorf("%w: it is cut off", ErrMalformed)
	}
	return r.records(in)
}

func (r *reader) records(in io.Reader) error {
	cut, err := each(newRecordReader(in), r.b.Meter(), r.record)
	if err != nil {
		return err
	}
	r.cut = r.cut || cut
	if len(r.attrs) == 0 {
		return fmt.Errorf("%w: it describes no event", ErrMalformed)
	}
	return r.queue.rest(r.happened)
}

func (r *reader) addAttr(b, ids []byte) error {
	if len(r.attrs) >= maxAttrs || len(r.byID)+len(ids)/8 > maxIDs {
		return fmt.Errorf("%w: %d events", ErrMalformed, len(r.attrs))
	}
	a, err := parseAttr(b)
	if err != nil {
		return err
	}
	r.attrs = append(r.attrs, a)
	for ; len(ids) >= 8; ids = ids[8:] {
		r.byID[le.Uint64(ids)] = a
	}
	return nil
}
