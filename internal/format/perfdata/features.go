package perfdata

import "fmt"

// Features of a file that are read, by their bit.
const (
	featureBuildID   = 2
	featureHostname  = 3
	featureOSRelease = 4
	featureVersion   = 5
	featureArch      = 6
	featureCmdline   = 11
	featureEventDesc = 12
	featureDirFormat = 24
	featureClockData = 29
	numFeatures      = 256
)

// Limits of what a file can make a reader hold.
const (
	maxFeature = 64 << 20 // bytes
	maxAttrs   = 1 << 12
	maxIDs     = 1 << 20
	maxFiles   = 1 << 16
)

// about is what the features contain about the machine and the recording.
type about struct {
	host, release, version, arch string
	command                      []string
	// wall is the time of day, ns since 1970, at the time at of the samples' clock.
	wall, at uint64
}

// feature reads the content of a feature.
func (r *reader) feature(bit int, b []byte) error {
	c := cursor{b: b}
	switch bit {
	case featureHostname:
		r.about.host = c.text()
	case featureOSRelease:
		r.about.release = c.text()
	case featureVersion:
		r.about.version = c.text()
	case featureArch:
		r.about.arch = c.text()
	case featureCmdline:
		for n := c.u32(); n > 0 && !c.short; n-- {
			r.about.command = append(r.about.command, c.text())
		}
	case featureClockData:
		c.u32() // the version
		c.u32() // which clock
		r.about.wall, r.about.at = c.u64(), c.u64()
	case featureEventDesc:
		return r.eventDesc(&c)
	case featureBuildID:
		return r.buildIDs(b)
	case featureDirFormat:
		return fmt.Errorf("it is part of a directory (perf record --threads), which candid does not read")
	}
	return nil
}

// eventDesc reads the names of events: by the ids in samples, otherwise by their order.
func (r *reader) eventDesc(c *cursor) error {
	n, size := c.u32(), c.u32()
	for i := uint32(0); i < n && !c.short; i++ {
		c.take(uint64(size))
		ids := c.u32()
		name := c.text()
		list := takeList(c, uint64(ids), 8)
		if c.short {
			break
		}
		var a *attr
		if ids > 0 {
			a = r.byID[le.Uint64(list)]
		}
		if a == nil && n == uint32(len(r.attrs)) {
			a = r.attrs[i]
		}
		if a != nil && a.name == "" {
			a.name = name
		}
	}
	if c.short {
		return fmt.Errorf("%w: the names of its events are cut off", ErrMalformed)
	}
	return nil
}

// miscBuildIDSize means that a build id is shorter than 20 bytes.
const miscBuildIDSize = 1 << 15

// buildIDs reads the build ids of files: records of their own kind.
func (r *reader) buildIDs(b []byte) error {
	for len(b) >= 8 {
		misc, size := le.Uint16(b[4:]), int(le.Uint16(b[6:]))
		if size < 8 || size > len(b) {
			return fmt.Errorf("%w: the build ids of its files are cut off", ErrMalformed)
		}
		r.buildID(misc, b[8:size])
		b = b[size:]
	}
	return nil
}

// buildID reads one: the process (of a guest), 20 bytes of id, its size, and the file's path.
func (r *reader) buildID(misc uint16, b []byte) {
	if len(b) < 28 || len(r.files.ids) >= maxFiles {
		return
	}
	n := 20
	if misc&miscBuildIDSize != 0 {
		n = min(int(b[24]), 20)
	}
	r.files.ids[cString(b[28:])] = fmt.Sprintf("%x", b[4:4+n])
}
