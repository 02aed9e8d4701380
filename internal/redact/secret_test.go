package redact

import (
	"slices"
	"strings"
	"testing"
)

func TestArgs(t *testing.T) {
	args := []string{
		"java", "-Xmx2g", "-Ddb.password=hunter2", "-Djavax.net.ssl.keyStorePassword=a b", "-Duser.dir=/x", "--api-key", "abc", "--port", "80",
		"--spring.datasource.url=jdbc:postgresql://me:pw@host/db", "jdbc:mysql://host/db?user=me&password=pw&ssl=true", "--url=jdbc:sqlserver://host;user=me;password=pw",
		"JAVA_OPTS=-Xmx1g -Dpassword=x -Dy=z", "--jvm-args=-Dpassword='a b' -Dy=z", "curl --token abc --max 3 -s", "x=secret=y", "https://u:pw@host/x?a=b", "API_TOKEN=1", "-XX:+UseG1GC", "-Dpin=1", "-Dspin=2", "--passport-dir=/p", "-Dempty.secret=",
	}
	want := []string{
		"java", "-Xmx2g", "-Ddb.password=***", "-Djavax.net.ssl.keyStorePassword=***", "-Duser.dir=/x", "--api-key", "***", "--port", "80",
		"--spring.datasource.url=jdbc:postgresql://me:***@host/db", "jdbc:mysql://host/db?user=me&password=***&ssl=true", "--url=jdbc:sqlserver://host;user=me;password=***",
		"JAVA_OPTS=-Xmx1g -Dpassword=*** -Dy=z", "--jvm-args=-Dpassword=*** -Dy=z", "curl --token *** --max 3 -s", "x=secret=***", "https://u:***@host/x?a=b", "API_TOKEN=***", "-XX:+UseG1GC", "-Dpin=***", "-Dspin=2", "--passport-dir=/p", "-Dempty.secret=",
	}
	if got := Args(args); !slices.Equal(got, want) {
		t.Errorf("\n%q\nwant\n%q", got, want)
	}
}

// In a joined line a secret is masked whole, and everything that follows stays.
func TestLine(t *testing.T) {
	for line, want := range map[string]string{
		"-Xmx1g -Ddb.password=my secret words -Dx=y Main 1": "-Xmx1g -Ddb.password=*** -Dx=y Main 1",
		"Main --token abc def --verbose":                    "Main --token *** --verbose",
		"Main --token":                                      "Main --token ***",
		"":                                                  "",
		"Main a  b":                                         "Main a  b",
		"Main http://u:p@h/ x":                              "Main http://u:***@h/ x",
	} {
		if got := Line(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// An argument may be megabytes of arbitrary bytes: with quadratic time this would not end.
func TestLongArguments(t *testing.T) {
	const n = 1 << 20
	for _, piece := range []string{"=", "a=", "a=&", "a=\"", "password=", "password=&", "password=\"", "--token ", "x://", "x://y:", "x://y:z@"} {
		arg := strings.Repeat(piece, n/len(piece))
		if got := Args([]string{arg})[0]; strings.HasPrefix(piece, "a=") && got != arg {
			t.Errorf("%q is changed", piece)
		}
	}
	for _, piece := range []string{"token = ", `"token","`, "<token>", " -u a:", `name:token,value:`} {
		Args([]string{strings.Repeat(piece, n/4/len(piece))})
	}
}

func FuzzLine(f *testing.F) {
	f.Add("-Da.password=x --token y z")
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(Line("-Dpassword=qzqzq "+s), "qzqzq") && !strings.Contains(s, "qzqzq") {
			t.Error(s)
		}
	})
}

// BenchmarkArgs is what the arguments of a compiler cost, which hold no secret.
func BenchmarkArgs(b *testing.B) {
	args := strings.Fields("/usr/lib/gcc/x86_64-linux-gnu/12/cc1 -quiet -imultiarch x86_64-linux-gnu proj/f0.c -quiet -dumpdir proj/ -dumpbase f0.c -dumpbase-ext .c -mtune=generic -march=x86-64 -O2 -fasynchronous-unwind-tables -o /tmp/ccSkTDIA.s")
	b.ReportAllocs()
	for b.Loop() {
		Args(args)
	}
}
