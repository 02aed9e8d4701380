package dotnet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/record"
)

// TestCompiler records a real program from its start to its end: the C# compiler, with many classes
// to compile.
func TestCompiler(t *testing.T) {
	fixture.OnlyFull(t, "TestLoads")
	dir := t.TempDir()
	var source strings.Builder
	for i := range 400 {
		fmt.Fprintf(&source, `namespace N%[1]d { using System; using System.Linq; using System.Collections.Generic;
public class C%[1]d<T> where T : class {
	public int A(int x) => Enumerable.Range(0, x).Where(y => y %% 2 == 0).Select(y => y * %[1]d).Sum();
	public async System.Threading.Tasks.Task<int> B(int q) { await System.Threading.Tasks.Task.Delay(1); return A(q); }
	public IEnumerable<int> It(int z) { for (int i = 0; i < z; i++) { if (i %% 3 == 0) yield return i; else yield return A(i); } }
	public string S(string a) { switch (a) { case "x": return $"{a}"; default: try { return a.ToString(); } finally { Console.WriteLine(a); } } }
} }
`, i)
	}
	file := filepath.Join(dir, "Big.cs")
	if err := os.WriteFile(file, []byte(source.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	argv := fixture.CSharpCompiler(t, "-t:library", "-out:"+filepath.Join(dir, "Big.dll"), file)
	tooLittle := fixture.Watch(t)
	p := recorded(t, record.Options{Command: argv, Hz: 499, Events: []string{"cpu"}})
	q := p.Quality()
	other := map[string]int{}
	for _, s := range p.Samples {
		if c := profile.CertaintyOf(s.End, s.Flags); c != profile.CertaintyComplete {
			other[fmt.Sprint(c, all(p, s.Node))]++
		}
	}
	t.Logf("%+v; candid used %v of CPU time", q, p.Meta.Cost.OwnCPU)
	if q.Samples < 1000 {
		tooLittle("%d samples", q.Samples)
		return
	}
	if float64(q.Complete) < 0.999*float64(q.Samples) {
		// Code that was generated last can be read only as long as the process, which is ending, has
		// its memory. candid needs a CPU in that time.
		tooLittle("%d of %d stacks are complete; %v", q.Complete, q.Samples, other)
	}
}
