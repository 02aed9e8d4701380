package symbol

import (
	"cmp"
	"debug/elf"
	"debug/gosym"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

const cppSource = `
#include <vector>
#include <string>
#include <algorithm>
#include <cstdio>
#include <map>
namespace outer { namespace {
static inline int mix(int a, int b) { return (a * 31) ^ (b >> 3); }
template <typename T> struct Box {
  T v;
  __attribute__((noinline)) T turn(int k) const { T r = v; for (int i = 0; i < k; i++) r = mix(r, i); return r; }
};
} }
class Shape { public: virtual ~Shape() {} virtual double area() const = 0; };
class Square : public Shape { double s; public: Square(double s) : s(s) {} double area() const override { return s * s; } };
__attribute__((noinline)) double total(const std::vector<Shape*>& v) { double t = 0; for (auto* s : v) t += s->area(); return t; }
__attribute__((noinline)) int sorted(std::vector<int>& v) { std::sort(v.begin(), v.end(), [](int a, int b) { return outer::mix(a, 1) < outer::mix(b, 2); }); return v.front(); }
int main(int argc, char** argv) {
  std::vector<int> v; for (int i = 0; i < 1000; i++) v.push_back(outer::mix(i, argc));
  std::map<std::string, int> m; for (int i : v) m[std::to_string(i)] += i;
  std::vector<Shape*> s; for (int i = 0; i < 10; i++) s.push_back(new Square(i));
  outer::Box<int> b{argc};
  printf("%d %zu %f %d\n", sorted(v), m.size(), total(s), b.turn(100));
}
`

const rustSource = `
use std::collections::HashMap;
trait Weigh { fn weigh(&self) -> u64; }
struct Stone(u64);
impl Weigh for Stone { #[inline(never)] fn weigh(&self) -> u64 { self.0.wrapping_mul(31).rotate_left(5) } }
#[inline(never)] fn heap(v: &mut Vec<u64>) -> u64 { v.sort_by(|a, b| b.cmp(a)); v.iter().map(|x| x ^ 7).sum() }
fn main() {
    let mut m: HashMap<String, u64> = HashMap::new();
    for i in 0..1000u64 { *m.entry(format!("k{}", i % 37)).or_insert(0) += Stone(i).weigh(); }
    let mut v: Vec<u64> = m.values().cloned().collect();
    println!("{}", heap(&mut v));
}
`

const goSource = `package main

import ("fmt"; "sort"; "strings")

func small(a int) int { return a*31 ^ a>>2 }

//go:noinline
func work(n int) int { s := []int{}; for i := 0; i < n; i++ { s = append(s, small(i)) }; sort.Ints(s); return s[0] }

func main() { fmt.Println(work(1000), strings.Repeat("x", 3)) }
`

func compile(t testing.TB, file, src, tool string, args ...string) string {
	t.Helper()
	fixture.Tool(t, tool)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, tool, append(args, "-o", "prog", file)...)
	return filepath.Join(dir, "prog")
}

type sourcePlace struct{ function, at string }

// addr2line runs binutils or, if that does not know the format, elfutils for every address; chains
// are innermost first.
func addr2line(t testing.TB, tool, path string, addrs []uint64) [][]sourcePlace {
	t.Helper()
	args := []string{"-a", "-i", "-f", "-e", path}
	for _, a := range addrs {
		args = append(args, fmt.Sprintf("%#x", a))
	}
	var out [][]sourcePlace
	lines := strings.Split(strings.TrimSpace(run(t, "", tool, args...)), "\n")
	for i := 0; i < len(lines); {
		if strings.HasPrefix(lines[i], "0x") {
			out = append(out, nil)
			i++
			continue
		}
		fn, _, _ := strings.Cut(lines[i], " inlined at ")
		at, _, _ := strings.Cut(lines[i+1], " (discriminator")
		if parts := strings.Split(at, ":"); len(parts) == 3 {
			at = parts[0] + ":" + parts[1] // elfutils adds the column
		}
		out[len(out)-1] = append(out[len(out)-1], sourcePlace{fn, at})
		i += 2
	}
	return out
}

