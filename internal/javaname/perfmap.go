package javaname

import "strings"

// PerfMap parses the name of a compiled method in the map that a JVM, or an agent for it, writes
// for perf: "int java.lang.String.hashCode()" from HotSpot's own Compiler.perfmap
// (Method::external_name), "Ljava/util/HashMap;::get" from perf-map-agent. ok is false for anything
// else, such as another runtime's code. signature is the list of parameters, "" if the map has
// none.
func PerfMap(name string) (function, raw, signature string, ok bool) {
	if class, method, found := strings.Cut(name, ";::"); found && strings.HasPrefix(class, "L") && !strings.ContainsAny(name, " (") {
		function, raw = Function(class[1:], method)
		return function, raw, "", true
	}
	open := strings.IndexByte(name, '(')
	if open < 0 || !strings.HasSuffix(name, ")") {
		return "", "", "", false
	}
	result, method, found := strings.Cut(name[:open], " ")
	dot := strings.LastIndexByte(method, '.')
	if !found || dot <= 0 || strings.ContainsAny(method, " :[]") || strings.ContainsAny(result, ":(") {
		return "", "", "", false
	}
	function, raw = Function(method[:dot], method[dot+1:])
	return function, raw, name[open:], true
}
