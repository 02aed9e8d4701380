package winsuspend_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// Managed frames of .NET have their names and callers, by candid.exe too.
func TestRecordDotNet(t *testing.T) {
	for _, major := range fixture.WindowsDotNets {
		if major != 10 && !fixture.Full(t) {
			continue
		}
		t.Run(fmt.Sprint(major), func(t *testing.T) { recordChain(t, major) })
	}
}

func recordChain(t *testing.T, major int) {
	dir := t.TempDir()
	assembly := fixture.CSharp(t, major, "../../runtimes/dotnet/testdata/Chain.cs")
	methods := []string{
		"Program.Run", "Program.ByStatic", "Derived.ByVirtual", "Derived.ByInterface", "Box<string>.ByGenericType",
		"Program.ByGenericMethod<int, string>", "Program.ByDelegate", "Program.Leaf",
	}
	shared := strings.NewReplacer("System.__Canon", "string")
	recordCallers(t, dir, startDotNet(t, dir, major, assembly), "net.collapsed", "Program.Leaf", func(stack string) bool {
		return strings.Contains(shared.Replace(stack), strings.Join(methods, ";")) && strings.Contains(stack, "RtlUserThreadStart")
	})
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
