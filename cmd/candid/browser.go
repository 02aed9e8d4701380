package main

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/priority"
)

// openBrowser asks the desktop to show an address. Everyone may read the arguments of other users'
// programs, and the address has the token that gives access to the recording: so the browser gets the
// name of a file that only its user may read, which leads to the address. remove removes that file.
func openBrowser(url string) (remove func(), err error) {
	command := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open"}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	if runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return nil, fmt.Errorf("there is no desktop here: neither DISPLAY nor WAYLAND_DISPLAY is set")
	}
	file, err := leadTo(url)
	if err != nil {
		return nil, err
	}
	c := exec.Command(command[0], append(command[1:], file)...)
	if err := c.Start(); err != nil {
		os.Remove(file)
		return nil, err
	}
	priority.Child(c.Process.Pid)
	go func() { _ = c.Wait() }() // it prints its messages in its own window
	remove = sync.OnceFunc(func() { os.Remove(file) })
	time.AfterFunc(readBy, remove)
	return remove, nil
}

// readBy is how long after it was asked for a browser has certainly read the file.
const readBy = 2 * time.Minute

// leadTo writes a page that leads to an address, and returns its name. Only this user may read it.
func leadTo(url string) (string, error) {
	f, err := os.CreateTemp("", "candid-*.html") // 0600
	if err != nil {
		return "", fmt.Errorf("write the page that leads to the address: %w", err)
	}
	quoted := html.EscapeString(url)
	_, err = fmt.Fprintf(f, `<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>candid</title>
<meta http-equiv="refresh" content="0;url=%s"><a href="%s">The recording is here.</a>
`, quoted, quoted)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("write the page that leads to the address: %w", err)
	}
	return f.Name(), nil
}
