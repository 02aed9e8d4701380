package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// WriteJSON prints a Dump like encoding/json without the escapes for HTML, on one line or indented
// by two spaces, and escapes what a terminal does not print. A thousand threads come to megabytes, most of them repeated frames, and
// encoding/json takes as long for those as reading the threads took.
func (d *Dump) WriteJSON(w io.Writer, indent bool) error {
	j := &jsonWriter{w: w, indent: indent}
	j.open('{')
	j.string("schema", d.Schema)
	j.any("time", d.Time)
	j.string("host", d.Host)
	j.any("took_ms", d.TookMS)
	list(j, "processes", d.Processes, (*Process).json)
	j.close('}')
	j.b = append(j.b, '\n')
	j.flush()
	return j.err
}

func (p *Process) json(j *jsonWriter) {
	j.open('{')
	j.number("pid", int64(p.PID))
	j.string("command", p.Command)
	j.known("runtime", p.Runtime)
	list(j, "threads", p.Threads, (*Thread).json)
	j.number("count", int64(p.Count))
	j.any("stops", p.Stops)
	if p.Safepoint != nil {
		j.any("safepoint", p.Safepoint)
	}
	if len(p.Deadlocks) > 0 {
		j.any("deadlocks", p.Deadlocks)
	}
	if p.Async != nil {
		j.any("async", p.Async)
	}
	if len(p.Notes) > 0 {
		j.any("notes", p.Notes)
	}
	j.close('}')
}

func (t *Thread) json(j *jsonWriter) {
	j.open('{')
	j.number("tid", int64(t.TID))
	j.string("name", t.Name)
	j.known("os_name", t.OSName)
	j.string("kind", t.Kind)
	j.key("cpu_ns")
	j.b = strconv.AppendUint(j.b, t.CPU, 10)
	j.string("state", t.State)
	j.known("syscall", t.Syscall)
	if t.Java != nil {
		j.key("java")
		t.Java.json(j)
	}
	if t.DotNet != nil {
		j.key("dotnet")
		t.DotNet.json(j)
	}
	j.string("read", t.Read)
	if t.StoppedUS != 0 {
		j.any("stopped_us", t.StoppedUS)
	}
	j.known("error", t.Error)
	j.known("end", t.End)
	list(j, "frames", t.Frames, (*Frame).json)
	j.close('}')
}

func (v *Java) json(j *jsonWriter) {
	j.open('{')
	if v.ID != 0 {
		j.number("id", v.ID)
	}
	j.bool("daemon", v.Daemon)
	if v.Priority != 0 {
		j.number("priority", int64(v.Priority))
	}
	j.known("state", v.State)
	j.known("vm_state", v.VMState)
	j.locks(v.WaitsFor, v.Holds, v.Changed)
	if v.Virtual != nil {
		j.any("virtual", v.Virtual)
	}
	j.known("compiling", v.Compiling)
	if v.Tier != 0 {
		j.number("tier", int64(v.Tier))
	}
	j.close('}')
}

// locks writes the locks of a thread: the one that it waits for, nil for none, and those that it holds.
// changed says that they changed during the look.
func (j *jsonWriter) locks(waitsFor *Lock, holds []Lock, changed bool) {
	if waitsFor != nil {
		j.key("waits_for")
		waitsFor.json(j)
	}
	if len(holds) > 0 {
		list(j, "holds", holds, (*Lock).json)
	}
	if changed {
		j.bool("locks_changed", true)
	}
}

func (v *DotNet) json(j *jsonWriter) {
	j.open('{')
	if v.ID != 0 {
		j.number("id", v.ID)
	}
	j.locks(v.WaitsFor, v.Holds, v.Changed)
	j.close('}')
}

func (l *Lock) json(j *jsonWriter) {
	j.open('{')
	j.string("how", l.How)
	j.string("class", l.Class)
	j.key("address")
	j.b = strconv.AppendUint(j.b, l.Address, 10)
	j.known("owner", l.Owner)
	if l.OwnerTID != 0 {
		j.number("owner_tid", int64(l.OwnerTID))
	}
	if l.OwnerVirtual != nil {
		j.any("owner_virtual", l.OwnerVirtual)
	}
	j.close('}')
}

