// Command gospin computes in known functions on a goroutine, allocates so that the collector runs, and
// calls Windows, for as many seconds as it is told.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

//go:noinline
func leaf(n int) (s float64) {
	for i := 1; i < n; i++ {
		s += 1 / float64(i)
	}
	return s
}

//go:noinline
func middle(n int) float64 { return leaf(n) + 1 }

//go:noinline
func allocates(n int) (list [][]byte) {
	for range n {
		list = append(list, make([]byte, 1000))
	}
	return list
}

//go:noinline
func calls() {
	if f, err := os.Open(os.Args[0]); err == nil {
		f.Close()
	}
}

func work(until time.Time, done chan<- float64) {
	sum := 0.0
	for time.Now().Before(until) {
		for range 20 {
			sum += middle(100_000)
		}
		sum += float64(len(allocates(1000)))
		calls()
	}
	done <- sum
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	fmt.Println(os.Getpid())
	fmt.Println("ready")
	done := make(chan float64)
	go work(time.Now().Add(time.Duration(seconds)*time.Second), done)
	fmt.Println(<-done)
}
