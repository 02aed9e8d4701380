package jfr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sort"
	"sync"

	"github.com/klauspost/compress/flate"
)

// maxMember is the maximum unpacked size of a member: a step's limit.
const maxMember = maxEvent + 1

// mostRoom bounds, together with twice its unpacked size, the size of a member: a file with holes
// may claim any size.
const mostRoom = 1 << 16

// member is a member of a packed file.
type member struct {
	at, size int64 // in the file
	from     int64 // in the unpacked file
	unpacked int64
	head     int64 // bytes before the compressed data
	hint     int64 // where in the member a checkpoint begins; 0: nowhere
	flag     byte
}

// Packed presents a packed recording of candid's unpacked. It may be written at the same time. It
// must not be used by several goroutines at once.
type Packed interface {
	io.ReaderAt
	// Size returns the unpacked size in bytes.
	Size() int64
	// grow finds what was added.
	grow() error
	// stored returns the least length of the file.
	stored() int64
	// portion returns the first part with events and candid's constants that begins at off or
	// later, if it begins before end.
	portion(off, end int64) (portion, error)
}

// portion is the part of a Packed that is read at once.
type portion struct {
	at, next int64  // where it begins, and where the next one may begin
	b        []byte // nil: there is none
	hint     int64  // where in it a checkpoint begins; 0: nowhere
}

// Sniffed is how many bytes of a file IsPacked needs.
const Sniffed = headerFrames

// ungzip is a Packed in gzip's format. Only what is read is unpacked.
type ungzip struct {
	in      io.ReaderAt
	members []member
	end     int64 // of the last member, in the file
	size    int64 // of everything unpacked

	content map[int]*content // by member
	order   []int            // the members in content, the oldest first
}

// content is the unpacked content of a member, once done is closed.
type content struct {
	b    []byte
	err  error
	done chan struct{}
}

// IsPacked reports whether a file with this beginning is a packed recording of candid's.
func IsPacked(head []byte) bool {
	return isZstd(head) || isGzip(head)
}

func isGzip(head []byte) bool {
	if len(head) < memberHead {
		return false
	}
	_, err := memberOf(head)
	return err == nil && head[atFlag] == memberHeader
}

var errNoMember = fmt.Errorf("%w: no packed part begins there", ErrMalformed)

// memberOf reads the beginning of a member.
func memberOf(b []byte) (member, error) {
	le := binary.LittleEndian
	length := int64(le.Uint16(b[10:]))
	if !bytes.Equal(b[:10], memberMark[:10]) || !bytes.Equal(b[12:atMemberSize], memberMark[12:atMemberSize]) || length < 4+extraData {
		return member{}, errNoMember
	}
	m := member{
		size: int64(le.Uint32(b[atMemberSize:])), unpacked: int64(le.Uint32(b[atUnpacked:])), hint: int64(le.Uint32(b[atHint:])),
		head: 12 + length, flag: b[atFlag],
	}
	switch {
	case m.size <= m.head+memberTail || m.size > m.head+2*m.unpacked+mostRoom || m.unpacked > mostRatio*m.size || m.unpacked > maxMember || m.unpacked == 0 || m.hint >= m.unpacked,
		m.flag == memberHeader && (m.unpacked != headerSize || m.size != m.head+storedHead+headerSize+memberTail):
		return member{}, errNoMember
	}
	return m, nil
}

// OpenPacked opens a file for which IsPacked returns true.
func OpenPacked(in io.ReaderAt) (Packed, error) {
	head := make([]byte, Sniffed)
	n, _ := in.ReadAt(head, 0)
	var p Packed = &ungzip{in: in, content: map[int]*content{}}
	if isZstd(head[:n]) {
		p = &unzstd{in: in}
	}
	if err := p.grow(); err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return p, nil
}

// Size implements Packed.
func (p *ungzip) Size() int64 { return p.size }

func (p *ungzip) stored() int64 { return p.end }

// grow finds the members that were added.
func (p *ungzip) grow() error {
	b := make([]byte, 64<<10)
	for {
		n, err := p.in.ReadAt(b, p.end)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		got := 0 // how many members begin in b
		for at := int64(0); at+memberHead <= int64(n); got++ {
			m, err := memberOf(b[at:])
			if err != nil {
				return nil
			}
			if end := at + m.size; end > int64(n) {
				var last [1]byte
				if _, err := p.in.ReadAt(last[:], p.end+m.size-1); errors.Is(err, io.EOF) {
					return nil // cut off
				} else if err != nil {
					return err
				}
			}
			m.at, m.from = p.end, p.size
			p.members = append(p.members, m)
			p.end += m.size
			p.size += m.unpacked
			at += m.size
		}
		if got == 0 {
			return nil
		}
	}
}

