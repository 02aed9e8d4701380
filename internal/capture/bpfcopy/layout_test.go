package bpfcopy

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// cStruct is a struct of the BPF programs: where its members lie, and its size, in bytes.
type cStruct struct {
	at   map[string]int
	size int
}

var (
	cComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	cDefine  = regexp.MustCompile(`(?m)^#define (\w+) (\d+)\s*$`)
	cMember  = regexp.MustCompile(`^(__u8|__u32|__u64|char|struct user_regs) (.+)$`)
	cArray   = regexp.MustCompile(`^(\w+)\[(\w+)\]$`)
)

// parseStruct reads a struct out of C source. All compilers of the BPF target lay such members
// out alike: each at a multiple of its own size.
func parseStruct(t *testing.T, source, name string) cStruct {
	t.Helper()
	body := regexp.MustCompile(`(?ms)^struct ` + name + ` \{(.*?)^\};`).FindStringSubmatch(source)
	if body == nil {
		t.Fatalf("there is no struct %s", name)
	}
	defined := map[string]int{}
	for _, d := range cDefine.FindAllStringSubmatch(source, -1) {
		defined[d[1]], _ = strconv.Atoi(d[2])
	}
	s := cStruct{at: map[string]int{}}
	largest := 1
	for _, line := range strings.Split(cComment.ReplaceAllString(body[1], ""), ";") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		m := cMember.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("struct %s: cannot read %q", name, line)
		}
		size, align := map[string]int{"__u8": 1, "char": 1, "__u32": 4, "__u64": 8, "struct user_regs": 8 * regWords}[m[1]], 0
		if align = size; m[1] == "struct user_regs" {
			align = 8
		}
		for _, member := range strings.Split(m[2], ",") {
			member, n := strings.TrimSpace(member), 1
			if a := cArray.FindStringSubmatch(member); a != nil {
				var err error
				if n, err = strconv.Atoi(a[2]); err != nil {
					n = defined[a[2]]
				}
				if member = a[1]; n == 0 {
					t.Fatalf("struct %s: how many are in %q?", name, line)
				}
			}
			s.size = (s.size + align - 1) / align * align
			s.at[member] = s.size
			s.size += n * size
			largest = max(largest, align)
		}
	}
	s.size = (s.size + largest - 1) / largest * largest
	return s
}

// The offsets by which records are read are those that the programs write them with.
func TestOffsetsAreTheSources(t *testing.T) {
	for _, c := range []struct {
		file, name string
		size       int
		at         map[string]int
	}{
		{"bpf/copy.h", "sample", sampleSize, map[string]int{
			"kind": 0, "flags": offFlags, "time": offTime, "pid": offPID, "tid": offTID, "cpu": offCPU, "kernel_len": offKernelLen,
			"stack_addr": offStackAddr, "stack_top": offStackTop, "stack_len": offStackLen, "stack_off": offStackOff, "weight": offWeight,
			"other_addr": offOtherAddr, "other_len": offOtherLen, "other_off": offOtherOff, "other_pc": offOtherPC,
			"event": offEvent, "syscall": offSyscall, "state": offState, "asleep": offAsleep, "ready": offReady,
			"regions": offRegions, "regions_off": offRegionOff, "regs": offRegs,
		}},
		{"bpf/copy.h", "region", regionSize, map[string]int{"addr": offRegionAddr, "len": offRegionLen, "off": offRegionAt}},
		{"bpf/copy.h", "notice", noticeSize, map[string]int{
			"kind": 0, "what": 4, "time": offTime, "pid": offNotePID, "tid": offNoteTID, "parent": offNoteParent, "last": offNoteLast, "status": offNoteStatus, "comm": offNoteComm,
		}},
		{"bpf/offcpu.c", "look", lookSize, map[string]int{
			"since": offLookSince, "pid": offLookPID, "tid": offLookTID, "state": offLookState, "syscall": offLookSyscall,
			"thread_base": offLookThreadBase, "first_stack": offLookFirstStack, "kernel_len": offLookKernelLen, "regs": offLookRegs, "kernel": offLookKernel,
		}},
	} {
		source, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		s := parseStruct(t, string(source), c.name)
		if s.size != c.size {
			t.Errorf("struct %s has %d bytes, here %d", c.name, s.size, c.size)
		}
		for member, at := range s.at {
			if here, ok := c.at[member]; member != "pad" && (!ok || here != at) {
				t.Errorf("struct %s: %s is at %d, here at %d (known: %v)", c.name, member, at, here, ok)
			}
		}
		for member := range c.at {
			if _, ok := s.at[member]; !ok {
				t.Errorf("struct %s has no %s", c.name, member)
			}
		}
	}
}
