package main

import (
	"io"
	"strings"
	"testing"
)

// If a shell variable is empty, a flag takes the next flag as its value: that is reported in one
// line, not what is wrong with that value.
func TestSwallowedFlags(t *testing.T) {
	for line, want := range map[string]string{
		"record -p -d 1s":           `-p got no process id: it took "-d", the next flag, as its value; is a variable of the shell empty? 'candid ps' lists processes`,
		"record 1 -p --duration 1s": `-p got no process id: it took "--duration", the next flag`,
		"top -p --once":             `-p got no process id: it took "--once", the next flag`,
		"dump -p --json":            `-p got no process id: it took "--json", the next flag`,
		"record --pid= -d 1s":       `-p got no process id: its value is empty`,
		"record -p 1 -o -d 1s":      `-o got no FILE: it took "-d", the next flag`,
		"record -p 1 -e -d 1s":      `-e got no NAME: it took "-d", the next flag`,
		"record -p 1 -F -d 1s":      `-F got no HZ: it took "-d", the next flag`,
		"record -d -p 1":            `-d got no TIME: it took "-p", the next flag`,
		"record -d 1s -p":           `-p has no process id behind it`,
		"convert a.jfr -o --force":  `-o got no FILE: it took "--force", the next flag`,
		"record -p -x":              `"-x" is not a process id`, // that is not a flag
	} {
		root := newRoot()
		root.SetArgs(strings.Fields(line))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		err := root.Execute()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("candid %s: %v\nwant %s", line, err, want)
		}
	}
}
