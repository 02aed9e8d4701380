package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// as returns the words that run a command as another user, as a rule of sudo does.
func as(uid string) []string {
	return []string{"setpriv", "--reuid=" + uid, "--regid=" + uid, "--clear-groups", "env", "--chdir=/"}
}

// bySudo returns the words that run candid as another user by a rule of sudo, which holds in a mount
// namespace of its own, as nobody: none if there is no sudo. Nothing of the system's files is changed.
func bySudo(t *testing.T, uid string) []string {
	t.Helper()
	if _, err := exec.LookPath("sudo"); err != nil {
		t.Log("there is no sudo: setpriv alone takes its place")
		return nil
	}
	return []string{"unshare", "-m", "sh", "-c", `mount -t tmpfs -o mode=755 none /etc/sudoers.d && umask 227 &&
printf 'Defaults:nobody runas_allow_unknown_id\nnobody ALL=(#%s:#%s) NOPASSWD: %s\n' "$1" "$1" "$2" >/etc/sudoers.d/candid &&
uid=$1 && shift && exec setpriv --reuid=nobody --regid=nogroup --clear-groups env --chdir=/ sudo -n -u "#$uid" -g "#$uid" "$@"`, "sh", uid, binary}
}

// A user who runs candid as a service's user sees what that user may see, and nothing of others'
// processes; and while somebody else records such a process, nothing of that recording.
func TestOtherUsersLearnNothing(t *testing.T) {
	t.Parallel()
	able(t)
	root(t)
	const ann, shop = "65534", "12345"
	const secret = "QmVmb3JlIHlvdQ"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := public(t, 0o777)
	copied := filepath.Join(dir, "service")
	if err := exec.Command("cp", self, copied).Run(); err != nil {
		t.Fatal(err)
	}
	closed := program(t, "spin", "SECRET="+secret).pid() // root's
	service := exec.Command("setpriv", append(as(shop)[1:], actAs+"=spin", copied)...)
	open := start(t, service)
	open.wait(t, "ready")

	for _, c := range [][]string{
		{"record", "-d", "1s", "-o", "-", "--format", "collapsed", "-p"},
		{"record", "-d", "1s", "-o", "-", "--format", "collapsed", "--engine", "suspend", "-e", "wall", "-p"},
		{"top", "--once", "-d", "1s", "-p"},
		{"dump", "-p"},
	} {
		for _, uid := range []string{ann, shop} {
			r := finish(t, exec.Command("setpriv", slices.Concat(as(uid)[1:], []string{binary}, c, []string{closed})...))
			if r.code != exitPermission || r.out != "" || strings.Contains(r.err, "spin") || strings.Contains(r.err, secret) {
				t.Errorf("uid %s, %v of root's process: exit code %d\n%s%s", uid, c, r.code, r.out, r.err)
			}
		}
	}
	if sudo := bySudo(t, shop); sudo != nil {
		run := func(args ...string) result {
			return finish(t, exec.Command(sudo[0], slices.Concat(sudo[1:], args)...))
		}
		for _, c := range [][]string{{"dump", closed}, {"top", "--once", "-d", "1s", "-p", closed}, {"record", "-d", "1s", "-o", "-", "--format", "collapsed", "-p", open.pid(), "-p", closed}} {
			if r := run(c...); r.code != exitPermission || r.out != "" || strings.Contains(r.err, secret) {
				t.Errorf("sudo, %v: exit code %d\n%s%s", c, r.code, r.out, r.err)
			}
		}
		if r := run("dump", open.pid()); r.code != exitOK || r.out == "" {
			t.Errorf("sudo, its own service: exit code %d\n%s%s", r.code, r.out, r.err)
		}
	}
	// With one target that may be read and one that may not, nothing is read of the latter either.
	r := finish(t, exec.Command("setpriv", slices.Concat(as(shop)[1:], []string{binary, "record", "-d", "1s", "-o", "-", "--format", "collapsed", "-p", open.pid(), "-p", closed})...))
	if r.code != exitPermission || r.out != "" {
		t.Errorf("both: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	for _, uid := range []string{ann, shop} {
		r := finish(t, exec.Command("setpriv", slices.Concat(as(uid)[1:], []string{binary, "doctor", "-p", closed, "--json"})...))
		if strings.Contains(r.out+r.err, "testing.") || strings.Contains(r.out+r.err, secret) {
			t.Errorf("uid %s, doctor: exit code %d\n%s%s", uid, r.code, r.out, r.err)
		}
	}
	// The service itself is open to its user.
	var seen result
	for _, long := range forLong {
		seen = finish(t, exec.Command("setpriv", slices.Concat(as(shop)[1:], []string{binary, "record", "-F", "500", "-d", long, "-o", "-", "--format", "collapsed", "-p", open.pid()})...))
		if samples(seen.out, "spin") >= 3 || seen.code == exitPermission {
			break
		}
	}
	if samples(seen.out, "spin") < 3 {
		t.Errorf("its own service: exit code %d\n%s%s", seen.code, seen.out, seen.err)
	}

	// While root records, nothing of it is open to others: not the file, and not candid's own memory, nor
	// that of the copy of candid that it has started.
	file := filepath.Join(dir, "x.jfr")
	rec := start(t, command(t, "record", "-q", "-p", closed, "-o", file))
	await(t, "the file", func() bool { st, err := os.Stat(file); return err == nil && st.Size() > 0 })
	pids := []string{rec.pid()}
	tasks, err := filepath.Glob("/proc/" + rec.pid() + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, _ := os.ReadFile(task) // the thread may have ended
		pids = append(pids, strings.Fields(string(b))...)
	}
	kept := []string{file, "/proc/" + closed + "/environ"}
	for _, pid := range pids {
		for _, name := range []string{"mem", "maps", "environ", "fd", "syscall"} {
			kept = append(kept, "/proc/"+pid+"/"+name)
		}
	}
	for _, name := range kept {
		r := finish(t, exec.Command("setpriv", append(as(ann)[1:], "sh", "-c", `ls "$1/" || head -c 1 "$1"`, "sh", name)...))
		if r.out != "" || r.code == 0 {
			t.Errorf("uid %s reads %s: %q", ann, name, r.out)
		}
	}
}