// find returns the index of the member that holds a byte.
func (p *ungzip) find(off int64) int {
	return sort.Search(len(p.members), func(i int) bool { return p.members[i].from+p.members[i].unpacked > off })
}

// ReadAt implements io.ReaderAt.
func (p *ungzip) ReadAt(b []byte, off int64) (n int, err error) {
	if off+int64(len(b)) > p.size {
		if err := p.grow(); err != nil {
			return 0, err
		}
	}
	for i := p.find(off); n < len(b); i++ {
		if i >= len(p.members) {
			return n, io.EOF
		}
		data, err := p.unpacked(i)
		if err != nil {
			return n, err
		}
		n += copy(b[n:], data[off+int64(n)-p.members[i].from:])
	}
	return n, nil
}

// How many members are unpacked in advance, their maximum size for that, and how many are kept.
const (
	ahead     = 3
	mostAhead = 16 << 20
	kept      = 2*ahead + 2
)

// unpacked returns the content of a member.
func (p *ungzip) unpacked(i int) ([]byte, error) {
	m := &p.members[i]
	if m.flag == memberHeader {
		return p.header(m)
	}
	c := p.begin(i)
	for j, n := i+1, 0; j < len(p.members) && n < ahead && m.flag == memberEvents; j++ {
		if next := &p.members[j]; next.flag == memberEvents && next.unpacked <= mostAhead {
			p.begin(j)
			n++
		}
	}
	<-c.done
	return c.b, c.err
}

// begin starts unpacking a member.
func (p *ungzip) begin(i int) *content {
	if c := p.content[i]; c != nil {
		return c
	}
	if len(p.order) >= kept {
		delete(p.content, p.order[0])
		p.order = append(p.order[:0], p.order[1:]...)
	}
	c := &content{done: make(chan struct{})}
	p.content[i] = c
	p.order = append(p.order, i)
	m := p.members[i]
	go func() {
		defer close(c.done)
		if c.b, c.err = m.unpack(p.in); c.err != nil {
			c.err = fmt.Errorf("unpack what is packed at byte %d: %w", m.at, c.err)
		}
	}()
	return c
}

// header reads a chunk's header, which may be changed at the same time: then its checksum is wrong.
func (p *ungzip) header(m *member) ([]byte, error) {
	const most = 100
	b := make([]byte, headerSize+memberTail)
	for range most {
		if _, err := p.in.ReadAt(b, m.at+m.head+storedHead); err != nil {
			return nil, err
		}
		if crc32.ChecksumIEEE(b[:headerSize]) == binary.LittleEndian.Uint32(b[headerSize:]) {
			return b[:headerSize], nil
		}
	}
	return nil, fmt.Errorf("%w: the header that is packed at byte %d has a wrong checksum", ErrMalformed, m.at)
}

// unpackers are readers of package flate: each has tables that are worth keeping.
var unpackers = sync.Pool{New: func() any { return flate.NewReader(nil) }}

func (m *member) unpack(in io.ReaderAt) ([]byte, error) {
	packed := make([]byte, m.size-m.head)
	if _, err := in.ReadAt(packed, m.at+m.head); err != nil {
		return nil, err
	}
	data, tail := packed[:len(packed)-memberTail], packed[len(packed)-memberTail:]
	b := make([]byte, m.unpacked)
	z := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(z)
	err := z.(flate.Resetter).Reset(bytes.NewReader(data), nil)
	if err == nil {
		_, err = io.ReadFull(z, b)
	}
	if err == nil {
		if n, _ := z.Read(make([]byte, 1)); n != 0 {
			err = errors.New("it is longer than it says")
		}
	}
	if err == nil && crc32.ChecksumIEEE(b) != binary.LittleEndian.Uint32(tail) {
		err = errors.New("its checksum is wrong")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return b, nil
}

// portion implements Packed. Members that hold the stacks for other readers are not unpacked.
func (p *ungzip) portion(off, end int64) (portion, error) {
	for i := p.find(off); i < len(p.members) && p.members[i].from < end; i++ {
		if m := &p.members[i]; m.flag == memberEvents {
			b, err := p.unpacked(i)
			return portion{at: m.from, next: m.from + m.unpacked, b: b, hint: m.hint}, err
		}
	}
	return portion{next: end}, nil
}
