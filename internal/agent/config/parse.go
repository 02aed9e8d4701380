package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/candid-profiler/candid/internal/push"
)

const (
	maxFile  = 1 << 20
	maxRules = 1000
	maxName  = 200
	year     = 366 * 24 * time.Hour
)

// Load reads a file. The error is an *Error if the file could be read and says something wrong.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, b)
}

// yamlLine matches what the YAML library says of where a document is broken.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// Parse reads the bytes of a file; path is for messages.
func Parse(path string, b []byte) (*Config, error) {
	r := &reader{}
	c := Default()
	c.Path = path
	if len(b) > maxFile {
		r.wrong(0, "the file is larger than %d MiB", maxFile>>20)
		return nil, &Error{path, r.problems}
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(b))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		r.nowhere(c)
		return nil, &Error{path, r.problems}
	case err != nil:
		r.broken(err)
		return nil, &Error{path, r.problems}
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		r.wrong(second.Line, "a second document (---) begins: only one is read")
	} else if !errors.Is(err, io.EOF) {
		r.broken(err)
	}
	if len(doc.Content) > 0 {
		r.config(c, doc.Content[0])
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.Line - b.Line })
		return nil, &Error{path, r.problems}
	}
	return c, nil
}

// broken reports an error of the YAML library.
func (r *reader) broken(err error) {
	line, text := 0, err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	r.wrong(line, "this is no YAML: %s", text)
}

func (r *reader) config(c *Config, n *yaml.Node) {
	r.fields(n, "the file", map[string]func(*yaml.Node){
		"rate":      parsed(r, &c.Rate, "rate", number(0.1, 20000)),
		"wall":      parsed(r, &c.Wall, "wall", yes),
		"offcpu":    parsed(r, &c.OffCPU, "offcpu", yes),
		"min_sleep": parsed(r, &c.MinSleep, "min_sleep", between(time.Microsecond, time.Hour)),
		"services":  func(n *yaml.Node) { r.items(n, "services", func(n *yaml.Node) { r.rule(c, n) }) },
		"labels":    func(n *yaml.Node) { r.labels(c, n) },
		"store":     func(n *yaml.Node) { r.store(&c.Store, n) },
		"listen":    func(n *yaml.Node) { r.listen(&c.Listen, n) },
		"socket":    r.text(&c.Socket, "socket"),
		"push":      func(n *yaml.Node) { r.items(n, "push", func(n *yaml.Node) { r.push(c, n) }) },
		"limits": func(n *yaml.Node) {
			r.fields(n, "limits", map[string]func(*yaml.Node){
				"cpu":    parsed(r, &c.Limits.CPU, "cpu", ParseShare),
				"memory": parsed(r, &c.Limits.Memory, "memory", ParseBytes),
			})
			if m := c.Limits.Memory; m > 0 && m < 64e6 {
				r.wrong(n.Line, "limits: memory %s is too little to work with: at least 64MB, 0 for no limit", Bytes(m))
			}
		},
		"capture": func(n *yaml.Node) { r.capture(&c.Capture, n) },
	})
	if c.Socket != "" && !strings.HasPrefix(c.Socket, "/") {
		r.wrong(n.Line, "socket: %q is no absolute path", short(c.Socket))
	}
	r.nowhere(c)
}

// nowhere refuses a file that names no place for what is sampled.
func (r *reader) nowhere(c *Config) {
	if c.Store.Dir == "" && len(c.Push) == 0 {
		r.wrong(0, "neither store: dir nor push is there: what is sampled would be thrown away")
	}
}

func yes(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", short(s))
}

// reference matches what a name may refer to.
var reference = regexp.MustCompile(`\$(\$|\w+|\{\w+\})`)

