package native

import (
	"time"

	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/winunwind/dynamic"
)

// registered are the function tables that a Windows program has registered for code that it
// generates.
type registered struct {
	tables *dynamic.Tables // nil: there are none
	sought uint32          // the generation in which they were looked for
	read   time.Time
}

// Computed returns of how many ranges of generated code the unwind data is computed by the program
// itself, which only Windows can ask for it. Only ranges count in which a thread was seen.
func (s *Stepper) Computed() int {
	if s.registered.tables == nil {
		return 0
	}
	return s.registered.tables.Computed()
}

// registeredRule returns the rule for generated code by the table that its program has registered,
// nil if it has none. The tables are read again as often as mappings may be.
func (s *Stepper) registeredRule(at, pc uint64, leaf bool) *ehframe.Rule {
	t := &s.registered
	now := s.now()
	if t.tables == nil {
		if t.sought == s.generation {
			return nil
		}
		t.sought = s.generation
		for _, a := range s.areas {
			m := s.modules[a.module]
			if m.Name() != "ntdll.dll" {
				continue
			}
			if !m.loaded {
				s.load(m)
			}
			if image := m.PE(); image != nil {
				t.tables, _ = dynamic.Open(s.process.Memory(), image, m.Bias) // without them the code is read
				t.read = now
			}
		}
		if t.tables == nil {
			return nil
		}
	}
	if now.Sub(t.read) >= refreshInterval {
		t.read = now
		_ = t.tables.Read() // what was known stays
	}
	return t.tables.Rule(at, pc, leaf)
}
