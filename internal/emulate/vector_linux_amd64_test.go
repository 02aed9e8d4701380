package emulate

import (
	"debug/elf"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/fixture"
)

// Names of instructions whose operands are of one kind each. In a form, X, Y and Z stand for
// registers of 16, 32 and 64 bytes, S, T and U for one of these or memory, R and Q for general
// registers of 4 and 8 bytes, I for a constant, K for a register of masks; the destination is last.
const (
	twoVectors = `paddb paddw paddd paddq psubb psubw psubd psubq paddusb paddusw psubusb psubusw paddsb paddsw psubsb psubsw
		pavgb pavgw pminub pminuw pminud pmaxub pmaxuw pmaxud pminsb pminsw pminsd pmaxsb pmaxsw pmaxsd pcmpeqb pcmpeqw pcmpeqd pcmpeqq
		pcmpgtb pcmpgtw pcmpgtd pcmpgtq pmullw pmulld pmulhw pmulhuw pmulhrsw pmuludq pmuldq pmaddwd pmaddubsw psadbw
		pand pandn por pxor andps andnps orps xorps andpd andnpd orpd xorpd psignb psignw psignd pshufb
		punpcklbw punpcklwd punpckldq punpcklqdq punpckhbw punpckhwd punpckhdq punpckhqdq unpcklps unpckhps unpcklpd unpckhpd
		packsswb packssdw packuswb packusdw addps addpd subps subpd mulps mulpd divps divpd minps minpd maxps maxpd`
	byCount    = `psllw pslld psllq psrlw psrld psrlq psraw psrad`
	oneVector  = `pabsb pabsw pabsd movdqa movdqu movaps movups movapd movupd movshdup movsldup sqrtps sqrtpd cvtdq2ps cvttps2dq cvtps2dq`
	scalars    = `addss addsd subss subsd mulss mulsd divss divsd minss minsd maxss maxsd sqrtss sqrtsd cvtss2sd cvtsd2ss`
	withNumber = `pshufd pshufhw pshuflw`
	twoNumber  = `palignr shufps shufpd pblendw blendps blendpd cmpps cmppd cmpss cmpsd roundss roundsd`
	legacyOnly = `movss:X,X movsd:X,X movq:S,X movhlps:X,X movlhps:X,X movd:X,R movq:X,Q movd:R,X movq:Q,X movmskps:X,R movmskpd:X,R
		pmovmskb:X,R pslldq:I,X psrldq:I,X psllw:I,X pslld:I,X psllq:I,X psrlw:I,X psrld:I,X psrlq:I,X psraw:I,X psrad:I,X
		pextrb:I,X,R pextrw:I,X,R pextrd:I,X,R pextrq:I,X,Q pinsrb:I,R,X pinsrw:I,R,X pinsrd:I,R,X pinsrq:I,Q,X extractps:I,X,R insertps:I,S,X
		cvtsi2ssl:R,X cvtsi2sdl:R,X cvtsi2ssq:Q,X cvtsi2sdq:Q,X cvttss2si:X,R cvttsd2si:X,R cvttss2si:X,Q cvttsd2si:X,Q cvtss2si:X,R
		cvtsd2si:X,Q cvtdq2pd:S,X cvtps2pd:S,X cvtpd2ps:S,X cvttpd2dq:S,X cvtpd2dq:S,X roundps:I,S,X roundpd:I,S,X movddup:S,X
		pmovzxbw:S,X pmovzxbd:S,X pmovzxbq:S,X pmovzxwd:S,X pmovzxwq:S,X pmovzxdq:S,X pmovsxbw:S,X pmovsxbd:S,X pmovsxbq:S,X
		pmovsxwd:S,X pmovsxwq:S,X pmovsxdq:S,X pblendvb:X,X blendvps:X,X blendvpd:X,X movhps:M,X movlps:M,X movhpd:M,X movlpd:M,X
		movss:M,X movsd:M,X movq:M,X movd:M,X lddqu:M,X ucomiss:S,X ucomisd:S,X comiss:S,X comisd:S,X ptest:S,X`
	avx = `vmovss:X,X,X vmovsd:X,X,X vmovq:X,X vmovd:X,R vmovq:Q,X vmovhlps:X,X,X vmovlhps:X,X,X vmovhps:M,X,X vmovlpd:M,X,X vmovss:M,X
		vpmovmskb:Y,R vmovmskps:Y,R vmovmskpd:Y,R vpslldq:I,Y,Y vpsrldq:I,Y,Y vpslld:I,Y,Y vpsrlq:I,X,X vpsraw:I,Y,Y vpblendvb:Y,T,Y,Y
		vpblendd:I,T,Y,Y vinserti128:I,S,Y,Y vextracti128:i,Y,X vinsertf128:i,S,Y,Y vextractf128:i,Y,X vperm2i128:I,T,Y,Y vperm2f128:I,T,Y,Y
		vpbroadcastb:S,Y vpbroadcastw:S,Y vpbroadcastd:S,X vpbroadcastq:S,Y vbroadcastss:S,Y vbroadcastsd:S,Y vbroadcasti128:M,Y
		vpermd:T,Y,Y vpsllvd:T,Y,Y vpsllvq:T,Y,Y vpsrlvd:T,Y,Y vpsrlvq:T,Y,Y vpsravd:T,Y,Y vpmovzxbw:S,Y vpmovsxwd:S,Y vcvtdq2pd:S,Y
		vcvtps2pd:S,Y vcvtpd2psy:T,X vcvttpd2dqy:T,X vpalignr:I,T,Y,Y vptest:T,Y vucomisd:S,X vcmppd:I,T,Y,Y vcvtsi2sdq:Q,X,X vcvttsd2si:X,Q
		vpinsrd:I,R,X,X vpextrq:I,X,Q vzeroupper: vmovddup:T,Y`
	fma = `vfmadd132sd:S,X,X vfmadd213sd:S,X,X vfmadd231sd:S,X,X vfmsub213sd:S,X,X vfnmadd231sd:S,X,X vfnmsub132pd:T,Y,Y`
	bmi = `andn:R,R,R andn:Q,Q,Q bextr:R,R,R blsi:Q,Q blsmsk:R,R blsr:Q,Q bzhi:R,R,R bzhi:Q,Q,Q mulx:Q,Q,Q mulx:R,R,R pdep:Q,Q,Q pext:Q,Q,Q
		rorx:I,R,R rorx:I,Q,Q sarx:R,R,R shlx:Q,Q,Q shrx:R,R,R sarx:Q,Q,Q tzcnt:Q,Q lzcnt:R,R popcnt:Q,Q`
	evex = `vpcmpeqb:U,Z,K vpcmpeqb:U,Z,K{k} vpcmpub:J,U,Z,K vpcmpd:J,U,Z,K vpcmpuq:J,U,Z,K{k} vptestnmb:U,Z,K vptestmd:U,Z,K vpcmpgtw:U,Z,K
		vpminub:U,Z,Z vpminub:U,Z,Z{k}{z} vpaddd:U,Z,Z{k} vpaddd:B,Z,Z vpternlogd:I,U,Z,Z vpternlogq:I,U,Z,Z vpxorq:U,Z,Z vpandq:U,Z,Z vpandnd:U,Z,Z
		vmovdqu8:U,Z{k}{z} vmovdqu8:Z,Z{k} vmovdqu64:U,Z vmovdqa32:Z,Z{k} vmovdqu16:Z,Z{k}{z} vpbroadcastb:R,Z vpbroadcastd:R,Z
		vpsubb:U,Z,Z vpabsq:U,Z vpmullq:U,Z,Z vpmovwb:Z,Y vpmovqd:Z,Y vpmovb2m:Z,K vpmovd2m:Z,K kmovd:K,R kmovq:K,Q kmovd:R,K kmovq:Q,K kmovw:K,K
		kandd:K,K,K kandnq:K,K,K korw:K,K,K kxorq:K,K,K kxnord:K,K,K knotq:K,K kaddb:K,K,K kshiftlq:I,K,K kshiftrd:I,K,K
		kunpckbw:K,K,K kunpckwd:K,K,K kunpckdq:K,K,K kortestd:K,K kortestq:K,K ktestd:K,K vinserti64x4:i,T,Z,Z vextracti64x4:i,Z,Y vaddpd:U,Z,Z{k}`
)

