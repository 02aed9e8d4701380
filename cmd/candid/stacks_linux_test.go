package main

import (
	"strconv"
	"strings"
)

// stack is a line of a collapsed file.
type stack struct {
	frames []string // outermost first
	count  int
}

func stacks(collapsed string) []stack {
	var out []stack
	for line := range strings.Lines(collapsed) {
		line = strings.TrimSuffix(line, "\n")
		i := strings.LastIndexByte(line, ' ')
		if i < 0 {
			continue
		}
		n, err := strconv.Atoi(line[i+1:])
		if err != nil {
			continue
		}
		out = append(out, stack{strings.Split(line[:i], ";"), n})
	}
	return out
}

// samples counts the samples whose stack contains the words; "": all.
func samples(collapsed, words string) int {
	n := 0
	for _, s := range stacks(collapsed) {
		if strings.Contains(strings.Join(s.frames, ";"), words) {
			n += s.count
		}
	}
	return n
}
