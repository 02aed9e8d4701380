package service

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// valued are the options of the java launcher whose value is the next argument (java --help).
var valued = []string{
	"-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--add-modules", "--limit-modules",
	"--add-reads", "--add-exports", "--add-opens", "--patch-module", "--enable-native-access", "--source", "-d", "--describe-module",
}

// version matches the version at the end of a jar's name.
var version = regexp.MustCompile(`-v?[0-9][0-9A-Za-z.+_-]*$`)

// javaName returns the name of a Java program: its jar without the version, or its main class; "" if
// the command line has neither.
func javaName(args []string) string {
	for i := 1; i < len(args); i++ {
		a := args[i]
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch {
		case a == "-jar":
			return jarName(next)
		case a == "-m" || a == "--module":
			return moduleName(next)
		case strings.HasPrefix(a, "--module="):
			return moduleName(strings.TrimPrefix(a, "--module="))
		case slices.Contains(valued, a):
			i++
		case strings.HasPrefix(a, "-"), strings.HasPrefix(a, "@"), a == "":
		case strings.HasSuffix(a, ".java"): // compiled and run by the launcher
			return path.Base(a)
		default:
			return strings.ReplaceAll(a, "/", ".")
		}
	}
	return ""
}

func jarName(file string) string {
	name := strings.TrimSuffix(path.Base(file), ".jar")
	if file == "" || name == "" {
		return ""
	}
	if short := version.ReplaceAllString(name, ""); short != "" {
		return short
	}
	return name
}

// moduleName returns the main class of MODULE/CLASS, or the module.
func moduleName(s string) string {
	if _, class, ok := strings.Cut(s, "/"); ok {
		return class
	}
	return s
}
