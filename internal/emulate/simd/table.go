package simd

import "golang.org/x/arch/x86/x86asm"

// ops are the instructions, by x86asm's numbers, numbers their names' numbers.
var (
	ops     = map[x86asm.Op]*Op{}
	numbers = names()
)

func names() map[string]x86asm.Op {
	all := map[string]x86asm.Op{}
	for i := x86asm.Op(1); i < 1<<13; i++ {
		if s := i.String(); s != "" && s[len(s)-1] != ')' {
			all[s] = i
		}
	}
	return all
}

// define makes instructions known under their names and, with the same meaning, under those that
// begin with V. A name that x86asm does not have is none.
func define(op Op, names ...string) {
	for _, name := range names {
		for _, name := range []string{name, "V" + name} {
			if n, ok := numbers[name]; ok {
				ops[n] = &op
			}
		}
	}
}

// Lookup returns how an instruction is executed; nil if it is none of those that this package knows.
func Lookup(code x86asm.Op) *Op { return ops[code] }
