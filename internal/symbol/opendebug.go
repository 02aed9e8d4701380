package symbol

import (
	"os"
	"strings"

	"github.com/candid-profiler/candid/internal/safeopen"
)

// openDebug opens a debug file.
func (n *Native) openDebug(path string) (*os.File, error) { return OpenDebug(n.open, path) }

// OpenDebug opens a debug file in the target's root, with open, else on this machine: a container
// mostly has none. The target chooses the names in debug links, so that only files that are found by
// build-id, in the system's own directory for them, are looked for outside of its root.
func OpenDebug(open func(path string) (*os.File, error), path string) (*os.File, error) {
	f, err := open(path)
	if err != nil && strings.HasPrefix(path, buildIDDir) && !strings.Contains(path, "..") {
		return safeopen.InRoot(system, path)
	}
	return f, err
}

// buildIDDir is where debug files are found by build-id.
const buildIDDir = debugDir + "/.build-id/"

// system is the root directory of this machine, or of a test.
var system = "/"