func (r *reader) rule(c *Config, n *yaml.Node) {
	rule := Rule{Line: n.Line}
	if len(c.Rules) >= maxRules {
		r.wrong(n.Line, "more than %d rules for services", maxRules)
		return
	}
	matches := false
	r.fields(n, "a service", map[string]func(*yaml.Node){
		"name": r.text(&rule.Name, "name"),
		"match": func(n *yaml.Node) {
			matches = true
			r.fields(n, "match", map[string]func(*yaml.Node){
				"exe":     parsed(r, &rule.Exe, "exe", glob),
				"cgroup":  parsed(r, &rule.Cgroup, "cgroup", glob),
				"user":    r.text(&rule.User, "user"),
				"cmdline": parsed(r, &rule.Cmdline, "cmdline", pattern),
			})
		},
	})
	switch {
	case n.Kind != yaml.MappingNode:
		return
	case rule.Name == "":
		r.wrong(n.Line, "this service has no name")
	case len(rule.Name) > maxName:
		r.wrong(n.Line, "the name of this service is longer than %d bytes", maxName)
	case !matches:
		r.wrong(n.Line, "service %q has no match: write match: {} if it stands for all processes", short(rule.Name))
	}
	for _, m := range reference.FindAllStringSubmatch(rule.Name, -1) {
		name := strings.Trim(m[1], "{}")
		if name == "$" {
			continue
		}
		if rule.Cmdline == nil {
			r.wrong(n.Line, "name %q refers to $%s, but there is no cmdline to take it from", short(rule.Name), name)
			break
		}
		group, err := strconv.Atoi(name)
		if err != nil {
			group = rule.Cmdline.SubexpIndex(name)
		}
		if group < 0 || group > rule.Cmdline.NumSubexp() {
			r.wrong(n.Line, "name %q refers to $%s, but cmdline has %d groups in parentheses", short(rule.Name), name, rule.Cmdline.NumSubexp())
		}
	}
	c.Rules = append(c.Rules, rule)
}

func glob(s string) (string, error) {
	if _, err := path.Match(s, ""); err != nil {
		return "", fmt.Errorf("%q is no pattern: %v", short(s), err)
	}
	return s, nil
}

func pattern(s string) (*regexp.Regexp, error) {
	if s == "" {
		return nil, nil
	}
	if len(s) > 1000 {
		return nil, errors.New("the regular expression is longer than 1000 bytes")
	}
	return regexp.Compile(s)
}

