package format

import (
	"os"
	"testing"

	"github.com/candid-profiler/candid/internal/chromium"
)

func TestMain(m *testing.M) { os.Exit(chromium.Run(m)) }
