// Package javaname converts names of classes and methods from the JVM's form to display form.
package javaname

import "strings"

// Function returns the display name of a method from its class's internal name and its own:
// pkg.Class.method. Parts that the VM or the JDK generates and numbers anew in each run are left
// out, so that stacks of different runs merge; raw is the name with them, "" if there are none
// (docs/hotspot.md, "Hidden classes").
func Function(class, method string) (function, raw string) {
	plain, exact := Class(class)
	function = plain + "." + method
	if exact != plain {
		raw = exact + "." + method
	}
	return function, raw
}

// Class returns a class's name without and with its generated parts.
func Class(class string) (plain, exact string) {
	base, suffix := class, ""
	// Hidden classes: the name ends with + (15 and later; tools print / or .) and a number.
	if i := strings.LastIndexAny(class, "+/."); i > 0 && strings.HasPrefix(class[i+1:], "0x") && isHex(class[i+3:]) {
		base, suffix = class[:i], "/"+class[i+1:]
	}
	plain = strings.ReplaceAll(base, "/", ".")
	exact = plain + suffix
	dot := strings.LastIndexByte(plain, '.') + 1
	pkg, simple := plain[:dot], plain[dot:]
	switch {
	case strings.HasPrefix(simple, "$Proxy") && isDigits(simple[len("$Proxy"):]):
		// The packages of proxies are numbered too: jdk.proxy1; com.sun.proxy is not.
		if n := strings.TrimPrefix(pkg, "jdk.proxy"); n != pkg && isDigits(strings.TrimSuffix(n, ".")) {
			pkg = "jdk.proxy."
		}
		plain = pkg + "$Proxy"
	case strings.Contains(simple, "$$Lambda$"):
		i := strings.LastIndex(simple, "$$Lambda$") + len("$$Lambda")
		if isDigits(simple[i+1:]) {
			plain = pkg + simple[:i]
		}
	default:
		for _, p := range numbered {
			if strings.HasPrefix(simple, p) && isDigits(simple[len(p):]) {
				plain = pkg + p
				break
			}
		}
	}
	return plain, exact
}

// numbered are the JDK's generated classes whose names end with a counter.
var numbered = [...]string{
	"GeneratedMethodAccessor", "GeneratedConstructorAccessor", "GeneratedSerializationConstructorAccessor",
	"LambdaForm$MH", "LambdaForm$DMH", "LambdaForm$BMH",
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return s != ""
}

// Source returns a class's name as source code has it: java.lang.String, byte[][]. class is what class
// files and recordings have: java/lang/String, [[B, [Ljava/lang/String; also with dots.
func Source(class string) string {
	element := strings.TrimLeft(class, "[")
	dimensions := len(class) - len(element)
	name := element
	if dimensions > maxDimensions {
		return class
	}
	if dimensions > 0 {
		if inner, ok := strings.CutSuffix(strings.TrimPrefix(element, "L"), ";"); ok && element[0] == 'L' {
			name = inner
		} else if len(element) == 1 && primitives[element[0]] != "" {
			name = primitives[element[0]]
		} else {
			return class
		}
	}
	return strings.ReplaceAll(name, "/", ".") + strings.Repeat("[]", dimensions)
}
