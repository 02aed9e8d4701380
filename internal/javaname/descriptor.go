package javaname

import "strings"

// primitives are the types that have a letter in descriptors (JVMS 4.3).
var primitives = map[byte]string{'B': "byte", 'C': "char", 'D': "double", 'F': "float", 'I': "int", 'J': "long", 'S': "short", 'Z': "boolean", 'V': "void"}

// maxDimensions is how many dimensions an array may have (JVMS 4.4.1).
const maxDimensions = 255

// Parameters converts a method's descriptor to display form: (Ljava/lang/String;[I)V becomes
// (String, int[]). Text that is not a descriptor, such as a list of parameters in source form, is
// returned unchanged.
func Parameters(descriptor string) string {
	if text, ok := parameters(descriptor); ok {
		return text
	}
	return descriptor
}

// Split separates a method's name from a descriptor that follows it, as in
// foo(Ljava/lang/String;)V; the descriptor is "" if there is none.
func Split(name string) (method, descriptor string) {
	i := strings.IndexByte(name, '(')
	if i <= 0 {
		return name, ""
	}
	if _, ok := parameters(name[i:]); !ok {
		return name, ""
	}
	return name[:i], name[i:]
}

func parameters(descriptor string) (text string, ok bool) {
	rest, ok := strings.CutPrefix(descriptor, "(")
	if !ok {
		return "", false
	}
	var b strings.Builder
	b.WriteByte('(')
	for first := true; !strings.HasPrefix(rest, ")"); first = false {
		if !first {
			b.WriteString(", ")
		}
		if rest, ok = fieldType(&b, rest); !ok {
			return "", false
		}
	}
	if rest = rest[1:]; rest != "V" { // the return type is not shown, but must be there
		var returned strings.Builder
		if rest, ok = fieldType(&returned, rest); !ok || rest != "" {
			return "", false
		}
	}
	b.WriteByte(')')
	return b.String(), true
}

// fieldType reads a type and writes it without its package.
func fieldType(b *strings.Builder, s string) (rest string, ok bool) {
	dimensions := 0
	for ; strings.HasPrefix(s, "["); s = s[1:] {
		dimensions++
	}
	if s == "" || dimensions > maxDimensions {
		return "", false
	}
	if s[0] == 'L' {
		class, after, found := strings.Cut(s[1:], ";")
		if class = class[strings.LastIndexByte(class, '/')+1:]; !found || class == "" || strings.ContainsAny(class, ".[()") {
			return "", false
		}
		b.WriteString(class)
		rest = after
	} else {
		name := primitives[s[0]]
		if name == "" || s[0] == 'V' {
			return "", false
		}
		b.WriteString(name)
		rest = s[1:]
	}
	for range dimensions {
		b.WriteString("[]")
	}
	return rest, true
}
