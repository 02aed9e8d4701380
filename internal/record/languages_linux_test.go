package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
)

// TestLanguages records programs of several languages, compiled as usual for speed: their stacks are
// complete, and functions have the names that the language gives them.
func TestLanguages(t *testing.T) {
	fixture.OnlyFull(t, "TestUnknownInterpreters")
	sources, err := filepath.Abs("testdata/languages")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, compiler string
		args           []string // of the compiler, besides the file that it makes and its source
		out            string   // the option for that file
		source, count  string   // count is a function's name in the profile
	}{
		{"C++", "g++", []string{"-O2"}, "-o", "work.cc", "count"},
		{"C++, clang", "clang++", []string{"-O2"}, "-o", "work.cc", "count"},
		{"Rust", "rustc", []string{"-O"}, "-o", "work.rs", "work::count"},
		{"OCaml", "ocamlopt", nil, "-o", "work.ml", "camlWork"},
		{"Nim", "nim", []string{"c", "-d:release", "--hints:off"}, "-o:", "work.nim", "count"},
		{"D, LLVM", "ldc2", []string{"-O2"}, "-of=", "work.d", "work.count"},
		{"D, gcc", "gdc", []string{"-O2"}, "-o", "work.d", "work.count"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.compiler); err != nil && (c.compiler == "rustc" || c.compiler == "ocamlopt" || c.compiler == "gdc") {
				t.Skipf("needs %s, which the script does not install: it is large", c.compiler)
			}
			compiler := fixture.Tool(t, c.compiler)
			dir := t.TempDir()
			text, err := os.ReadFile(filepath.Join(sources, c.source))
			if err != nil {
				t.Fatal(err)
			}
			// Compilers write files beside the source.
			source, exe := filepath.Join(dir, c.source), filepath.Join(dir, "program")
			if err := os.WriteFile(source, text, 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{}, c.args...)
			if strings.HasSuffix(c.out, ":") || strings.HasSuffix(c.out, "=") {
				args = append(args, c.out+exe)
			} else {
				args = append(args, c.out, exe)
			}
			cmd := exec.Command(compiler, append(args, source)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
			if c.compiler == "rustc" {
				cmd.Env = os.Environ() // rustup's settings are at home
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", c.compiler, err, out)
			}
			tooLittle := fixture.Watch(t)
			p := run(t, Options{Command: []string{exe}}).Profile
			q := p.Quality()
			named, shown := false, 0
			for i := range p.Samples {
				s := &p.Samples[i]
				names := namesOf(p, s.Node)
				for _, name := range names {
					named = named || strings.HasPrefix(name, c.count)
				}
				if profile.CertaintyOf(s.End, s.Flags) != profile.CertaintyComplete && shown < 8 {
					shown++
					t.Logf("%s: %q", profile.CertaintyOf(s.End, s.Flags), names)
				}
			}
			t.Logf("%+v", q)
			if q.Samples < 1000 {
				tooLittle("%d samples", q.Samples)
				return
			}
			if q.Complete*1000 < q.Samples*999 {
				t.Errorf("of %d stacks %d are complete", q.Samples, q.Complete)
			}
			if !named {
				t.Errorf("no function is named %q", c.count)
			}
		})
	}
}
