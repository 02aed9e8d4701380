// Poly is the program of the profiles for the Go compiler: calls through interfaces and function
// values, each with one target that is called most of the time. Its arguments are how long it runs,
// in rounds, and a file for a profile by runtime/pprof, to compare with.
package main

import (
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
)

type op interface{ apply(x uint64) uint64 }
type add struct{ n uint64 }
type mul struct{ n uint64 }
type xor struct{ n uint64 }
type rot struct{ n uint64 }

func (a *add) apply(x uint64) uint64 { return x + a.n }
func (m *mul) apply(x uint64) uint64 { return x * m.n }
func (o *xor) apply(x uint64) uint64 { return x ^ o.n }
func (r *rot) apply(x uint64) uint64 { return x<<r.n | x>>(64-r.n) }

//go:noinline
func run(ops []op, x uint64) uint64 {
	for _, o := range ops {
		x = o.apply(x)
	}
	return x
}

type visitor interface{ visit(n *node) }
type node struct {
	left, right *node
	value       int
}
type summer struct{ total int }
type counter struct{ n int }

func (s *summer) visit(n *node)  { s.total += n.value }
func (c *counter) visit(n *node) { c.n++ }

//go:noinline
func walk(n *node, v visitor) {
	if n == nil {
		return
	}
	walk(n.left, v)
	v.visit(n)
	walk(n.right, v)
}

func tree(d int) *node {
	if d == 0 {
		return nil
	}
	return &node{tree(d - 1), tree(d - 1), d}
}

//go:noinline
func apply(list []uint64, f func(uint64) uint64) (s uint64) {
	for _, x := range list {
		s += f(x)
	}
	return s
}

func half(x uint64) uint64   { return x/2 + 1 }
func square(x uint64) uint64 { return x * x }

func main() {
	n := 3000
	if len(os.Args) > 1 {
		n, _ = strconv.Atoi(os.Args[1])
	}
	if len(os.Args) > 2 {
		f, err := os.Create(os.Args[2])
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		defer pprof.StopCPUProfile()
	}
	ops := make([]op, 1000)
	for i := range ops {
		switch {
		case i%50 == 0:
			ops[i] = &mul{3}
		case i%50 == 1:
			ops[i] = &xor{5}
		case i%50 == 2:
			ops[i] = &rot{7}
		default:
			ops[i] = &add{uint64(i)}
		}
	}
	list := make([]uint64, 1000)
	for i := range list {
		list[i] = uint64(i)
	}
	t := tree(10)
	s, c := &summer{}, &counter{}
	x := uint64(1)
	for i := 0; i < n; i++ {
		for j := 0; j < 100; j++ {
			x = run(ops, x)
			f := half
			if j%20 == 0 {
				f = square
			}
			x += apply(list, f)
		}
		for j := 0; j < 50; j++ {
			var v visitor = s
			if j%20 == 0 {
				v = c
			}
			walk(t, v)
		}
	}
	fmt.Println(x, s.total, c.n)
}
