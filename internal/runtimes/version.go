package runtimes

import (
	"bytes"
	"debug/buildinfo"
	"encoding/binary"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/target"
)

// liveVersion reads a version from the process's memory, at the address of an exported variable; ""
// if there is no version.
type liveVersion struct {
	read func(m target.Reader, addr uint64) string
}

// pythonVersion reads Py_Version, an unsigned long like 0x030b02f0 for 3.11.2
// (PY_VERSION_HEX in "API and ABI Versioning" of Python's manual).
var pythonVersion = liveVersion{func(m target.Reader, addr uint64) string {
	var b [4]byte
	if m.ReadAt(b[:], addr) != nil {
		return ""
	}
	v := binary.LittleEndian.Uint32(b[:])
	if v>>24 < 2 || v>>24 > 9 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", v>>24, v>>16&0xff, v>>8&0xff)
}}

// nodeVersion reads node::per_process::metadata, whose first member is
// versions.node, a std::string: pointer and length in every libstdc++ since GCC 5.
var nodeVersion = liveVersion{func(m target.Reader, addr uint64) string {
	var b [16]byte
	if m.ReadAt(b[:], addr) != nil {
		return ""
	}
	at, n := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	if n == 0 || n > maxVersion {
		return ""
	}
	text := make([]byte, n)
	if m.ReadAt(text, at) != nil {
		return ""
	}
	return plain(string(text))
}}

// rubyVersion reads ruby_version, the characters themselves.
var rubyVersion = liveVersion{func(m target.Reader, addr uint64) string {
	text := make([]byte, 16)
	if m.ReadAt(text, addr) != nil {
		return ""
	}
	s, _, _ := strings.Cut(string(text), "\x00")
	return plain(s)
}}

const maxVersion = 64

var versionForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*(_[0-9]+)?`)

// plain cuts a version down to its numbers; "" if it does not begin with one.
func plain(s string) string {
	if len(s) > maxVersion {
		s = s[:maxVersion]
	}
	return versionForm.FindString(s)
}

// goVersion reads the version that the Go linker has written into a program.
func goVersion(r io.ReaderAt) string {
	info, err := buildinfo.Read(r)
	if err != nil {
		return ""
	}
	v := strings.TrimPrefix(info.GoVersion, "go")
	if len(v) > maxVersion || v == info.GoVersion {
		return plain(v)
	}
	v, _, _ = strings.Cut(v, " ") // experiments follow
	return v
}

var pathVersion = regexp.MustCompile(`(?:python|/)([0-9]+\.[0-9]+(?:\.[0-9]+)?)(?:[-/m.]|$)`)

// versionInPath finds the last number of the form 8.0.11 or python3.9 in a path.
func versionInPath(name string) string {
	all := pathVersion.FindAllStringSubmatch(name, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

// hotspotVersion returns the version of a JDK: from the release file of its directory, or if there
// is none or the JDK has been replaced since, from the text that the VM's build compiled into it.
func hotspotVersion(p *target.Process, m target.Module, f *fileFacts) string {
	if f.version != "" {
		return f.version
	}
	if !m.Deleted {
		// libjvm.so lies in lib/server (since 9), lib/ARCH/server or jre/lib/ARCH/server.
		dir := path.Dir(m.Path)
		for range 5 {
			if dir = path.Dir(dir); dir == "/" || dir == "." {
				break
			}
			if v := releaseVersion(p, path.Join(dir, "release")); v != "" {
				f.version = v
				return v
			}
		}
	}
	x, _ := m.Executable()
	file, err := p.OpenFile(x)
	if err != nil {
		return ""
	}
	defer file.Close()
	f.version = compiledVersion(file)
	return f.version
}

// releaseVersion reads JAVA_VERSION="17.0.15" from a JDK's release file.
func releaseVersion(p *target.Process, name string) string {
	file, err := p.OpenInRoot(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil {
		return ""
	}
	return parseRelease(text)
}

func parseRelease(text []byte) string {
	for line := range bytes.Lines(text) {
		if v, ok := bytes.CutPrefix(line, []byte("JAVA_VERSION=")); ok {
			return plain(strings.Trim(string(bytes.TrimSpace(v)), `"`))
		}
	}
	return ""
}

// jreMark precedes the version in the VM's own description of itself, "OpenJDK 64-Bit Server VM
// (17.0.15+6) for linux-amd64 JRE (17.0.15+6), built on …"
// (src/hotspot/share/runtime/abstract_vm_version.cpp; vm_version.cpp in JDK 8).
var jreMark = []byte(" JRE (")

// compiledVersion searches the constants of a libjvm for its version.
func compiledVersion(r io.ReaderAt) string {
	file, err := objfile.Open(r)
	if err != nil {
		return ""
	}
	s := file.Section(".rodata")
	if s == nil || s.Packed() {
		return ""
	}
	content := file.SectionReader(s)
	const maxConstants = 256 << 20
	size := min(s.Size, maxConstants)
	buf := make([]byte, min(1<<20, size+maxVersion+1))
	for off := uint64(0); off < size; off += uint64(len(buf)) - maxVersion {
		n, _ := content.ReadAt(buf[:min(uint64(len(buf)), size-off)], int64(off))
		text := buf[:n]
		for {
			i := bytes.Index(text, jreMark)
			if i < 0 {
				break
			}
			text = text[i+len(jreMark):]
			if v := plain(string(text[:min(len(text), maxVersion)])); strings.Contains(v, ".") || strings.Contains(v, "_") || v != "" && bytes.HasPrefix(text[len(v):], []byte("+")) {
				return v
			}
		}
		if n == 0 {
			break
		}
	}
	return ""
}
