package view

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
)

// Address returns the part of the page's address, from # on, with which the page opens at what a
// filter chooses of p: the filter is shown in the page then, and the reader can remove it. It is ""
// if the page opens that way anyway. byThread gives each thread a root of its own.
// web/src/view/state.ts reads it.
func Address(p *profile.Profile, f profile.Filter, byThread bool) string {
	var parts []string
	add := func(name, value string) { parts = append(parts, name+"="+url.QueryEscape(value)) }
	if f.Event != p.FirstEvent() {
		add("event", strconv.Itoa(f.Event))
	}
	if f.From > 0 {
		add("from", strconv.FormatInt(int64(f.From), 10))
	}
	if f.To > 0 {
		add("to", strconv.FormatInt(int64(f.To), 10))
	}
	if f.Process != nil || f.PIDs != nil || f.Thread != nil || f.ThreadKinds != nil || f.OneThread != nil {
		add("threads", runs(p.ThreadsOf(f)))
	}
	if f.States != 0 {
		var names []string
		for s := range profile.State(profile.NumStates) {
			if f.States.Has(s) {
				names = append(names, s.String())
			}
		}
		add("states", strings.Join(names, ","))
	}
	if f.Focus != nil {
		add("focus", f.Focus.String())
	}
	if f.Ignore != nil {
		add("ignore", f.Ignore.String())
	}
	if byThread {
		add("split", "thread")
	}
	if parts == nil {
		return ""
	}
	return "#" + strings.Join(parts, "&")
}

// runs writes the indices that are set in the form that ranges reads: 0.2-5.
func runs(set []bool) string {
	var out []string
	for i := 0; i < len(set); i++ {
		if !set[i] {
			continue
		}
		j := i
		for j+1 < len(set) && set[j+1] {
			j++
		}
		if i == j {
			out = append(out, strconv.Itoa(i))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", i, j))
		}
		i = j
	}
	return strings.Join(out, ".")
}
