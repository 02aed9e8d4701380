package bpfcopy

import "testing"

func TestTold(t *testing.T) {
	const ms = 1_000_000
	m := told{}
	if from, known := m.until(1, 50*ms, 100*ms); from != 100*ms || known {
		t.Errorf("%d %v", from, known)
	}
	m.tell(1, 50*ms, 1100*ms)
	if from, known := m.until(1, 50*ms, 100*ms); from != 1100*ms || !known {
		t.Errorf("%d %v", from, known)
	}
	if from, known := m.until(1, 1200*ms, 100*ms); from != 1200*ms || known {
		t.Errorf("of another sleep: %d %v", from, known)
	}
	if before, over := m.rest(1, 1500*ms, 1400*ms, 0, 100*ms); before != 1000*ms || over {
		t.Errorf("%d %v", before, over)
	}
	if before, _ := m.rest(1, 1500*ms, 1400*ms, 0, 100*ms); before != 0 {
		t.Errorf("taken off twice: %d", before)
	}
	m.tell(1, 50*ms, 1100*ms)
	if before, _ := m.rest(1, 3000*ms, 500*ms, 0, 100*ms); before != 0 {
		t.Errorf("taken off another sleep: %d", before)
	}
	m.over(2)
	if _, over := m.rest(2, 1500*ms, 1400*ms, 0, 100*ms); !over {
		t.Error("more may come of a thread that was told of whole")
	}
}
