package record

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	good := Options{PIDs: []int{1}, Hz: 99, Events: []string{"cpu"}}
	if err := good.Check(); err != nil {
		t.Errorf("good options: %v", err)
	}
	for words, change := range map[string]func(*Options){
		"nothing to record": func(o *Options) { o.PIDs = nil },
		"exclude":           func(o *Options) { o.All = true },
		"0 Hz":              func(o *Options) { o.Hz = 0 },
		"NaN Hz":            func(o *Options) { o.Hz = math.NaN() },
		"+Inf Hz":           func(o *Options) { o.Hz = math.Inf(1) },
		"20001 Hz":          func(o *Options) { o.Hz = MaxHz + 1 },
		"negative":          func(o *Options) { o.Duration = -time.Second },
		`event "wal"`:       func(o *Options) { o.Events = []string{"wal"} },
		"no event":          func(o *Options) { o.Events = nil },
		`engine "x"`:        func(o *Options) { o.Engine = "x" },
	} {
		o := good
		change(&o)
		if err := o.Check(); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}
