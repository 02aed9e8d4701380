package climeta

import "strings"

// Readable returns a method's name as people write it. C# compiles lambdas, local functions,
// iterators and async methods into methods and types of names that no program can contain
// (GeneratedNameKind in dotnet/roslyn, src/Compilers/CSharp/Portable/Symbols/Synthesized); they are
// shown as the method that they were written in.
func Readable(owner Type, method string, typeArgs, methodArgs []string) string {
	names := owner.Names
	suffix := ""
	name := method
	// Types that only hold what the compiler made: <>c, <>c__DisplayClass3_0, <PayAsync>d__5.
	for len(names) > 0 {
		last := names[len(names)-1]
		of, what, rest, ok := generatedName(withoutArity(last))
		if !ok {
			break
		}
		if what == 'd' && of != "" { // the state machine of an iterator or an async method
			if name != "MoveNext" {
				suffix = " (" + name + ")" + suffix
			}
			name = of
		} else if what != 'c' || of != "" && rest == "" {
			break
		}
		names = names[:len(names)-1]
	}
	name, more := readableMethod(name)
	suffix = more + suffix
	t := owner
	t.Names = names
	s := Instantiate(PlainType(t), typeArgs)
	if len(typeArgs) > 0 && len(names) < len(owner.Names) && !strings.Contains(strings.Join(names, ""), "`") {
		s = PlainType(t) // the arguments belonged to what was left out
	}
	if s != "" {
		s += "."
	}
	s += name
	if len(methodArgs) > 0 {
		s += "<" + strings.Join(methodArgs, ", ") + ">"
	}
	return s + suffix
}

// readableMethod takes a generated name of a method apart: the method that it was written in, and
// what it is.
func readableMethod(name string) (of, what string) {
	for range 8 {
		inner, kind, rest, ok := generatedName(name)
		if !ok {
			return name, what
		}
		switch kind {
		case 'b': // <Main>b__0_1: the second lambda of Main
			i := strings.LastIndexByte(rest, '_')
			what = " (lambda " + rest[i+1:] + ")" + what
		case 'g': // <Main>g__Helper|0_1
			local := strings.TrimPrefix(rest, "__")
			local, _, _ = strings.Cut(local, "|")
			what = " (local function " + local + ")" + what
		case '$', 'd', 0: // <Main>$, the statements of a program without a class
		default:
			return name, what
		}
		if inner == "" {
			return name, what
		}
		name = inner
	}
	return name, what
}

// generatedName takes a generated name apart: <of>k__rest, in which of may be empty or again be
// such a name.
func generatedName(s string) (of string, kind byte, rest string, ok bool) {
	if !strings.HasPrefix(s, "<") {
		return "", 0, "", false
	}
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '<':
			depth++
		case '>':
			if depth--; depth == 0 {
				of, rest = s[1:i], s[i+1:]
				if rest == "" {
					return of, 0, "", true
				}
				return of, rest[0], rest[1:], true
			}
		}
	}
	return "", 0, "", false
}

func withoutArity(s string) string {
	if i := strings.LastIndexByte(s, '`'); i > 0 {
		return s[:i]
	}
	return s
}

// PlainType returns the name of a type with dots, as .NET's own stack traces have it.
func PlainType(t Type) string {
	names := make([]string, len(t.Names))
	for i, n := range t.Names {
		names[i] = fileLocal(n)
	}
	s := strings.Join(names, ".")
	if t.Namespace != "" && s != "" {
		s = t.Namespace + "." + s
	}
	return s
}

// fileLocal removes what the compiler puts before the name of a type that only its file sees:
// <File>F1234__Name.
func fileLocal(s string) string {
	if _, kind, rest, ok := generatedName(s); ok && kind == 'F' {
		if _, name, ok := strings.Cut(rest, "__"); ok && name != "" {
			return name
		}
	}
	return s
}

// PlainNested replaces reflection's separator of nested types.
func PlainNested(s string) string { return strings.ReplaceAll(s, "+", ".") }

// Keyword returns C#'s keyword for a type, "" if it has none.
func Keyword(t Type) string {
	if t.Namespace != "System" || len(t.Names) != 1 {
		return ""
	}
	return keywords[t.Names[0]]
}

var keywords = map[string]string{
	"Void": "void", "Boolean": "bool", "Char": "char", "SByte": "sbyte", "Byte": "byte", "Int16": "short", "UInt16": "ushort",
	"Int32": "int", "UInt32": "uint", "Int64": "long", "UInt64": "ulong", "Single": "float", "Double": "double",
	"String": "string", "Object": "object", "IntPtr": "nint", "UIntPtr": "nuint", "Decimal": "decimal",
}