// labelName matches names of labels as Prometheus has them; Parca refuses dots.
var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,62}$`)

func (r *reader) labels(c *Config, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n.Line, "labels must be names with values, not %s", kind(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], r.real(n.Content[i+1])
		_, twice := c.Labels[key.Value]
		switch {
		case !labelName.MatchString(key.Value):
			r.wrong(key.Line, "label %q: names have letters, digits and _ only", short(key.Value))
		case strings.HasPrefix(key.Value, "__") || key.Value == "service_name":
			r.wrong(key.Line, "label %q is set by candid itself", short(key.Value))
		case value.Kind != yaml.ScalarNode:
			r.wrong(value.Line, "label %q must be a text, not %s", key.Value, kind(value))
		case len(value.Value) > 1000:
			r.wrong(value.Line, "label %q is longer than 1000 bytes", key.Value)
		case twice:
			r.wrong(key.Line, "label %q is there twice", key.Value)
		default:
			c.Labels[key.Value] = value.Value
		}
	}
	if len(c.Labels) > 30 {
		r.wrong(n.Line, "more than 30 labels")
	}
}

func (r *reader) store(s *Store, n *yaml.Node) {
	r.fields(n, "store", map[string]func(*yaml.Node){
		"dir":      r.text(&s.Dir, "dir"),
		"keep":     parsed(r, &s.Keep, "keep", between(0, 100*year)),
		"max":      parsed(r, &s.Max, "max", ParseBytes),
		"min_free": parsed(r, &s.MinFree, "min_free", parseFree),
	})
	if s.Dir != "" && !path.IsAbs(s.Dir) {
		r.wrong(n.Line, "store: dir %q is no absolute path", short(s.Dir))
	}
	if s.Max > 0 && s.Max < 1e6 {
		r.wrong(n.Line, "store: max %s is too little for a day: at least 1MB, 0 for no limit", Bytes(s.Max))
	}
}

func parseFree(s string) (Free, error) {
	if strings.Contains(s, "%") {
		share, err := ParseShare(s)
		if err == nil && share >= 1 {
			err = errors.New("100% free leaves no room for a store")
		}
		return Free{Share: share}, err
	}
	n, err := ParseBytes(s)
	return Free{Bytes: n}, err
}

func (r *reader) tls(t *TLS) func(*yaml.Node) {
	return func(n *yaml.Node) {
		r.fields(n, "tls", map[string]func(*yaml.Node){
			"ca": r.text(&t.CA, "ca"), "cert": r.text(&t.Cert, "cert"), "key": r.text(&t.Key, "key"),
		})
		if (t.Cert == "") != (t.Key == "") {
			r.wrong(n.Line, "tls: cert and key belong together")
		}
	}
}

func (r *reader) push(c *Config, n *yaml.Node) {
	p := Push{Line: n.Line, Every: time.Minute, Buffer: Buffer{Max: 200e6, Age: 50 * time.Minute}, Probability: 1}
	r.fields(n, "push", map[string]func(*yaml.Node){
		"type":        r.text(&p.Type, "type"),
		"url":         r.text(&p.URL, "url"),
		"every":       parsed(r, &p.Every, "every", between(time.Second, 10*time.Minute)),
		"tls":         r.tls(&p.TLS),
		"token_file":  r.text(&p.TokenFile, "token_file"),
		"tenant":      r.text(&p.Tenant, "tenant"),
		"probability": parsed(r, &p.Probability, "probability", ParseShare),
		"buffer": func(n *yaml.Node) {
			r.fields(n, "buffer", map[string]func(*yaml.Node){
				"max": parsed(r, &p.Buffer.Max, "max", ParseBytes),
				"age": parsed(r, &p.Buffer.Age, "age", between(0, 7*24*time.Hour)),
			})
		},
	})
	switch err := (push.Config{
		Type: p.Type, URL: p.URL, Every: p.Every, TLS: push.TLS(p.TLS), TokenFile: p.TokenFile, Tenant: p.Tenant,
		Buffer: push.Buffer{Max: p.Buffer.Max, Age: p.Buffer.Age}, Probability: p.Probability,
	}).Check(); {
	case n.Kind != yaml.MappingNode:
		return
	case p.Type == "":
		r.wrong(n.Line, "push: type is missing: one of %s", strings.Join(push.Types(), ", "))
	case p.URL == "":
		r.wrong(n.Line, "push: url is missing")
	case p.Probability == 0:
		r.wrong(n.Line, "push: probability 0 sends nothing: leave this server out")
	case err != nil:
		r.wrong(n.Line, "push: %v", err)
	}
	c.Push = append(c.Push, p)
}

func (r *reader) capture(c *Capture, n *yaml.Node) {
	r.fields(n, "capture", map[string]func(*yaml.Node){
		"max_rate":     parsed(r, &c.MaxRate, "max_rate", number(1, 20000)),
		"max_duration": parsed(r, &c.MaxDuration, "max_duration", between(time.Second, time.Hour)),
		"concurrent":   parsed(r, &c.Concurrent, "concurrent", whole(0, 16)),
		"when":         func(n *yaml.Node) { r.items(n, "when", func(n *yaml.Node) { r.threshold(c, n) }) },
	})
	for i := range c.When {
		t := &c.When[i]
		if t.Rate > c.MaxRate {
			r.wrong(t.Line, "capture: rate %g is above max_rate %g", t.Rate, c.MaxRate)
		}
		if t.Duration > c.MaxDuration {
			r.wrong(t.Line, "capture: duration %s is above max_duration %s", Duration(t.Duration), Duration(c.MaxDuration))
		}
	}
}

func (r *reader) threshold(c *Capture, n *yaml.Node) {
	t := Threshold{Line: n.Line, For: time.Minute, Duration: 30 * time.Second, Rate: 99, Pause: time.Hour}
	r.fields(n, "when", map[string]func(*yaml.Node){
		"service":  parsed(r, &t.Service, "service", glob),
		"cpus":     parsed(r, &t.CPUs, "cpus", number(0.01, 1e5)),
		"for":      parsed(r, &t.For, "for", between(30*time.Second, 24*time.Hour)),
		"duration": parsed(r, &t.Duration, "duration", between(time.Second, time.Hour)),
		"rate":     parsed(r, &t.Rate, "rate", number(1, 20000)),
		"pause":    parsed(r, &t.Pause, "pause", between(0, 30*24*time.Hour)),
	})
	if n.Kind == yaml.MappingNode && (t.Service == "" || t.CPUs == 0) {
		r.wrong(n.Line, "capture: when needs service and cpus: {service: shop, cpus: 1.5, for: 2m}")
	}
	c.When = append(c.When, t)
}
