// Command grafana reads a recording with the parser that Pyroscope uses for uploads, and prints how
// often each stack is in it, innermost frame first.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/grafana/jfr-parser/parser"
)

func main() {
	if err := read(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	p := parser.NewParser(b, parser.Options{})
	counts := map[string]int{}
	for {
		typ, err := p.ParseEvent()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if typ != p.TypeMap.T_EXECUTION_SAMPLE {
			continue
		}
		st := p.GetStacktrace(p.ExecutionSample.StackTrace)
		if st == nil {
			return errors.New("a sample without a stack")
		}
		var text strings.Builder
		for _, f := range st.Frames {
			m := p.GetMethod(f.Method)
			if m == nil {
				return errors.New("a frame without a method")
			}
			c := p.GetClass(m.Type)
			if c == nil {
				return errors.New("a method without a class")
			}
			fmt.Fprintf(&text, "%s|%s|%d;", strings.ReplaceAll(p.GetSymbolString(c.Name), "/", "."), p.GetSymbolString(m.Name), f.LineNumber)
		}
		counts[text.String()]++
	}
	for stack, n := range counts {
		fmt.Printf("%d\t%s\n", n, strings.NewReplacer("\n", " ", "\t", " ").Replace(stack))
	}
	return nil
}
