package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestOpenKeepsTheToken: whoever reads the arguments of the program that view --open starts does not
// get at the recording; the file that they name is for its user only, and leads there.
func TestOpenKeepsTheToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	tool := "#!/bin/sh\nprintf '%s\\n' \"$@\" > " + said + ".new\nstat -c %a \"$1\" >> " + said + ".new\ncat \"$1\" >> " + said + ".new\nmv " + said + ".new " + said + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(tool), 0o700); err != nil {
		t.Fatal(err)
	}
	c := command(t, "view", recorded(t), "--open")
	c.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "DISPLAY=:99", "TMPDIR="+dir)
	r := start(t, c)
	r.wait(t, "127.0.0.1") // the address is on standard output
	await(t, "the browser", func() bool { _, err := os.Stat(said); return err == nil })
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitN(string(text), "\n", 3)
	url := regexp.MustCompile(`url=(http://127\.0\.0\.1:\d+/([0-9a-f]{32})/)`).FindStringSubmatch(string(text))
	if len(lines) != 3 || url == nil || strings.Contains(lines[0], url[2]) || !filepath.IsAbs(lines[0]) || lines[1] != "600" {
		t.Fatalf("the browser was started with\n%s", text)
	}
	resp, err := http.Get(url[1])
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the page leads to %s", resp.Status)
	}
	if err := r.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = r.Wait()
	if left, _ := filepath.Glob(filepath.Join(dir, "candid-*.html")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
