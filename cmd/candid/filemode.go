package main

import (
	"fmt"
	"os"
	"strconv"
)

// modeFlag is who may read what is written, as chmod takes it: 644. 0 stands for private.
type modeFlag os.FileMode

// private is the mode of recordings unless the user says otherwise: they hold command lines, and names
// and addresses that others may not be able to see.
const private = 0o600

// mode returns the permissions of the file.
func (m modeFlag) mode() os.FileMode {
	if m == 0 {
		return private
	}
	return os.FileMode(m)
}

// String implements pflag.Value.
func (m *modeFlag) String() string { return fmt.Sprintf("%03o", m.mode()) }

// Type implements pflag.Value.
func (m *modeFlag) Type() string { return "MODE" }

// Set implements pflag.Value.
func (m *modeFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 8, 16)
	if err != nil || n > 0o666 || n&0o111 != 0 || n&private != private {
		return fmt.Errorf("a mode is an octal number from 600 to 666, as for chmod: 640, 644")
	}
	*m = modeFlag(n)
	return nil
}