var startup = map[string]bool{"_start": true, "_init": true, "_fini": true, "frame_dummy": true, "__do_global_dtors_aux": true,
	"register_tm_clones": true, "deregister_tm_clones": true}

// againstAddr2line compares chains of functions and lines for random addresses of the program; min
// is the share that must agree completely.
func againstAddr2line(t *testing.T, tool, path string, min float64) {
	fixture.Tool(t, tool)
	f := openTest(t, path, Options{})
	rng := rand.New(rand.NewPCG(3, 4))
	var addrs []uint64
	for len(addrs) < 1500 {
		e := f.table.syms[rng.IntN(len(f.table.syms))]
		if e.size > 0 {
			addrs = append(addrs, e.addr+rng.Uint64N(uint64(e.size)))
		}
	}
	want := addr2line(t, tool, path, addrs)
	if len(want) != len(addrs) {
		t.Fatalf("addr2line answered %d of %d", len(want), len(addrs))
	}
	known, inlined, depthWrong, lineWrong, nameWrong, shown := 0, 0, 0, 0, 0, 0
	for i, a := range addrs {
		got := f.Lines(a, nil)
		w := want[i]
		sym, _ := f.Symbol(a)
		symbol := cmp.Or(sym.Raw, sym.Name)
		if startup[symbol] {
			continue // no DWARF; elfutils then returns the function before
		}
		if strings.HasPrefix(w[0].at, "??") || strings.HasSuffix(w[0].at, ":?") || strings.HasSuffix(w[0].at, ":0") {
			continue
		}
		known++
		if len(w) > 1 {
			inlined++
		}
		bad := ""
		if len(got) != len(w) {
			depthWrong++
			bad = "depth"
		} else {
			for j := range w {
				line := fmt.Sprintf(":%d", got[j].Line)
				if got[j].Line == 0 {
					line = ":?"
				}
				if w[j].at == "??:?" && got[j].File == "" {
					continue
				}
				if !strings.HasSuffix(w[j].at, line) || filepath.Base(strings.Split(w[j].at, ":")[0]) != filepath.Base(got[j].File) {
					lineWrong++
					bad = "line"
					break
				}
				// addr2line names the first position by the symbol table, and puts no scopes before
				// plain names.
				if j == 0 {
					continue
				}
				if !strings.HasSuffix(Demangle(got[j].Function), Demangle(w[j].function)) && w[j].function != symbol {
					nameWrong++
					bad = "name"
					break
				}
			}
		}
		if bad != "" && shown < 4 {
			shown++
			t.Logf("%#x %s:\n got %+v\nwant %+v", a, bad, got, w)
		}
	}
	t.Logf("%s: %d known to addr2line, %d of them with inlining; differing depth %d, line %d, name %d",
		filepath.Base(path), known, inlined, depthWrong, lineWrong, nameWrong)
	if known < 400 {
		t.Errorf("addr2line knows only %d addresses", known)
	}
	if ok := 1 - float64(depthWrong+lineWrong+nameWrong)/float64(known); ok < min {
		t.Errorf("%.2f%% agree, want %.2f%%", 100*ok, 100*min)
	}
}

func TestLinesAgainstAddr2line(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what compiles a program for each version of DWARF")
	}
	for _, v := range []struct {
		name string
		tool string
		args []string
	}{
		{"dwarf5", "addr2line", []string{"-g", "-O2", "-gdwarf-5"}},
		{"dwarf4", "addr2line", []string{"-g", "-O2", "-gdwarf-4"}},
		{"dwarf4-compressed", "addr2line", []string{"-g", "-O2", "-gdwarf-4", "-gz=zlib"}},
		{"dwarf5-64", "eu-addr2line", []string{"-g", "-O2", "-gdwarf-5", "-gdwarf64"}},
		{"dwarf2", "addr2line", []string{"-g", "-O2", "-gdwarf-2", "-gstrict-dwarf"}},
	} {
		t.Run("c++/"+v.name, func(t *testing.T) {
			againstAddr2line(t, v.tool, compile(t, "prog.cc", cppSource, "g++", v.args...), 0.98)
		})
	}
	t.Run("rust", func(t *testing.T) {
		if _, err := exec.LookPath("rustc"); err != nil {
			t.Skip("needs rustc, which is too large to be installed for this alone")
		}
		againstAddr2line(t, "addr2line", compile(t, "prog.rs", rustSource, "rustc", "-g", "-O"), 0.98)
	})
}