// forms returns the instructions to try on this processor.
func forms(t *testing.T) (all []string, has func(string) bool) {
	t.Helper()
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	line := string(text[strings.Index(string(text), "\nflags"):])
	line, _, _ = strings.Cut(line[1:], "\n")
	flags := strings.Fields(line)
	has = func(s string) bool { return slices.Contains(flags, s) }
	if !has("sse4_2") {
		t.Skip("this processor has no SSE4.2")
	}
	add := func(names string, legacy bool, shapes ...string) {
		for _, name := range strings.Fields(names) {
			for _, s := range shapes {
				switch {
				case legacy && s[0] != 'v':
					all = append(all, name+":"+s)
				case !legacy && s[0] == 'v':
					all = append(all, "v"+name+":"+s[1:])
				}
			}
		}
	}
	for _, legacy := range []bool{true, false} {
		if !legacy && !has("avx2") {
			break
		}
		add(twoVectors, legacy, "S,X", "vS,X,X", "vT,Y,Y")
		add(byCount, legacy, "S,X", "vS,X,X", "vS,Y,Y")
		add(oneVector, legacy, "S,X", "vS,X", "vT,Y")
		add(scalars, legacy, "S,X", "vS,X,X")
		add(withNumber, legacy, "I,S,X", "vI,S,X", "vI,T,Y")
		add(twoNumber, legacy, "J,S,X", "vJ,S,X,X")
	}
	all = append(all, strings.Fields(legacyOnly)...)
	for _, s := range [][2]string{{"avx2", avx}, {"fma", fma}, {"bmi2", bmi}} {
		if has(s[0]) {
			all = append(all, strings.Fields(s[1])...)
		}
	}
	if has("avx512vl") && has("avx512bw") && has("avx512dq") {
		all = append(all, strings.Fields(evex)...)
	}
	return all, has
}

