package main

import (
	"runtime"
	"testing"
)

func TestRemoteHint(t *testing.T) {
	const page = "http://127.0.0.1:7997/0123/#tab=methods"
	for _, c := range []struct{ connection, user, display, want string }{
		{"", "ann", "", ""},
		{"10.0.0.9 51022 10.0.0.5 22", "ann", "", "to open it where you sit, run there: ssh -N -L 7997:127.0.0.1:7997 ann@10.0.0.5"},
		{"fe80::9 51022 2001:db8::5 2222", "", "", "to open it where you sit, run there: ssh -N -L 7997:127.0.0.1:7997 -p 2222 2001:db8::5"},
		{"10.0.0.9 51022 10.0.0.5 22", "a$(b)", "", "to open it where you sit, run there: ssh -N -L 7997:127.0.0.1:7997 10.0.0.5"},
		{"10.0.0.9 51022 nowhere 22", "ann", "", ""},
		{"10.0.0.9 51022 10.0.0.5", "ann", "", ""},
		{"10.0.0.9 51022 10.0.0.5 22", "ann", ":0", ""},
	} {
		if c.display != "" && runtime.GOOS != "linux" {
			continue // desktops have no such variable there
		}
		t.Setenv("SSH_CONNECTION", c.connection)
		t.Setenv("USER", c.user)
		t.Setenv("DISPLAY", c.display)
		t.Setenv("WAYLAND_DISPLAY", "")
		if got := remoteHint(page); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
