package doctor

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The pages about privileges agree with doctor: the same capabilities, in the same commands.
func TestPagesAgree(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	page := strings.Join(strings.Fields(strings.ReplaceAll(read("privileges.md"), "\\\n", " ")), " ")
	f := &facts{self: "./candid", bounding: 1<<capPerfmon | 1<<capBPF | 1<<capSysPtrace | 1<<capSyslog}
	setcap := f.grant()
	f.pidNS, f.container = true, "docker"
	docker := f.grant()
	if setcap == nil || docker == nil {
		t.Fatalf("%+v %+v", setcap, docker)
	}
	flags := strings.TrimSuffix(strings.TrimPrefix(docker.Command, "docker run "), " IMAGE")
	for _, want := range []string{setcap.Command, flags} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/privileges.md lacks %q", want)
		}
	}
	var names []string
	for s := range strings.SplitSeq(flags, "--cap-add") {
		if s = strings.TrimSpace(s); s != "" {
			names = append(names, s)
		}
	}
	for file, times := range map[string]int{"kubernetes.yaml": 2, "kubernetes-debug.yaml": 1} {
		found := 0
		for line := range strings.Lines(read(file)) {
			list, ok := strings.CutPrefix(strings.TrimSpace(line), "add: [")
			if !ok {
				continue
			}
			got := strings.Split(strings.TrimSuffix(list, "]"), ", ")
			slices.Sort(got)
			slices.Sort(names)
			if !slices.Equal(got, names) {
				t.Errorf("%s adds %v, doctor %v", file, got, names)
			}
			found++
		}
		if found != times {
			t.Errorf("%s adds capabilities %d times, want %d", file, found, times)
		}
	}
}
