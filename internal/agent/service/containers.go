package service

import (
	"os"
	"regexp"
	"sync"
	"time"
)

// Containers knows the names of Kubernetes' containers, from the names of their log files, which
// kubelet makes: /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log. No API is asked. A nil
// *Containers knows none. It is safe for several goroutines.
type Containers struct {
	dir string

	mu     sync.Mutex
	known  map[string]Container
	looked time.Time
}

// Container is what is known of a container.
type Container struct {
	ID                   string
	Namespace, Pod, Name string // "" if not known
}

// LogDir is where kubelet puts links to the logs of containers.
const LogDir = "/var/log/containers"

// NewContainers returns the names below a directory.
func NewContainers(dir string) *Containers {
	return &Containers{dir: dir, known: map[string]Container{}}
}

// logName matches the name of a log file.
var logName = regexp.MustCompile(`^([a-z0-9.-]+)_([a-z0-9-]+)_([a-z0-9-]+)-([0-9a-f]{64})\.log$`)

const (
	// lookAgain is how often the directory is read for containers that are not known.
	lookAgain = 10 * time.Second
	maxLogs   = 1 << 14
)

// Look returns what is known of a container.
func (c *Containers) Look(id string) Container {
	none := Container{ID: id}
	if c == nil || id == "" {
		return none
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, ok := c.known[id]; ok {
		return k
	}
	if time.Since(c.looked) < lookAgain {
		return none
	}
	c.looked = time.Now()
	f, err := os.Open(c.dir)
	if err != nil {
		return none
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxLogs)
	clear(c.known)
	for _, n := range names {
		if m := logName.FindStringSubmatch(n); m != nil {
			c.known[m[4]] = Container{ID: m[4], Pod: m[1], Namespace: m[2], Name: m[3]}
		}
	}
	if k, ok := c.known[id]; ok {
		return k
	}
	return none
}

// Name returns a name for what runs in a container: its name in the pod, else its short ID.
func (c *Containers) Name(id string) string {
	if k := c.Look(id); k.Name != "" {
		return k.Name
	}
	return id[:min(len(id), 12)]
}
