package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// everything has every key.
const everything = `rate: 29
wall: true
offcpu: false
services:                       # first rule wins
  - match: {exe: java, cmdline: '-Dapp=(\S+)', cgroup: '', user: ''}
    name: 'shop-$1'
  - match: {}
    name: rest
labels: {env: prod, rack: 7}
store: {dir: /var/lib/candid, keep: 7d, max: 2GB, min_free: 10%}
listen: 127.0.0.1:7080
socket: /tmp/x.sock
push:
  - {type: pyroscope, url: 'https://p.example', every: 60s, tls: {ca: /ca, cert: /c, key: /k}, token_file: /t, tenant: a, buffer: {max: 200MB, age: 50m}, probability: 0.5}
limits: {cpu: 2%, memory: 200MB}
capture: {max_rate: 999, max_duration: 60s, concurrent: 1, when: [{service: shop, cpus: 1.5, for: 2m}]}
`

func TestWholeFile(t *testing.T) {
	c, err := Parse("f", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	if c.Rate != 29 || !c.Wall || c.OffCPU || c.Labels["rack"] != "7" || c.Socket != "/tmp/x.sock" || c.Listen.Address != "127.0.0.1:7080" {
		t.Errorf("%+v", c)
	}
	if s := c.Store; s.Keep != 7*24*time.Hour || s.Max != 2e9 || s.MinFree.Share != 0.1 {
		t.Errorf("store %+v", s)
	}
	if len(c.Rules) != 2 || c.Rules[0].Name != "shop-$1" || c.Rules[0].Line != 5 || c.Rules[0].Cmdline == nil {
		t.Errorf("rules %+v", c.Rules)
	}
	if p := c.Push[0]; p.Every != time.Minute || p.TLS.Key != "/k" || p.Buffer.Max != 200e6 || p.Buffer.Age != 50*time.Minute || p.Probability != 0.5 || p.Tenant != "a" {
		t.Errorf("push %+v", p)
	}
	if c.Limits.CPU != 0.02 || c.Limits.Memory != 200e6 || c.Capture.When[0].CPUs != 1.5 || c.Capture.When[0].For != 2*time.Minute {
		t.Errorf("%+v %+v", c.Limits, c.Capture)
	}
	said := strings.Join(c.Describe(), "\n")
	for _, want := range []string{"29 times", "wall-clock", `"shop-$1"`, "env=prod", "/var/lib/candid", "7d", "2GB", "10%", "127.0.0.1:7080", "https://p.example", "50%", "2%", "200MB", "999", "1.5 CPUs"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing says %s:\n%s", want, said)
		}
	}
}

