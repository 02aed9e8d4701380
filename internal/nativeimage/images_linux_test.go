package nativeimage

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// imagesOf returns the images that tests read: in the full run also those that were fetched by hand.
func imagesOf(t *testing.T) []string {
	list := []string{fixture.Image(t, "image25"), fixture.Image(t, "image23")}
	if fixture.Full(t) {
		for _, more := range []string{"image21", "image22", "image24", "imagejit"} {
			path := strings.ReplaceAll(list[0], "image25", more)
			if _, err := os.Stat(path); err == nil {
				list = append(list, path)
			}
		}
	}
	return list
}

// open reads an image.
func open(t testing.TB, path string) (*program, *image) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	p, ok := openProgram(file)
	if !ok {
		t.Fatalf("%s is not recognised as a native image", path)
	}
	im, ok := find(p, p.heap, p.text)
	if !ok {
		t.Fatalf("the tables of %s are not found", path)
	}
	return p, im
}

// TestTables reads real programs: their tables must describe all of their code, and nearly every
// place in it must have a method with a class and a line.
func TestTables(t *testing.T) {
	for _, path := range imagesOf(t) {
		begun := time.Now()
		_, im := open(t, path)
		took := time.Since(begun)
		if im.format == nil || im.hub.name == 0 {
			t.Errorf("%s: the methods are not found: %+v", path, im.frames)
			continue
		}
		places, lines, inlined, unnamed, odd := 0, 0, 0, 0, 0
		var list []frame
		for i := 0; i < len(im.table.methods); i += 50 {
			e, _, ok := im.table.seek(uint64(im.table.methods[i].start))
			for n := 0; ok && n < 20; n++ {
				if e.kind == plainInfo {
					if list, ok = im.decode(e.info, list[:0]); ok {
						places++
						inlined += len(list) - 1
						for _, f := range list {
							if f.line > 0 {
								lines++
							}
							class, name := im.text(textClass, f.class), im.text(textName, f.name)
							if class == "" || name == "" {
								unnamed++
							}
							if strings.ContainsAny(class, " \n;:") || strings.ContainsAny(name, " ./\n") {
								if odd++; odd < 4 {
									t.Errorf("a method is called %q.%q", class, name)
								}
							}
						}
					}
				}
				ok = im.table.after(&e)
			}
		}
		t.Logf("%s: %v, %d methods of code; %d places, %d inlined, %d lines, %d without a name; %+v", path, took, len(im.table.methods), places, inlined, lines, unnamed, *im.format)
		if places < 1000 || inlined < places/10 || lines < places*8/10 || unnamed > 0 {
			t.Errorf("%s: of %d places %d inlined methods, %d with a line, %d without a name", path, places, inlined, lines, unnamed)
		}
	}
}

// TestKnownMethods looks for methods of the JDK that every program has, and for their lines.
func TestKnownMethods(t *testing.T) {
	want := []string{"java.lang.Thread.run", "java.lang.String.charAt", "java.util.HashMap.get"}
	for _, path := range imagesOf(t) {
		_, im := open(t, path)
		vm := &VM{}
		vm.reset()
		found := map[string]frame{}
		var list []frame
		for _, m := range im.table.methods {
			e, _, ok := im.table.seek(uint64(m.start))
			for n := 0; ok && n < 4; n++ {
				if e.kind == plainInfo {
					list, _ = im.decode(e.info, list[:0])
					for _, f := range list {
						if class := vm.text(im, textClass, f.class); f.line > 0 && strings.HasPrefix(class, "java.") {
							found[class+"."+vm.text(im, textName, f.name)] = f
						}
					}
				}
				if ok = im.table.after(&e); e.begins {
					break
				}
			}
		}
		for _, name := range want {
			f, ok := found[name]
			if !ok {
				t.Errorf("%s: no %s", path, name)
			}
			if file := im.text(textFile, f.class); ok && !strings.HasSuffix(name[:strings.LastIndex(name, ".")], strings.TrimSuffix(file, ".java")) {
				t.Errorf("%s: %s is of the file %q", path, name, file)
			}
			t.Logf("%s: %s line %d bci %d", path, name, f.line, f.bci)
		}
	}
}

func TestVersion(t *testing.T) {
	for name, want := range map[string]string{"image25": "GraalVM CE 25.0.2", "image23": "Oracle GraalVM 23.0.2"} {
		file, err := os.Open(fixture.Image(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if v := Version(file); !strings.HasPrefix(v, want) {
			t.Errorf("%s says that it is of %q, not %q", name, v, want)
		}
		file.Close()
	}
}
