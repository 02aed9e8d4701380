package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

// tellRemote prints remoteHint, if there is one.
func tellRemote(cmd *cobra.Command, page string) {
	if hint := remoteHint(page); hint != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "candid: "+hint)
	}
}

// remoteHint says how to see a page on this machine for a user who is connected over SSH; "" if
// there is no SSH connection, or there is a desktop.
func remoteHint(page string) string {
	if runtime.GOOS == "linux" && (os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "") {
		return ""
	}
	u, err := url.Parse(page)
	words := strings.Fields(os.Getenv("SSH_CONNECTION")) // client, its port, server, its port
	if err != nil || len(words) != 4 || net.ParseIP(words[2]) == nil {
		return ""
	}
	to := words[2]
	if user := os.Getenv("USER"); user != "" && !strings.ContainsAny(user, " \t\n'\"\\$`") {
		to = user + "@" + to
	}
	if port := words[3]; port != "22" && strings.Trim(port, "0123456789") == "" {
		to = "-p " + port + " " + to
	}
	return fmt.Sprintf("to open it where you sit, run there: ssh -N -L %s:127.0.0.1:%s %s", u.Port(), u.Port(), to)
}
