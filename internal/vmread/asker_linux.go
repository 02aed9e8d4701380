package vmread

import (
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// asker is a copy of candid that starts the processes that ask, for when candid itself may not start
// programs any more.
type asker struct {
	mu    sync.Mutex
	to    *gob.Encoder
	next  int
	waits map[int]chan bool // by number of the question
	ended bool
}

// through is the asker; nil: candid starts those processes itself.
var through struct {
	sync.Mutex
	*asker
}

// The messages to an asker and from it.
type (
	asked struct {
		ID int
		Question
	}
	answered struct {
		ID  int
		Yes bool
	}
)

// maxPatience is how long an asker may take for an answer: it gives up the process that asks after
// patience, but may have to wait for a CPU.
const maxPatience = 30 * time.Second

// StartAsker starts a copy of candid through which Answers asks from then on. It ends with candid.
func StartAsker() error {
	c := exec.Command("/proc/self/exe")
	c.Args = []string{asking, "for", "another", "candid"}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is not for it
	in, err := c.StdinPipe()
	if err != nil {
		return fmt.Errorf("start a copy of candid that asks file systems: %w", err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return fmt.Errorf("start a copy of candid that asks file systems: %w", err)
	}
	a := &asker{to: gob.NewEncoder(in), waits: map[int]chan bool{}}
	through.Lock()
	through.asker = a
	through.Unlock()
	go func() {
		a.receive(out)
		_ = c.Wait()
	}()
	return nil
}

// receive passes answers on until the asker ends.
func (a *asker) receive(from io.Reader) {
	d := gob.NewDecoder(from)
	for {
		var got answered
		err := d.Decode(&got)
		a.mu.Lock()
		if err != nil {
			a.ended = true
			for id, w := range a.waits {
				delete(a.waits, id)
				w <- false
			}
			a.mu.Unlock()
			return
		}
		if w := a.waits[got.ID]; w != nil {
			delete(a.waits, got.ID)
			w <- got.Yes
		}
		a.mu.Unlock()
	}
}

// answers asks. What cannot be asked counts as not answering.
func (a *asker) answers(q Question) bool {
	w := make(chan bool, 1)
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return false
	}
	id := a.next
	a.next++
	a.waits[id] = w
	err := a.to.Encode(asked{id, q})
	a.mu.Unlock()
	late := time.NewTimer(maxPatience)
	defer late.Stop()
	if err == nil {
		select {
		case yes := <-w:
			return yes
		case <-late.C:
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waits, id)
	return false
}

// serveQuestions is what an asker does until the candid that started it has ended.
func serveQuestions(from io.Reader, to io.Writer) {
	var mu sync.Mutex
	d, e := gob.NewDecoder(from), gob.NewEncoder(to)
	for {
		var q asked
		if d.Decode(&q) != nil {
			return
		}
		go func() {
			yes := ask(q.Question)
			mu.Lock()
			defer mu.Unlock()
			_ = e.Encode(answered{q.ID, yes})
		}()
	}
}

func init() {
	if len(os.Args) != 5 && len(os.Args) != 4 || os.Args[0] != asking {
		return
	}
	if len(os.Args) == 4 {
		serveQuestions(os.Stdin, os.Stdout)
	} else {
		try(os.Args[1:])
	}
	os.Exit(0)
}