func (f *Frame) json(j *jsonWriter) {
	j.open('{')
	j.string("function", f.Function)
	j.known("raw", f.Raw)
	j.known("module", f.Module)
	j.known("file", f.File)
	if f.Line != 0 {
		j.number("line", int64(f.Line))
	}
	if f.BCI != nil {
		j.number("bci", int64(*f.BCI))
	}
	j.string("kind", f.Kind)
	if f.Guessed {
		j.bool("guessed", true)
	}
	j.close('}')
}

// flushAt is how many bytes of text are buffered before they are written.
const flushAt = 128 << 10

// jsonWriter appends JSON. After an error it writes no more.
type jsonWriter struct {
	w      io.Writer
	b      []byte
	indent bool
	depth  int
	begun  bool // the innermost braces already hold something
	err    error
}

func (j *jsonWriter) flush() {
	if j.err == nil && len(j.b) > 0 {
		_, j.err = j.w.Write(j.b)
	}
	j.b = j.b[:0]
}

func (j *jsonWriter) open(brace byte) {
	j.b = append(j.b, brace)
	j.depth++
	j.begun = false
}

func (j *jsonWriter) close(brace byte) {
	j.depth--
	if j.begun {
		j.line()
	}
	j.b = append(j.b, brace)
	j.begun = true
}

// blanks are enough for the deepest level: a lock's field.
const blanks = "\n                                "

func (j *jsonWriter) line() {
	if j.indent {
		j.b = append(j.b, blanks[:min(1+2*j.depth, len(blanks))]...)
	}
}

// next begins an element.
func (j *jsonWriter) next() {
	if j.begun {
		j.b = append(j.b, ',')
	}
	j.begun = true
	j.line()
}

func (j *jsonWriter) key(name string) {
	j.next()
	j.b = append(j.b, '"')
	j.b = append(j.b, name...)
	if j.indent {
		j.b = append(j.b, `": `...)
	} else {
		j.b = append(j.b, `":`...)
	}
}

// list writes an array, each element with write.
func list[T any](j *jsonWriter, name string, elements []T, write func(*T, *jsonWriter)) {
	j.key(name)
	if elements == nil {
		j.b = append(j.b, "null"...)
		return
	}
	j.open('[')
	for i := range elements {
		j.next()
		write(&elements[i], j)
		if len(j.b) >= flushAt {
			j.flush()
		}
	}
	j.close(']')
}

// known writes a text that is omitted if it is empty.
func (j *jsonWriter) known(name, s string) {
	if s != "" {
		j.string(name, s)
	}
}

func (j *jsonWriter) string(name, s string) {
	j.key(name)
	if !plainJSON(s) {
		j.value(s)
		return
	}
	j.b = append(j.b, '"')
	j.b = append(j.b, s...)
	j.b = append(j.b, '"')
}

// plainJSON reports whether a text needs no escapes in JSON.
func plainJSON(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (j *jsonWriter) number(name string, v int64) {
	j.key(name)
	j.b = strconv.AppendInt(j.b, v, 10)
}

func (j *jsonWriter) bool(name string, v bool) {
	j.key(name)
	j.b = strconv.AppendBool(j.b, v)
}

// any writes values that are rare, by encoding/json.
func (j *jsonWriter) any(name string, v any) {
	j.key(name)
	j.value(v)
}

func (j *jsonWriter) value(v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if j.indent {
		e.SetIndent(blanks[1:min(1+2*j.depth, len(blanks))], "  ")
	}
	if err := e.Encode(v); err != nil && j.err == nil {
		j.err = err
	}
	for _, r := range string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))) {
		if r == 0x7f || r > 0x7f && !unicode.IsPrint(r) && r <= 0xffff {
			// A terminal obeys some of these; encoding/json leaves them as they are. They can only
			// be in strings.
			j.b = fmt.Appendf(j.b, "\\u%04x", r)
		} else {
			j.b = utf8.AppendRune(j.b, r)
		}
	}
}
