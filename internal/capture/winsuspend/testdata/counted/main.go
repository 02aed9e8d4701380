//go:build windows

// Command counted runs a command as candid does, and prints of how many processes it consisted:
// counted COMMAND ARG....
package main

import (
	"fmt"
	"os"

	"github.com/candid-profiler/candid/internal/capture/launch"
)

func main() {
	c, err := launch.Start(os.Args[1:], os.Environ())
	if err == nil {
		_, err = c.Release()
	}
	if err == nil {
		_, err = c.Wait()
	}
	if err != nil {
		fmt.Println("FAIL", err)
		os.Exit(1)
	}
	n, ok := c.Processes()
	fmt.Println("processes", n, ok)
}
