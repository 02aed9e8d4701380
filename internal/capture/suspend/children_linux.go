package suspend

import (
	"os"
	"strconv"

	"github.com/candid-profiler/candid/internal/capture"
)

// findChildren makes the processes that targets have started targets.
func (e *Engine) findChildren(now int64) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	others := make(map[int]bool, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || e.procs[pid] != nil {
			continue
		}
		if e.others[pid] {
			others[pid] = true
			continue
		}
		parent := parentOf(name)
		if e.procs[parent] == nil {
			others[pid] = true
			continue
		}
		p, err := openProcess(pid)
		if err != nil || p.mayTrace() != nil {
			if p != nil {
				p.close()
			}
			others[pid] = true
			continue
		}
		p.child = true
		e.procs[pid] = p
		e.notices = append(e.notices, capture.ProcessEvent{Kind: capture.Fork, Time: uint64(now), PID: uint32(pid), TID: uint32(pid), Parent: uint32(parent)})
		e.list1(p, now)
	}
	e.others = others
}

// parentOf returns a process's parent, 0 if the process has ended.
func parentOf(pid string) int {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	return int(parseParent(b))
}