const (
	perBlock = 24 // instructions of a trace
	slotSize = 64 // of a result
	rows     = 64 // vectors that instructions work on
	// blockSpace is the size of a block's results.
	blockSpace = perBlock * slotSize
)

// assembly writes a program of blocks of instructions with random operands, each of which stores the
// result behind it.
func assembly(list []string, has func(string) bool) string {
	var b strings.Builder
	p := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	wide := has("avx512vl") && has("avx512bw") && has("avx512dq")
	p(".section .note.GNU-stack,\"\"\n.data\n.balign 64\ndata:")
	for range rows * 8 {
		var v uint64
		half := func() uint32 {
			return []uint32{rand.Uint32(), rand.Uint32N(8), -rand.Uint32N(8), math.Float32bits(rand.Float32()*100 - 50), math.Float32bits(float32(rand.IntN(9))), 0, 0x80000000, 0x7f800000, 0x7fc00000, 0x41414141}[rand.IntN(10)]
		}
		switch rand.IntN(3) {
		case 0:
			v = uint64(half()) | uint64(half())<<32
		case 1:
			v = []uint64{rand.Uint64(), math.Float64bits(rand.NormFloat64() * 1e3), math.Float64bits(float64(rand.IntN(9)) - 4), 0, 1 << 63, math.Float64bits(math.NaN()), math.Float64bits(math.Inf(1)), 5, math.Float64bits(-1.5), rand.Uint64() & 0x00ff00ff00ff00ff}[rand.IntN(10)]
		default:
			v = math.Float64bits(math.Ldexp(rand.Float64()-0.5, rand.IntN(70)-10))
		}
		p(".quad %#x", v)
	}
	p(".bss\n.balign 64\nout: .skip %d\n.text\n.globl _start\n_start:\nlea data(%%rip),%%rdi\nlea out(%%rip),%%rsi", (len(list)+perBlock-1)/perBlock*blockSpace)
	vec := map[bool]string{true: "vmovdqu %[1]d(%%rdi),%%ymm%[2]d", false: "movdqu %[1]d(%%rdi),%%xmm%[2]d"}[has("avx2")]
	if wide {
		vec = "vmovdqu64 %[1]d(%%rdi),%%zmm%[2]d"
	}
	for i := 0; i < len(list); i += perBlock {
		p("block%d:\nmov %d(%%rdi),%%rdx", i/perBlock, rand.IntN(rows*8)*8)
		for r := range 16 {
			p(vec, rand.IntN(rows-1)*64, r)
			if r >= 8 {
				p("mov %d(%%rdi),%%r%d", rand.IntN(rows*8)*8, r)
			}
			if wide && r < 8 {
				p("kmovq %d(%%rdi),%%k%d", rand.IntN(rows*8)*8, r)
			}
		}
		for k, form := range list[i:min(i+perBlock, len(list))] {
			name, shape, _ := strings.Cut(form, ":")
			out := k * slotSize
			to := ""
			line := name + " "
			for j, s := range []byte(shape) {
				if strings.HasPrefix(shape[j:], "{") {
					line += strings.ReplaceAll(shape[j:], "{k}", fmt.Sprintf("{%%k%d}", 1+rand.IntN(7)))
					break
				}
				r := rand.IntN(16)
				memory := fmt.Sprintf("%d(%%rdi)", rand.IntN(rows-1)*64)
				arg := string(s)
				switch s {
				case 'X', 'Y', 'Z':
					to = map[byte]string{'X': "%xmm", 'Y': "%ymm", 'Z': "%zmm"}[s]
					arg = fmt.Sprint(to, r)
					to = fmt.Sprint(r)
				case 'S', 'T', 'U':
					arg = fmt.Sprint(map[byte]string{'S': "%xmm", 'T': "%ymm", 'U': "%zmm"}[s], r)
					if rand.IntN(4) == 0 {
						arg = memory
					}
				case 'M':
					arg = memory
				case 'B':
					arg = memory + "{1to16}"
				case 'R':
					to = fmt.Sprintf("r%d", 8+r/2)
					arg = "%" + to + "d"
				case 'Q':
					to = fmt.Sprintf("r%d", 8+r/2)
					arg = "%" + to
				case 'K':
					to = fmt.Sprintf("k%d", 1+rand.IntN(7))
					arg = "%" + to
				case 'I':
					arg = fmt.Sprintf("$%d", []int{rand.IntN(4), rand.IntN(256)}[rand.IntN(2)])
				case 'J':
					arg = fmt.Sprintf("$%d", rand.IntN(8))
				case 'i':
					arg = fmt.Sprintf("$%d", rand.IntN(2))
				}
				line += arg
			}
			p("%s", line)
			flags := strings.Contains(name, "comis") || strings.Contains(name, "test") && !strings.Contains(name, "vptestnm") && !strings.Contains(name, "vptestm")
			switch {
			case flags:
				p("setc %d(%%rsi)\nsetz %d(%%rsi)\nsetp %d(%%rsi)\nsets %d(%%rsi)", out, out+1, out+2, out+3)
			case to == "":
			case to[0] == 'r':
				p("mov %%%s,%d(%%rsi)", to, out)
			case to[0] == 'k':
				p("kmovq %%%s,%d(%%rsi)", to, out)
			case wide:
				p("vmovdqu64 %%zmm%s,%d(%%rsi)", to, out)
			case has("avx2"):
				p("vmovdqu %%ymm%s,%d(%%rsi)", to, out)
			default:
				p("movups %%xmm%s,%d(%%rsi)", to, out)
			}
		}
		p("add $%d,%%rsi\nstd\ncld", blockSpace) // traces end at std
	}
	p("mov $1,%%eax\nmov $1,%%edi\nlea out(%%rip),%%rsi\nmov $%d,%%edx\nsyscall\nmov $60,%%eax\nxor %%edi,%%edi\nsyscall", (len(list)+perBlock-1)/perBlock*blockSpace)
	return b.String()
}

