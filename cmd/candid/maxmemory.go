package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/memlimit"
)

// sizeFlag is a number of bytes with a unit: 512M, 4G.
type sizeFlag uint64

const maxMemory = "max-memory"

// addMaxMemory adds --max-memory to a command that reads files.
func addMaxMemory(cmd *cobra.Command) {
	size := sizeFlag(memlimit.Default)
	cmd.Flags().Var(&size, maxMemory, "fail rather than take more than this `SIZE` of memory: 512M, 8G")
}

// limitMemory applies --max-memory, if the command has it.
func limitMemory(cmd *cobra.Command) {
	f := cmd.Flags().Lookup(maxMemory)
	if f == nil {
		return
	}
	memlimit.SetMax(uint64(*f.Value.(*sizeFlag)))
	memlimit.Watch(func(err error) {
		if name := unfinished.Load(); name != nil {
			os.Remove(*name)
		}
		fmt.Fprintf(os.Stderr, "candid: %s: %v\n", cmd.Name(), err)
		os.Exit(exitFailed)
	})
}

// String implements pflag.Value.
func (s *sizeFlag) String() string {
	switch n := uint64(*s); {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%dG", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dM", n>>20)
	default:
		return strconv.FormatUint(n, 10)
	}
}

// Type implements pflag.Value.
func (s *sizeFlag) Type() string { return "SIZE" }

// Set implements pflag.Value.
func (s *sizeFlag) Set(text string) error {
	n, err := parseSize(text)
	if err == nil && n < memlimit.Least {
		err = fmt.Errorf("candid itself takes some of that: the least is %dM", memlimit.Least>>20)
	}
	if err == nil {
		*s = sizeFlag(n)
	}
	return err
}

// bytesFlag is a number of bytes with a unit that bounds something else than candid's memory.
type bytesFlag struct{ sizeFlag }

// Set implements pflag.Value.
func (b *bytesFlag) Set(text string) error {
	n, err := parseSize(text)
	if err == nil {
		b.sizeFlag = sizeFlag(n)
	}
	return err
}

// parseSize reads a number of bytes with a unit.
func parseSize(text string) (uint64, error) {
	number := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(text)), "B"), "I")
	shift := 0
	if i := strings.IndexAny(number, "KMGT"); i >= 0 && i == len(number)-1 {
		shift = 10 * (1 + strings.IndexByte("KMGT", number[i]))
		number = number[:i]
	}
	n, err := strconv.ParseFloat(number, 64)
	if n *= math.Pow(2, float64(shift)); err != nil || math.IsNaN(n) || n < 0 || n >= math.MaxInt64 {
		return 0, fmt.Errorf("a size is a number with a unit: 512M, 8G")
	}
	return uint64(n), nil
}