// TestCompressedLines checks that the answers are the same however the sections are compressed.
func TestCompressedLines(t *testing.T) {
	path, at := buildC(t, "-g", "-O2")
	plain := openTest(t, path, Options{})
	for _, how := range []string{"zlib", "zlib-gnu", "zstd"} {
		packed := path + "." + how
		if out, err := exec.Command(fixture.Tool(t, "objcopy"), "--compress-debug-sections="+how, path, packed).CombinedOutput(); err != nil {
			t.Logf("objcopy cannot pack with %s: %s", how, out)
			continue
		}
		f := openTest(t, packed, Options{})
		if s := f.m.Section(".debug_info"); s != nil && !s.Packed() {
			t.Errorf("%s: .debug_info is not packed", how)
		}
		for off := range uint64(16) {
			if got, want := f.Lines(at["out"]+off, nil), plain.Lines(at["out"]+off, nil); len(want) == 0 || !slices.Equal(got, want) {
				t.Fatalf("%s: %#x: %v, want %v; notes %v", how, at["out"]+off, got, want, f.Notes())
			}
		}
	}
}

// TestGo compares names and lines with what the standard library reads from Go's
// own table: by DWARF, and by that table in a stripped program.
func TestGo(t *testing.T) {
	for _, v := range []struct {
		name string
		args []string
	}{
		{"dwarf", []string{"build"}},
		{"stripped", []string{"build", "-ldflags=-s -w"}},
		{"stripped-pie", []string{"build", "-buildmode=pie", "-ldflags=-s -w"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			path := compile(t, "prog.go", goSource, "go", v.args...)
			f := openTest(t, path, Options{})
			ef, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer ef.Close()
			sect := ef.Section(".gopclntab")
			if sect == nil {
				sect = ef.Section(".data.rel.ro.gopclntab")
			}
			data, err := sect.Data()
			if err != nil {
				t.Fatal(err)
			}
			truth, err := gosym.NewTable(nil, gosym.NewLineTable(data, ef.Section(".text").Addr))
			if err != nil {
				t.Fatal(err)
			}
			if len(truth.Funcs) < 500 {
				t.Fatalf("gosym knows %d functions", len(truth.Funcs))
			}
			rng := rand.New(rand.NewPCG(5, 6))
			wrong, lines, inlined := 0, 0, 0
			for range 5000 {
				fn := &truth.Funcs[rng.IntN(len(truth.Funcs))]
				if fn.End <= fn.Entry {
					continue
				}
				addr := fn.Entry + rng.Uint64N(fn.End-fn.Entry)
				file, line, _ := truth.PCToLine(addr)
				got, ok := f.Symbol(addr)
				if !ok || got.Name != Demangle(fn.Name) {
					if wrong++; wrong < 5 {
						t.Errorf("%#x: %+v, want %s", addr, got, fn.Name)
					}
				}
				if line <= 0 {
					continue
				}
				places := f.Lines(addr, nil)
				if len(places) > 1 {
					inlined++
				}
				if len(places) == 0 || places[0].File != file || int(places[0].Line) != line {
					if lines++; lines < 5 {
						t.Logf("%#x %s: %+v, want %s:%d", addr, fn.Name, places, file, line)
					}
				}
			}
			t.Logf("%d names, %d lines differ, %d places inlined", wrong, lines, inlined)
			if wrong > 0 || lines > 150 {
				t.Errorf("of 5000 %d names and %d lines differ", wrong, lines)
			}
			if v.name == "dwarf" && inlined == 0 {
				t.Error("no inlined places")
			}
		})
	}
}