// loaded is the memory of a program that was not started, as its file has it.
type loaded struct{ parts []part }

type part struct {
	addr       uint64
	bytes      []byte
	executable bool
}

func (l *loaded) find(addr uint64, n int) *part {
	for i := range l.parts {
		if p := &l.parts[i]; addr >= p.addr && addr-p.addr+uint64(n) <= uint64(len(p.bytes)) {
			return p
		}
	}
	return nil
}

func (l *loaded) Code(pc uint64, b []byte) int {
	if p := l.find(pc, 1); p != nil && p.executable {
		return copy(b, p.bytes[pc-p.addr:])
	}
	return 0
}

func (l *loaded) Bytes(addr uint64, b []byte) bool {
	p := l.find(addr, len(b))
	return p != nil && copy(b, p.bytes[addr-p.addr:]) == len(b)
}

func (l *loaded) Fixed(uint64) bool { return true }

// load reads an executable file, and where its symbols are.
func load(t *testing.T, exe string) (*loaded, map[string]uint64) {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, at := &loaded{}, map[string]uint64{}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		b := make([]byte, p.Memsz)
		if _, err := p.ReadAt(b[:p.Filesz], 0); err != nil {
			t.Fatal(err)
		}
		l.parts = append(l.parts, part{p.Vaddr, b, p.Flags&elf.PF_X != 0})
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		at[s.Name] = s.Value
	}
	return l, at
}

