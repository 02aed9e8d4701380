package java

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// jvmFlags make HotSpot keep the position inside inlined code at every
// instruction and not only at safepoints (DebugNonSafepoints, a diagnostic flag
// of every release since 8). They cost the program nothing at run time.
var jvmFlags = []string{"-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"}

// withFlags inserts jvmFlags into the arguments of a java command, and says so; "" if it changes
// nothing. They go first, so that the user's own flags win. An environment variable would work too,
// but the JVM announces those on its error stream.
func withFlags(argv []string) (with []string, said string) {
	if len(argv) == 0 || !isJavaLauncher(argv[0]) {
		return argv, ""
	}
	for _, a := range argv[1:] {
		if strings.HasSuffix(a, "DebugNonSafepoints") {
			return argv, ""
		}
	}
	out := make([]string, 0, len(argv)+len(jvmFlags))
	out = append(out, argv[0])
	out = append(out, jvmFlags...)
	return append(out, argv[1:]...), "added " + strings.Join(jvmFlags, " ") + " to the java command, so that inlined code is placed exactly"
}

// isJavaLauncher reports whether the command is the java launcher of a HotSpot
// JDK: other programs may be called java too, and other virtual machines refuse
// HotSpot's flags.
func isJavaLauncher(cmd string) bool {
	path, err := exec.LookPath(cmd)
	if err != nil {
		return false
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return false
	}
	if name := filepath.Base(path); name != "java" && (runtime.GOOS != "windows" || !strings.EqualFold(name, "java.exe")) {
		return false
	}
	home := filepath.Dir(filepath.Dir(path))
	for _, lib := range []string{"lib/server/libjvm.so", "lib/amd64/server/libjvm.so", "jre/lib/amd64/server/libjvm.so", "lib/aarch64/server/libjvm.so", "jre/lib/aarch64/server/libjvm.so", "bin/server/jvm.dll", "jre/bin/server/jvm.dll"} {
		if st, err := os.Stat(filepath.Join(home, lib)); err == nil && st.Mode().IsRegular() {
			return true
		}
	}
	return false
}
