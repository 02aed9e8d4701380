package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/agent/config"
)

const (
	id  = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	pod = "0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f"
)

func TestPlaces(t *testing.T) {
	under := strings.ReplaceAll(pod, "-", "_")
	for file, want := range map[string]place{
		"":                                 {},
		"0::/\n":                           {},
		"0::/system.slice/nginx.service\n": {unit: "nginx"},
		"0::/system.slice/system-getty.slice/getty@tty1.service\n":                                                  {unit: "getty@tty1"},
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/firefox.service\n":                              {unit: "firefox"},
		"0::/user.slice/user-1000.slice/session-3.scope\n":                                                          {},
		"0::/user.slice/user-1000.slice/user@1000.service/init.scope\n":                                             {},
		"0::/system.slice/docker-" + id + ".scope\n":                                                                {container: id},
		"12:pids:/docker/" + id + "\n1:name=systemd:/docker/" + id + "\n0::/\n":                                     {container: id},
		"0::/machine.slice/libpod-" + id + ".scope/container\n":                                                     {container: id},
		"0::/system.slice/shop.service/docker-" + id + ".scope\n":                                                   {container: id},
		"0::/kubepods/burstable/pod" + pod + "/" + id + "\n":                                                        {container: id, pod: pod},
		"0::/system.slice/containerd.service/kubepods-burstable-pod" + under + ".slice:cri-containerd:" + id + "\n": {container: id, pod: pod},
		"0::/kubepods.slice/kubepods-pod" + under + ".slice/cri-containerd-" + id + ".scope\n":                      {container: id, pod: pod},
		"0::/kubepods.slice/kubepods-pod" + under + ".slice/crio-" + id + ".scope\n":                                {container: id, pod: pod},
		"9:name=systemd:/system.slice/cron.service\n4:memory:/other\n0::/\n":                                        {unit: "cron"},
		"garbage\n:::\n0::\n\x00": {},
	} {
		if got := parsePlace(file); got.unit != want.unit || got.container != want.container || got.pod != want.pod {
			t.Errorf("%q: %+v, want %+v", file, got, want)
		}
	}
}

