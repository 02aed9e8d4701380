package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
)

const (
	// harmless is what a file has in place of hostile while it is written; they are equally long.
	harmless = "QQQQQQQQ"
	// hostile clears a terminal, then begins a command by one character of eight bits, and rings.
	hostile = "\x1b[2J\u009b\a\b"
)

// taking is a profile with that text in each of its strings.
func taking() *profile.Profile {
	b := profile.NewBuilder()
	p := b.Profile()
	p.Events = []profile.Event{{Name: "cpu" + harmless, Kind: profile.EventCPU, Unit: "nanoseconds", Period: 1000}}
	*b.Meta() = profile.Meta{Start: time.Unix(1e9, 0), Duration: time.Second, Host: "host" + harmless, Engine: "engine" + harmless,
		Describe: "describe" + harmless, Command: "command" + harmless, Version: "1" + harmless, Notes: []string{"note" + harmless}}
	b.AddProcess(profile.Process{PID: 7, Command: "process" + harmless, Runtime: "runtime" + harmless})
	b.Observe(profile.Observation{Kind: profile.InitialSystemProperty, Process: 0, Values: []profile.Value{profile.Text("key" + harmless), profile.Text("value" + harmless)}})
	node := uint32(profile.RootNode)
	for _, name := range []string{"outer", "inner"} {
		f := profile.Func{Name: name + harmless, Raw: "raw" + harmless, Signature: "(" + harmless + ")", Module: "lib" + harmless + ".so", File: "file" + harmless + ".c"}
		node = b.Node(node, b.Frame(profile.Frame{Func: b.Func(f), Line: 3, BCI: -1}))
	}
	for i := range 50 {
		b.Add(profile.Sample{Time: uint64(i) * 1e6, Thread: b.Thread(7, 8, "thread"+harmless), Node: node, Weight: 1000, State: profile.StateSleeping, Syscall: b.Syscall("call" + harmless)})
	}
	return b.Finish()
}

// controls returns what of output could take over a terminal; "" if nothing. JSON's escapes do nothing
// there.
func controls(output []byte, text bool) string {
	for _, s := range []string{hostile, "\x1b[2J", "2J\x9b", "\u009b"} {
		if !text && s == "\u009b" {
			break // may be part of a number
		}
		if i := bytes.Index(output, []byte(s)); i >= 0 {
			return string(output[max(0, i-30):min(len(output), i+30)])
		}
	}
	for i, c := range output {
		if text && (c < ' ' && c != '\n' && c != '\t' || c == 0x7f) {
			return string(output[max(0, i-30):min(len(output), i+30)])
		}
	}
	return ""
}

// No page, no terminal and no file that candid writes has a control byte that a hostile file has.
func TestNoControlBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inputs := map[string][]byte{
		"script.txt": []byte(strings.Repeat("prog 123/123 1.0: 10 cpu-clock: \n\t ffff func+0x1 (/lib/x.so)\n\n", 100) + "prog" + hostile + " 123/123 1.0: 10 cpu-clock" + hostile + ": \n\t ffff func" + hostile + "+0x1 (/lib/x" + hostile + ".so)\n\n"),
		// The message quotes these.
		"wrong.collapsed":       []byte("a" + hostile + ";b" + hostile + " 5\nno number " + hostile + "\n"),
		"wrong.speedscope.json": []byte(`{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"` + strings.ReplaceAll(hostile, "\x1b", `\u001b`) + `"}]}`),
	}
	for name, file := range map[string]string{"jfr": "x.jfr", "pprof": "x.pb.gz", "speedscope": "x.speedscope.json", "collapsed": "x.collapsed"} {
		var b bytes.Buffer
		if err := format.Write(&b, name, taking(), format.Options{Threads: true}); err != nil {
			t.Fatal(err)
		}
		data := b.Bytes()
		if z, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			if data, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		to := hostile
		if name == "speedscope" {
			to = `\u001b[2J\u009b\u0007\b`
		}
		if !bytes.Contains(data, []byte(harmless)) {
			t.Fatalf("%s does not hold the text as it is", name)
		}
		if name == "collapsed" { // a file that begins with these is not taken for text
			data = append(bytes.Repeat([]byte("a;b 1\n"), 1000), data...)
		}
		inputs[file] = bytes.ReplaceAll(data, []byte(harmless), []byte(to))
	}
	for name, data := range inputs {
		in := filepath.Join(dir, name)
		if err := os.WriteFile(in, data, 0o600); err != nil {
			t.Fatal(err)
		}
		check := func(args ...string) {
			r := candid(t, args...)
			if bad := controls([]byte(r.out), true); bad != "" {
				t.Errorf("%v: standard output has %q", args, bad)
			}
			if bad := controls([]byte(r.err), true); bad != "" {
				t.Errorf("%v: standard error has %q", args, bad)
			}
			if wrong := strings.HasPrefix(name, "wrong"); wrong != (r.code != exitOK) {
				t.Errorf("%v: exit code %d\n%s", args, r.code, r.err)
			}
		}
		check("report", in)
		check("report", "--view", "tree", "--threads", in)
		check("report", "--json", in)
		check("diff", in, in)
		check("diff", "--json", in, in)
		if strings.HasPrefix(name, "wrong") {
			continue
		}
		for _, to := range []string{"jfr", "pb.gz", "collapsed", "speedscope.json", "firefox.json", "otlp", "html", "txt", "json"} {
			out := filepath.Join(dir, name+"."+to)
			check("convert", in, "-o", out)
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if z, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
				if data, err = io.ReadAll(z); err != nil {
					t.Fatal(err)
				}
			}
			if bad := controls(data, to != "jfr" && to != "pb.gz" && to != "otlp"); bad != "" {
				t.Errorf("%s as %s has %q", name, to, bad)
			}
		}
	}
}

// Neither has what is recorded of a target whose names are hostile.
func TestNoControlBytesOfTargets(t *testing.T) {
	t.Parallel()
	able(t)
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "p"+hostile)
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "argument"+hostile)
	c.Env = append(os.Environ(), actAs+"=spin")
	p := start(t, c)
	p.wait(t, "ready")
	for _, args := range [][]string{
		{"record", "-p", p.pid(), "-d", "500ms", "-F", "500", "-o", "-", "--format", "collapsed"},
		{"record", "-p", p.pid(), "-d", "500ms", "-F", "500", "-o", "-", "--format", "json"},
		{"record", "-p", p.pid(), "-d", "500ms", "-F", "500", "-o", "-", "--format", "jfr"},
		{"record", "-d", "500ms", "-o", "-", "--format", "collapsed", "--", "/nothing" + hostile},
		{"top", "--once", "-p", p.pid(), "-d", "500ms"}, {"dump", "-p", p.pid()}, {"dump", "--json", "-p", p.pid()}, {"ps"}, {"ps", "--json"},
		{"report", filepath.Join(dir, "none"+hostile)}, {"report", "--filter" + hostile}, {"nothing" + hostile},
	} {
		r := candid(t, args...)
		if bad := controls([]byte(r.out), args[len(args)-1] != "jfr"); bad != "" {
			t.Errorf("%v: standard output has %q", args, bad)
		}
		if bad := controls([]byte(r.err), true); bad != "" {
			t.Errorf("%v: standard error has %q", args, bad)
		}
	}
}
