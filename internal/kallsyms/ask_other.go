//go:build !linux

package kallsyms

import (
	"fmt"
	"runtime"
)

type asker struct{}

func openAsker() (*asker, error) {
	return nil, fmt.Errorf("kernel symbols: only Linux publishes them, this is %s: %w", runtime.GOOS, ErrUnsupported)
}

func (a *asker) ask(uint64) (answer, bool) { return answer{}, false }

func (a *asker) close() {}