func TestJavaNames(t *testing.T) {
	for line, want := range map[string]string{
		"java -jar shop.jar": "shop",
		"java -Xmx1g -cp a:b -jar /opt/shop-1.2.3-SNAPSHOT.jar -x":    "shop",
		"java -jar log4j-server-v2.jar":                               "log4j-server",
		"java -cp a.jar com.acme.Shop serve":                          "com.acme.Shop",
		"java -classpath a --add-opens java.base/x=ALL com/acme/Shop": "com.acme.Shop",
		"java --class-path=a com.acme.Shop":                           "com.acme.Shop",
		"java -p mods -m shop/com.acme.Main":                          "com.acme.Main",
		"java --module=shop":                                          "shop",
		"java @args Main":                                             "Main",
		"java Prog.java":                                              "Prog.java",
		"java -jar 1.jar":                                             "1",
		"java":                                                        "",
		"java -jar":                                                   "",
		"java -version":                                               "",
	} {
		if got := javaName(strings.Fields(line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// decider returns a Decider for which processes are in the given control groups.
func decider(t *testing.T, rules string, groups map[int]string) *Decider {
	t.Helper()
	c, err := config.Parse("f", []byte("store: {dir: /x}\nservices:\n"+rules))
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecider(c.Rules, nil)
	d.read = func(pid int) string { return groups[pid] }
	return d
}

func TestDecisions(t *testing.T) {
	groups := map[int]string{
		1: "0::/system.slice/nginx.service\n", 2: "0::/user.slice/session-1.scope\n", 3: "0::/system.slice/docker-" + id + ".scope\n", 5: "0::/system.slice/ci.service\n",
	}
	d := decider(t, `
  - {match: {exe: java, cmdline: '-Dapp=(\S+)'}, name: 'shop-$1'}
  - {match: {cmdline: 'secret=(\S+)'}, name: 'leak-${1}'}
  - {match: {exe: '/opt/*/bin/tool'}, name: tool}
  - {match: {user: '4711'}, name: someone}
  - {match: {cgroup: 'session-?.scope', exe: sshd}, name: never}
  - {match: {cgroup: '*/session-?.scope', exe: sshd}, name: sessions}
  - {match: {user: no-such-user-here}, name: nobody}
  - {match: {cmdline: '^empty(.*)$'}, name: '$1'}
`, groups)
	args := strings.Fields
	for i, c := range []struct {
		p            Process
		service, how string
	}{
		{Process{PID: 2, Exe: "/usr/bin/java", Args: args("java -Dapp=eu -jar x.jar"), UID: 0}, "shop-eu", "rule 1"},
		{Process{PID: 1, Exe: "/usr/bin/java", Args: args("java -Dapp=eu")}, "shop-eu", "rule 1"},
		{Process{PID: 2, Exe: "/usr/bin/java (deleted)", Args: args("java -jar x-2.jar")}, "x", "jar or class"},
		{Process{PID: 2, Exe: "/bin/a", Args: args("a --secret=hunter2")}, "leak-***", "rule 2"},
		{Process{PID: 2, Exe: "/opt/x/y/bin/tool"}, "tool", "rule 3"},
		{Process{PID: 2, Exe: "/bin/cat", UID: 4711}, "someone", "rule 4"},
		{Process{PID: 2, Exe: "/usr/sbin/sshd"}, "sessions", "rule 6"},
		{Process{PID: 2, Exe: "/bin/cat", Args: args("empty")}, "cat", "program"},
		{Process{PID: 1, Exe: "/bin/cat"}, "nginx", "unit"},
		{Process{PID: 3, Exe: "/bin/cat"}, id[:12], "container"},
		{Process{PID: 2, Exe: "/bin/c\x1b[31mat"}, "c_[31mat", "program"},
		{Process{PID: 2, Comm: "cc1"}, "cc1", "program"},
		{Process{PID: 2}, Unknown, "program"},
		{Process{PID: 7, Comm: "kworker/0:1", Kernel: true}, Kernel, "kernel"},
		// It ended before its control group could be read: it was its parent's.
		{Process{PID: 99, Parent: 5, Exe: "/bin/cc1"}, "ci", "unit"},
		{Process{PID: 100, Parent: 99, Exe: "/bin/as"}, "ci", "unit"},
	} {
		if got := d.Decide(&c.p); got.Service != c.service || got.How != c.how {
			t.Errorf("%d: %+v, want %s by %s", i, got, c.service, c.how)
		}
	}
	if got := d.Decide(&Process{PID: 3, Exe: "/bin/cat"}); got.Container != id {
		t.Errorf("container %q", got.Container)
	}
}

func TestKubernetesNames(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "shop-7d9f8c6b5-x2x4z_prod_web-"+id+".log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := NewContainers(dir)
	if got := c.Look(id); got.Pod != "shop-7d9f8c6b5-x2x4z" || got.Namespace != "prod" || got.Name != "web" {
		t.Errorf("%+v", got)
	}
	if got := c.Name(id); got != "web" {
		t.Errorf("%q", got)
	}
	if got := c.Name(strings.Repeat("f", 64)); got != strings.Repeat("f", 12) {
		t.Errorf("%q", got)
	}
}

func FuzzPlace(f *testing.F) {
	f.Add("0::/system.slice/docker-" + id + ".scope\n")
	f.Fuzz(func(t *testing.T, s string) {
		p := parsePlace(s)
		if p.container != "" && len(p.container) != 64 {
			t.Errorf("%q", p.container)
		}
	})
}

// BenchmarkDecide is what a birth costs.
func BenchmarkDecide(b *testing.B) {
	c, err := config.Parse("f", []byte("store: {dir: /x}\nservices:\n  - {match: {exe: java, cmdline: '-Dapp=(\\S+)'}, name: 'shop-$1'}\n"))
	if err != nil {
		b.Fatal(err)
	}
	d := NewDecider(c.Rules, nil)
	p := Process{PID: os.Getpid(), Exe: "/usr/bin/java", Args: append(strings.Fields("java -Xmx1g -Dapp=eu -cp"), strings.Repeat("/opt/lib/a.jar:", 200))}
	for b.Loop() {
		d.Decide(&p)
	}
}
