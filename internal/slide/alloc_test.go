package slide

import (
	"slices"
	"testing"
)

// TestNoAllocations: what is done per look-up, per operand and per merge allocates nothing once its buffers are warm.
func TestNoAllocations(t *testing.T) {
	entries := steady(3, 1_750_000_000_000, hour)
	value := AppendOperand(nil, slices.Clone(entries), false)
	wide := AppendOperand(nil, steady(5, 1_750_000_000_000, hour), true)
	s := newStore(Limits{})
	s.base = AppendOperand(nil, steady(5000, 1_750_000_000_000, second), true)
	if _, err := s.fold(NoHorizon); err != nil {
		t.Fatal(err)
	}
	dense, err := Merge(nil, s.base, wide, NoHorizon)
	if err != nil {
		t.Fatal(err)
	}
	var (
		buf []byte
		m   Merger
		a   Answer
		q   = Query{Windows: windows, AsOf: 1_750_000_000_000 + 2*hour, Horizon: NoHorizon, CompleteSince: CompleteAlways}
	)
	answer := func(value []byte, extra []Entry) func() error {
		var s2 Answerer
		from := mapReader(s.slices)
		return func() error { return s2.Answer(value, from, extra, &q, &a) }
	}
	for _, c := range []struct {
		name string
		f    func() error
	}{
		{"operand", func() error { buf = AppendOperand(buf[:0], entries, false); return nil }},
		{"merge", func() error {
			m.Reset(NoHorizon)
			for _, v := range [][]byte{value, wide, value} {
				if err := m.Add(v); err != nil {
					return err
				}
			}
			buf = m.Finish(buf[:0])
			return nil
		}},
		{"sparse answer", answer(value, nil)},
		{"sparse answer with arrivals", answer(value, entries)},
		{"dense answer", answer(s.base, nil)},
		{"dense answer with arrivals", answer(dense, entries)},
	} {
		if n := testing.AllocsPerRun(100, func() {
			if err := c.f(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// mapReader reads slices without copying them.
type mapReader map[uint64][]byte

func (m mapReader) ReadSlice(id uint64) ([]byte, error) {
	v, ok := m[id]
	if !ok {
		return nil, ErrSliceMissing
	}
	return v, nil
}