// TestVectors executes instructions on vectors, masks and numbers with random operands, and compares
// what they store with what the processor stores.
func TestVectors(t *testing.T) {
	list, has := forms(t)
	times := 8
	if fixture.Full(t) {
		times = 100
	}
	var all []string
	for range times {
		all = append(all, list...)
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	dir := t.TempDir()
	source, exe := filepath.Join(dir, "vectors.s"), filepath.Join(dir, "vectors")
	if err := os.WriteFile(source, []byte(assembly(all, has)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fixture.Compile(fixture.Tool(t, "gcc"), "-static", "-nostdlib", "-o", exe, source); err != nil {
		t.Fatal(err)
	}
	real, err := exec.Command(exe).Output()
	if err != nil {
		t.Fatal(err)
	}
	space, at := load(t, exe)
	var m Machine
	code, checked, bytes := NewCode(), map[string]int{}, 0
	for block := range len(real) / blockSpace {
		var snap capture.Snapshot
		snap.Regs = cpu.Registers{PC: at[fmt.Sprintf("block%d", block)], Arch: cpu.AMD64, Known: 1<<cpu.RDI | 1<<cpu.RSI}
		snap.Regs.R[cpu.RDI], snap.Regs.R[cpu.RSI] = at["data"], at["out"]+uint64(block*blockSpace)
		if why := m.Trace(&snap, code, space, NewNearby()); why != Opaque {
			t.Fatalf("a trace ended %s at %#x after %d instructions", why.Text(), m.At, m.Steps)
		}
		for k, form := range all[block*perBlock : min((block+1)*perBlock, len(all))] {
			for off := 0; off < slotSize; off += 8 {
				here := block*blockSpace + k*slotSize + off
				w := m.mem.find(at["out"] + uint64(here))
				if w.round != m.mem.round {
					continue
				}
				for i := range 8 {
					if w.known>>i&1 == 0 {
						continue
					}
					bytes++
					checked[form]++
					if byte(w.v>>(8*i)) != real[here+i] {
						t.Errorf("%s: byte %d is %#x, really %#x", form, off+i, byte(w.v>>(8*i)), real[here+i])
						break
					}
				}
			}
		}
	}
	for _, form := range list {
		if checked[form] == 0 && form != "vzeroupper:" {
			t.Errorf("%s: nothing of any result was known", form)
		}
	}
	t.Logf("%d instructions of %d forms, %d bytes of results are known and right", len(all), len(list), bytes)
}
