package jfr

import (
	"github.com/candid-profiler/candid/internal/profile"
)

func (c *constants) kind(k kind, events []profile.Event) uint64 {
	id, ok := c.kindOf[k]
	if !ok {
		for c.nextKind++; isEvent(c.nextKind); c.nextKind++ {
			// These numbers are skipped, see own.
		}
		id = c.nextKind
		c.kindOf[k] = id
		call := c.syscall(k.call)
		name := ""
		if int(k.event) < len(events) {
			name = events[k.event].Name
		}
		c.kinds.entry(uint64(id))
		c.kinds.b = appendString(c.kinds.b, name)
		c.kinds.long(uint64(k.state) + 1)
		c.kinds.long(call)
		c.kinds.long(uint64(k.end) + 1)
		c.kinds.flag(k.flags&profile.Stitched != 0)
		c.kinds.flag(k.flags&profile.Guessed != 0)
		c.kinds.int(int32(k.event))
		c.kinds.flag(k.flags&profile.Continued != 0)
		c.kinds.flag(k.flags&profile.Unnamed != 0)
		if all := c.src.Labels(); int(k.call) < len(all) && len(all[k.call]) > 0 {
			c.kinds.b = appendString(c.kinds.b, profile.FormatLabels(all[k.call]))
		} else {
			c.kinds.b = append(c.kinds.b, stringNull)
		}
	}
	return uint64(id)
}

// isEvent reports whether a number is the type of an event.
func isEvent(n uint32) bool {
	return n >= typeExecutionSample && n <= typeActiveSetting || n >= typeObservation && n < uint32(typeObservation+len(profile.ObservationKinds))
}

// syscall returns the number of a system call's name, which is its index; 0: none. The name is "" for
// samples that have only labels.
func (c *constants) syscall(i uint16) uint64 {
	if i == 0 {
		return 0
	}
	c.haveCall = at(c.haveCall, uint32(i))
	if !c.haveCall[i] {
		c.haveCall[i] = true
		c.syscalls.entry(uint64(i))
		c.syscalls.b = appendString(c.syscalls.b, c.src.Syscalls()[i])
	}
	return uint64(i)
}

// thread returns the number of a thread under its current name.
func (c *constants) thread(i uint32) uint64 {
	c.threadOf = at(c.threadOf, i)
	if c.threadOf[i] == 0 {
		c.nextThread++
		c.threadOf[i] = c.nextThread
		t := &c.src.Threads()[i]
		p := &c.threads
		p.entry(uint64(c.nextThread))
		p.b = appendString(p.b, t.Name)
		p.long(uint64(t.TID))
		if t.Kind == "java" {
			p.b = appendString(p.b, t.Name)
		} else {
			p.b = append(p.b, stringNull)
		}
		p.long(0) // the Java thread's number, which only the program knows
		p.long(uint64(t.PID))
		p.long(uint64(i))
	}
	return uint64(c.threadOf[i])
}

// renamed makes the next sample of a thread write its name again.
func (c *constants) renamed(i int) {
	if i < len(c.threadOf) {
		c.threadOf[i] = 0
	}
}
