// Package fileblocks reads small pieces of files without holding the files in memory.
//
// Symbol tables, unwind tables, debug information and Go's table of functions are large, and a profile
// needs little of each. A Reader caches the blocks that were used last; all Readers of the program share a fixed
// number of them. The files are read, not mapped: if a file is truncated while it is used, a read
// fails, where access to a mapping would be a fatal fault.
package fileblocks

import (
	"io"
	"io/fs"
	"sync"

	"github.com/candid-profiler/candid/internal/fileid"
)

const (
	blockSize = 4 << 10
	// shared is how many blocks all Readers share: 8 MB. The blocks that some forty programs of 30
	// MB need while they are sampled take half of it.
	shared = 2 << 10
	// slab is how many blocks are allocated together.
	slab = 64
)

// cache keeps blocks, and drops those that have not been used for long (by the clock algorithm). It
// may be used by several goroutines.
type cache struct {
	mu    sync.Mutex
	most  int // blocks
	at    map[key]int32
	slots []slot
	hand  int
	free  []byte // of the slab allocated last
	read  uint64 // blocks that were read from files
}

// key identifies a block.
type key struct {
	file  fileID
	block int64
}

// fileID identifies a file's content. own tells files without an identity apart.
type fileID struct {
	fileid.Content
	own uint64
}

type slot struct {
	key  key
	used bool // since the hand passed by
	n    int  // bytes that the file has there
	data []byte
}

// all is the cache of the whole program, so that several readers of the same file share its blocks.
var all = newCache(shared)

func newCache(most int) *cache { return &cache{most: most, at: map[key]int32{}} }

// copy copies the block's content at off and returns how many bytes the block holds; false if it is
// not cached.
func (c *cache) copy(k key, p []byte, off int) (copied, n int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.at[k]
	if !ok {
		return 0, 0, false
	}
	s := &c.slots[i]
	s.used = true
	if off < s.n {
		copied = copy(p, s.data[off:s.n])
	}
	return copied, s.n, true
}

// put caches a block.
func (c *cache) put(k key, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read++
	i, ok := c.at[k]
	if !ok {
		i = c.place()
		c.at[k] = i
	}
	s := &c.slots[i]
	s.key, s.used, s.n = k, true, copy(s.data, data)
}

// place returns a slot for a block, either an empty one or that of a block that it drops.
func (c *cache) place() int32 {
	if len(c.slots) < c.most {
		if len(c.free) == 0 {
			c.free = make([]byte, slab*blockSize)
		}
		c.slots = append(c.slots, slot{data: c.free[:blockSize:blockSize]})
		c.free = c.free[blockSize:]
		return int32(len(c.slots) - 1)
	}
	for {
		i := c.hand
		c.hand = (c.hand + 1) % len(c.slots)
		if s := &c.slots[i]; s.used {
			s.used = false
		} else {
			delete(c.at, s.key)
			return int32(i)
		}
	}
}

// Reader reads a file. It may be used by several goroutines.
type Reader struct {
	r     io.ReaderAt
	size  int64
	id    fileID
	cache *cache
}

// Size returns the size that the file had when it was opened, in bytes.
func (r *Reader) Size() int64 { return r.size }

// File is what Open needs of a file.
type File interface {
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}

// Open returns a Reader of f, which must stay open as long as the Reader is used. Blocks are cached
// under the identity that f has now: later writes to the file may not be seen.
func Open(f File) *Reader {
	r := &Reader{r: f, cache: all}
	if c, err := fileid.Of(f); err == nil {
		r.id.Content, r.size = c, c.Size
	}
	if r.id.Inode == 0 {
		r.id = all.anonymous()
	}
	return r
}

var lastOwn uint64

// anonymous returns a unique identity.
func (c *cache) anonymous() fileID {
	c.mu.Lock()
	defer c.mu.Unlock()
	lastOwn++
	return fileID{own: lastOwn}
}

// buffers are for reading blocks.
var buffers = sync.Pool{New: func() any { return new([blockSize]byte) }}

// ReadAt implements io.ReaderAt. Reads longer than a block bypass the cache.
func (r *Reader) ReadAt(p []byte, off int64) (int, error) {
	if len(p) > blockSize || off < 0 {
		return r.r.ReadAt(p, off)
	}
	done := 0
	for done < len(p) {
		at := off + int64(done)
		k := key{r.id, at / blockSize}
		in := int(at % blockSize)
		got, n, ok := r.cache.copy(k, p[done:], in)
		if !ok {
			buf := buffers.Get().(*[blockSize]byte)
			var err error
			n, err = r.r.ReadAt(buf[:], k.block*blockSize)
			if err != nil && err != io.EOF {
				buffers.Put(buf)
				return done, err
			}
			if in < n {
				got = copy(p[done:], buf[in:n])
			}
			r.cache.put(k, buf[:n])
			buffers.Put(buf)
		}
		done += got
		if done < len(p) && n < blockSize {
			return done, io.EOF
		}
	}
	return done, nil
}
