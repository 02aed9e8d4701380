package winsuspend_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// Managed frames of .NET have their names and callers, by candid.exe too.
func TestRecordDotNet(t *testing.T) {
	exe := candidExe(t)
	for _, major := range fixture.WindowsDotNets {
		if major != 10 && !fixture.Full(t) {
			continue
		}
		t.Run(fmt.Sprint(major), func(t *testing.T) { recordChain(t, exe, major) })
	}
}

func recordChain(t *testing.T, exe string, major int) {
	dir := t.TempDir()
	assembly := fixture.CSharp(t, major, "../../runtimes/dotnet/testdata/Chain.cs")
	pid := startDotNet(t, dir, major, assembly)
	tooLittle := fixture.Watch(t)
	_, errs, code := wine(t, dir, exe, "record", "-p", strconv.Itoa(pid), "-d", "3s", "-F", "200", "-o", "net.collapsed")
	if code == 5 {
		tooLittle("there are no samples: %s", errs)
		return
	}
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	methods := []string{
		"Program.Run", "Program.ByStatic", "Derived.ByVirtual", "Derived.ByInterface", "Box<string>.ByGenericType",
		"Program.ByGenericMethod<int, string>", "Program.ByDelegate", "Program.Leaf",
	}
	var all, right uint64
	for stack, n := range collapsed(t, filepath.Join(dir, "net.collapsed")) {
		if !strings.Contains(stack, "Program.Leaf") {
			continue
		}
		all += n
		shared := strings.NewReplacer("System.__Canon", "string")
		if strings.Contains(shared.Replace(stack), strings.Join(methods, ";")) && strings.Contains(stack, "RtlUserThreadStart") {
			right += n
		} else {
			t.Logf("%d %s", n, stack)
		}
	}
	if all == 0 {
		tooLittle("no sample is of the program: %s", errs)
		return
	}
	if right*1000 < all*999 {
		t.Errorf("%d of %d have the callers that they must have\n%s", right, all, errs)
	}
}

// startDotNet starts a program of .NET for Windows, which prints "ready", and returns its process id there.
func startDotNet(t *testing.T, dir string, major int, assembly string) int {
	t.Helper()
	c := fixture.WindowsDotNetCommand(t, major, assembly)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(line) != "ready" {
		t.Fatalf("the program printed %q: %v", line, err)
	}
	list, errs, code := wine(t, dir, candidExe(t), "ps", "--json")
	var processes []struct {
		PID     int    `json:"pid"`
		Command string `json:"command"`
		Runtime string `json:"runtime"`
	}
	if err := json.Unmarshal([]byte(list), &processes); err != nil || code != 0 {
		t.Fatalf("ps: exit code %d, %v\n%s%s", code, err, list, errs)
	}
	for _, p := range processes {
		if strings.Contains(p.Command, strings.ReplaceAll(assembly, "/", `\`)) {
			if !strings.HasPrefix(p.Runtime, fmt.Sprintf("coreclr %d.0.", major)) {
				t.Errorf("ps lists %+v", p)
			}
			return p.PID
		}
	}
	t.Fatalf("ps does not list %s:\n%s", assembly, list)
	return 0
}
