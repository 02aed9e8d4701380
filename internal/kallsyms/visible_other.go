//go:build !linux

package kallsyms

// Visible reports whether the kernel shows its addresses to every user; here that is not known.
func Visible() bool { return false }
