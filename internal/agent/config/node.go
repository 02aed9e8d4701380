package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// reader reads nodes of a document and gathers what is wrong with them.
type reader struct{ problems []Problem }

func (r *reader) wrong(line int, format string, args ...any) {
	const most = 50
	if len(r.problems) < most {
		r.problems = append(r.problems, Problem{line, fmt.Sprintf(format, args...)})
	}
}

// real returns the node that an alias stands for. Aliases of aliases do not exist.
func (r *reader) real(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// empty reports whether a node has no value.
func empty(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// fields reads a mapping whose keys are known.
func (r *reader) fields(n *yaml.Node, what string, fields map[string]func(*yaml.Node)) {
	n = r.real(n)
	if empty(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.wrong(n.Line, "%s must be keys with values (%s), not %s", what, strings.Join(slices.Sorted(maps.Keys(fields)), ", "), kind(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		f := fields[key.Value]
		switch line, twice := seen[key.Value], seen[key.Value] > 0; {
		case twice:
			r.wrong(key.Line, "%q is there twice, first in line %d", key.Value, line)
		case f == nil:
			r.unknown(key, what, slices.Sorted(maps.Keys(fields)))
		case !empty(r.real(value)):
			f(r.real(value))
		}
		seen[key.Value] = key.Line
	}
}

// unknown refuses a key, and suggests the most similar one.
func (r *reader) unknown(key *yaml.Node, what string, known []string) {
	if near := Near(key.Value, known); len(near) > 0 {
		r.wrong(key.Line, "unknown key %q in %s: did you mean %s?", short(key.Value), what, near[0])
		return
	}
	r.wrong(key.Line, "unknown key %q in %s: there are %s", short(key.Value), what, strings.Join(known, ", "))
}

// items calls f with each element of a list.
func (r *reader) items(n *yaml.Node, what string, f func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.wrong(n.Line, "%s must be a list (lines that begin with -), not %s", what, kind(n))
		return
	}
	for _, c := range n.Content {
		f(r.real(c))
	}
}

// text reads a scalar as it is written.
func (r *reader) text(to *string, what string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode {
			r.wrong(n.Line, "%s must be a text, not %s", what, kind(n))
			return
		}
		*to = n.Value
	}
}

// parsed reads a scalar by a function.
func parsed[T any](r *reader, to *T, what string, parse func(string) (T, error)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		var s string
		r.text(&s, what)(n)
		if n.Kind != yaml.ScalarNode {
			return
		}
		v, err := parse(s)
		if err != nil {
			r.wrong(n.Line, "%s: %v", what, err)
			return
		}
		*to = v
	}
}

// number returns a parser of numbers in a range.
func number(least, most float64) func(string) (float64, error) {
	return func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v >= least && v <= most) {
			return 0, fmt.Errorf("%q is no number from %g to %g", short(s), least, most)
		}
		return v, nil
	}
}

// whole returns a parser of whole numbers in a range.
func whole(least, most int) func(string) (int, error) {
	return func(s string) (int, error) {
		v, err := strconv.Atoi(s)
		if err != nil || v < least || v > most {
			return 0, fmt.Errorf("%q is no whole number from %d to %d", short(s), least, most)
		}
		return v, nil
	}
}

// between returns a parser of times in a range.
func between(least, most time.Duration) func(string) (time.Duration, error) {
	return func(s string) (time.Duration, error) {
		d, err := ParseDuration(s)
		if err == nil && (d < least || d > most) {
			err = fmt.Errorf("%q is not from %s to %s", short(s), Duration(least), Duration(most))
		}
		return d, err
	}
}

func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return fmt.Sprintf("%q", short(n.Value))
	}
	return "something else"
}

// short bounds what is quoted of a file.
func short(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Near returns the names that are most similar to a word, nearest first, at most five: those with few
// letters changed, and those that contain it or begin like it.
func Near(word string, names []string) []string {
	type near struct {
		name string
		far  int
	}
	var list []near
	w := strings.ToLower(short(word))
	for _, n := range names {
		l := strings.ToLower(short(n))
		far := distance(w, l)
		if w != "" && (strings.Contains(l, w) || strings.HasPrefix(w, l) && l != "") {
			far = min(far, 2)
		}
		if far <= max(2, len(w)/4) {
			list = append(list, near{n, far})
		}
	}
	slices.SortStableFunc(list, func(a, b near) int { return a.far - b.far })
	var out []string
	for _, n := range list[:min(len(list), 5)] {
		out = append(out, n.name)
	}
	return out
}

// distance returns how many letters have to be changed, added or left out (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			before, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, before+cost)
		}
	}
	return row[len(b)]
}