// Every mistake is told, with its line.
func TestMistakes(t *testing.T) {
	const store = "store: {dir: /x}\n"
	for file, want := range map[string]string{
		"":                                   "neither store: dir nor push",
		store + "rats: 5":                    `line 2: unknown key "rats" in the file: did you mean rate?`,
		store + "rate: fast":                 `line 2: rate: "fast"`,
		store + "rate: 0":                    "line 2: rate",
		store + "rate: 5\nrate: 6":           "line 3",
		store + "services: 5":                "line 2: services must be a list",
		store + "services:\n  - {name: x}":   `line 3: service "x" has no match`,
		store + "services:\n  - {match: {}}": "line 3: this service has no name",
		store + "services:\n  - {match: {exe: a}, name: 'a-$1'}":                "line 3: name",
		store + "services:\n  - {match: {cmdline: 'a'}, name: 'a-$1'}":          "line 3: name \"a-$1\" refers to $1, but cmdline has 0 groups",
		store + "services:\n  - match: {cmdline: '('}\n    name: a":             "line 3: cmdline: error parsing regexp",
		store + "services:\n  - match: {exe: a, comm: b}\n    name: a":          `line 3: unknown key "comm" in match`,
		store + "services:\n  - match: {exe: '[a'}\n    name: a":                "line 3: exe",
		store + "labels: {a.b: c}":                                              `line 2: label "a.b"`,
		store + "labels: {service_name: c}":                                     "line 2: label",
		"store: {dir: x}":                                                       "line 1: store: dir \"x\" is no absolute path",
		"store: {dir: /x, keep: week}":                                          `line 1: keep: "week" is no time`,
		"store:\n  dir: /x\n  min_free: 120%":                                   `line 3: min_free: "120%"`,
		"store: {dir: /x, max: 5kB}":                                            "line 1: store: max",
		store + "listen: 0.0.0.0:80":                                            "line 2: listen: \"0.0.0.0:80\" can be reached from other machines",
		store + "listen: ':80'":                                                 "can be reached",
		store + "listen: example.org:80":                                        "can be reached",
		store + "listen: 80":                                                    "line 2: listen: \"80\" is neither",
		store + "listen: {address: '0.0.0.0:1', tls: {ca: /a}}":                 "can be reached",
		store + "push:\n  - {type: pyro, url: http://x}":                        `line 3: push`,
		store + "push:\n  - {type: pyroscope}":                                  "line 3: push: url is missing",
		store + "push:\n  - {type: pyroscope, url: 'x:1'}":                      "line 3: push",
		store + "push:\n  - {type: pyroscope, url: 'http://x', probability: 0}": "sends nothing",
		store + "limits: {cpu: 200%}":                                           "line 2: cpu",
		store + "limits: {memory: 5MB}":                                         "line 2: limits: memory 5MB is too little",
		store + "capture: {concurrent: -1}":                                     "line 2: concurrent",
		store + "capture: {when: [{service: a}]}":                               "line 2: capture: when needs",
		store + "capture: {max_rate: 50, when: [{service: a, cpus: 1}]}":        "line 2: capture: rate 99 is above max_rate 50",
		store + "---\nrate: 5":                                                  "second document",
		"a: [":                                                                  "this is no YAML",
		store + "\trate: 5":                                                     "this is no YAML",
		"just text":                                                             "line 1: the file must be keys",
		strings.Repeat("#", maxFile+1):                                          "larger than 1 MiB",
	} {
		_, err := Parse("f", []byte(file))
		var wrong *Error
		if !errors.As(err, &wrong) {
			t.Errorf("%.60q is accepted: %v", file, err)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v; want %s", file, err, want)
		}
	}
	for _, file := range []string{
		store, store + "listen: localhost:1", store + "listen: '[::1]:0'", store + "listen: /run/x.sock", store + "services:\n", store + "rate:\n",
		store + "listen: {address: '0.0.0.0:1', tls: {ca: /a, cert: /b, key: /c}}", store + "listen: {address: '0.0.0.0:1', token_file: /a}",
		"push: [{type: pyroscope, url: 'http://x:4318'}]",
	} {
		if _, err := Parse("f", []byte(file)); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// A file with several mistakes reports all of them, by line.
func TestAllMistakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte("listen: 1\nrate: x\nstore: {dri: /x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	var wrong *Error
	if !errors.As(err, &wrong) || len(wrong.Problems) != 4 {
		t.Fatalf("%v", err)
	}
	for i, line := range []int{0, 1, 2, 3} {
		if wrong.Problems[i].Line != line {
			t.Errorf("problem %d is of line %d: %v", i, wrong.Problems[i].Line, wrong.Problems[i])
		}
	}
}

func TestUnits(t *testing.T) {
	for s, want := range map[string]int64{"200MB": 200e6, "2GB": 2e9, "512MiB": 512 << 20, "4096": 4096, "1.5 GB": 15e8, "5b": 5, "3k": 3000} {
		if n, err := ParseBytes(s); err != nil || n != want {
			t.Errorf("%s: %d, %v", s, n, err)
		}
	}
	for _, s := range []string{"", "MB", "-1MB", "5XB", "1e300GB", "NaN"} {
		if n, err := ParseBytes(s); err == nil {
			t.Errorf("%q is %d", s, n)
		}
	}
	for s, want := range map[string]time.Duration{"7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "50m": 50 * time.Minute, "60s": time.Minute, "0.5d": 12 * time.Hour} {
		if d, err := ParseDuration(s); err != nil || d != want {
			t.Errorf("%s: %v, %v", s, d, err)
		}
	}
	for _, s := range []string{"", "7", "d", "-5s", "5dd", "week", "999999999d"} {
		if d, err := ParseDuration(s); err == nil {
			t.Errorf("%q is %v", s, d)
		}
	}
	for d, want := range map[time.Duration]string{168 * time.Hour: "7d", 36 * time.Hour: "1d12h", time.Minute: "1m", 10 * time.Second: "10s", 90 * time.Second: "1m30s", 0: "0s", time.Hour: "1h", 10 * time.Minute: "10m"} {
		if s := Duration(d); s != want {
			t.Errorf("%v is %s", d, s)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("services: &a\n  - match: *a\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse("f", b)
		var wrong *Error
		switch {
		case err == nil:
			c.Describe()
		case !errors.As(err, &wrong) || len(wrong.Problems) == 0:
			t.Errorf("%v", err)
		}
	})
}
