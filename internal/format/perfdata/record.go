package perfdata

import (
	"fmt"
	"math/bits"

	"github.com/candid-profiler/candid/internal/target"
)

// record handles one record in the order of the file.
func (r *reader) record(rec record) error {
	if err := r.gate.Pass(); err != nil {
		return err
	}
	if rec.typ >= firstOwn {
		return r.own(rec)
	}
	a := r.attrOf(rec)
	if a == nil {
		return nil
	}
	time := timeOf(a, rec)
	if time == 0 || time == ^uint64(0) {
		return r.happened(&queued{0, 0, rec, a})
	}
	r.queue.put(time, rec, a)
	return r.queue.crowded(r.happened)
}

// own handles a record of perf's own.
func (r *reader) own(rec record) error {
	c := cursor{b: rec.body}
	switch rec.typ {
	case recordFinishedRound:
		return r.queue.round(r.happened)
	case recordHeaderAttr:
		// The attr contains its size; the ids follow it.
		if len(rec.body) < minAttr {
			return fmt.Errorf("%w: an event described in %d bytes", ErrMalformed, len(rec.body))
		}
		n := min(max(int(le.Uint32(rec.body[4:])), minAttr), len(rec.body))
		return r.addAttr(rec.body[:n], rec.body[n:])
	case recordEventUpdate:
		const name = 2
		typ, id := c.u64(), c.u64()
		if a := r.byID[id]; a != nil && typ == name {
			a.name = cString(c.b)
		}
	case recordHeaderFeature:
		if bit := c.u64(); bit < numFeatures {
			return r.feature(int(bit), c.b)
		}
	case recordBuildID:
		r.buildID(rec.misc, rec.body)
	}
	return nil
}

// attrOf finds the event to which a record belongs.
func (r *reader) attrOf(rec record) *attr {
	if len(r.attrs) == 0 {
		return nil
	}
	a := r.attrs[0]
	if len(r.attrs) == 1 {
		return a
	}
	at := -1 // offset of the id
	switch {
	case rec.typ == recordSample && a.sampleType&sampleIdentifier != 0:
		at = 0
	case rec.typ == recordSample && a.sampleType&sampleID != 0:
		at = 8 * bits.OnesCount64(a.sampleType&(sampleIP|sampleTID|sampleTime|sampleAddr))
	case rec.typ != recordSample && a.flags&flagSampleIDAll != 0 && a.sampleType&sampleIdentifier != 0:
		at = len(rec.body) - 8
	case rec.typ != recordSample && a.flags&flagSampleIDAll != 0 && a.sampleType&sampleID != 0:
		at = len(rec.body) - 8 - 8*bits.OnesCount64(a.sampleType&(sampleStreamID|sampleCPU))
	}
	if at < 0 || at+8 > len(rec.body) {
		return a
	}
	if found := r.byID[le.Uint64(rec.body[at:])]; found != nil {
		return found
	}
	return a
}

// timeOf returns when a record happened, 0 if it does not say.
func timeOf(a *attr, rec record) uint64 {
	if a.sampleType&sampleTime == 0 {
		return 0
	}
	at := 8 * bits.OnesCount64(a.sampleType&(sampleIdentifier|sampleIP|sampleTID))
	if rec.typ != recordSample {
		n := a.sampleIDSize()
		if n == 0 || n > len(rec.body) {
			return 0
		}
		at = len(rec.body) - n + 8*bits.OnesCount64(a.sampleType&sampleTID)
	}
	if at+8 > len(rec.body) {
		return 0
	}
	return le.Uint64(rec.body[at:])
}

// The bits of misc.
const (
	miscMmapData    = 1 << 13 // of an MMAP: it holds no code
	miscCommExec    = 1 << 13 // of a COMM: the process has executed another program
	miscMmapBuildID = 1 << 14 // of an MMAP2: it has the file's build id
)

// happened handles a record in the order of time.
func (r *reader) happened(q *queued) error {
	if err := r.gate.Pass(); err != nil {
		return err
	}
	body := q.rec.body
	if q.rec.typ != recordSample {
		body = body[:len(body)-min(q.attr.sampleIDSize(), len(body))]
	}
	c := cursor{b: body}
	switch q.rec.typ {
	case recordSample:
		return r.sampled(q.attr, q.rec.misc, body)
	case recordMmap:
		pid := c.u32()
		c.u32()
		m := target.Mapping{Start: c.u64(), Perm: target.PermRead | target.PermExec}
		m.End = m.Start + c.u64()
		m.Offset = c.u64()
		m.Path = cString(c.b)
		if !c.short && q.rec.misc&miscMmapData == 0 {
			r.mapped(pid, q.rec.misc, m, 0, 0, "")
		}
	case recordMmap2:
		r.mmap2(&c, q.rec.misc)
	case recordComm:
		pid, tid := c.u32(), c.u32()
		if !c.short {
			r.procs.named(pid, tid, cString(c.b), q.rec.misc&miscCommExec != 0)
		}
	case recordFork:
		pid, parent, tid, parentTID := c.u32(), c.u32(), c.u32(), c.u32()
		if !c.short {
			r.procs.forked(pid, parent, tid, parentTID)
		}
	case recordExit:
		pid, _, tid := c.u32(), c.u32(), c.u32()
		if !c.short {
			r.procs.exited(pid, tid)
		}
	case recordLost:
		c.u64()
		r.lost += c.u64()
	case recordLostSamples:
		r.lostLate += c.u64()
	case recordThrottle:
		r.throttle++
	}
	return nil
}

func (r *reader) mmap2(c *cursor, misc uint16) {
	pid := c.u32()
	c.u32()
	m := target.Mapping{Start: c.u64()}
	m.End = m.Start + c.u64()
	m.Offset = c.u64()
	var dev, inode uint64
	id := ""
	if misc&miscMmapBuildID != 0 {
		if b := c.take(24); b != nil {
			id = fmt.Sprintf("%x", b[4:4+min(int(b[0]), 20)])
		}
	} else {
		dev = uint64(c.u32())<<20 | uint64(c.u32())
		inode = c.u64()
		c.u64() // its generation
	}
	const read, write, exec = 1, 2, 4
	prot := c.u32()
	for _, bit := range []struct {
		prot uint32
		perm target.Perm
	}{{read, target.PermRead}, {write, target.PermWrite}, {exec, target.PermExec}} {
		if prot&bit.prot != 0 {
			m.Perm |= bit.perm
		}
	}
	c.u32() // flags
	m.Path = cString(c.b)
	if !c.short && m.Perm&target.PermExec != 0 {
		r.mapped(pid, misc, m, dev, inode, id)
	}
}

// mapped records executable memory.
func (r *reader) mapped(pid uint32, misc uint16, m target.Mapping, dev, inode uint64, id string) {
	if m.End <= m.Start {
		return
	}
	if pid == ^uint32(0) || misc&modeMask == modeKernel {
		r.names.mapped(m)
		return
	}
	r.files.number(&m, dev, inode, id)
	r.procs.mapped(pid, m)
}
