package slide

import (
	"fmt"
	"math/rand"
	"slices"
)

// store is a model of what stands under the counters, for one key: sets and operands that wait for some compaction or
// other, slices, and arrivals in RAM that no epoch has taken yet.
type store struct {
	limits  Limits
	base    []byte   // what the last Set wrote
	layers  [][]byte // operands above it, oldest first
	slices  map[uint64][]byte
	extra   []Entry
	merger  Merger
	folder  Folder
	answers Answerer

	conflicts int
}

func newStore(limits Limits) *store { return &store{limits: limits, slices: map[uint64][]byte{}} }

func (s *store) ReadSlice(id uint64) ([]byte, error) {
	v, ok := s.slices[id]
	if !ok {
		return nil, fmt.Errorf("slice %d: %w", id, ErrSliceMissing)
	}
	return slices.Clone(v), nil // valid until the next call only
}

// epoch makes an operand of the arrivals in RAM.
func (s *store) epoch(wide bool) {
	if len(s.extra) == 0 {
		return
	}
	s.layers = append(s.layers, AppendOperand(nil, slices.Clone(s.extra), wide))
	s.extra = s.extra[:0]
}

// compact merges the neighbours from..to (base is 0) into one.
func (s *store) compact(from, to int, horizon int64) error {
	all := append([][]byte{s.base}, s.layers...)
	s.merger.Reset(horizon)
	for _, v := range all[from : to+1] {
		if err := s.merger.Add(v); err != nil {
			return err
		}
	}
	all = slices.Replace(all, from, to+1, s.merger.Finish(nil))
	s.base, s.layers = all[0], all[1:]
	return nil
}

// value is what a read sees.
func (s *store) value(horizon int64) ([]byte, error) {
	s.merger.Reset(horizon)
	if err := s.merger.Add(s.base); err != nil {
		return nil, err
	}
	for _, v := range s.layers {
		if err := s.merger.Add(v); err != nil {
			return nil, err
		}
	}
	return s.merger.Finish(nil), nil
}

// fold is the owner's step: read, Fold, one atomic batch.
func (s *store) fold(horizon int64) (Outcome, error) {
	value, err := s.value(NoHorizon)
	if err != nil {
		return Unchanged, err
	}
	outcome, err := s.folder.Fold(value, s, horizon, s.limits)
	if err != nil {
		return outcome, err
	}
	s.conflicts += s.folder.Conflicts
	if outcome == Unchanged && len(s.folder.Writes)+len(s.folder.Deletes) > 0 {
		return outcome, fmt.Errorf("unchanged, but %d writes, %d deletes", len(s.folder.Writes), len(s.folder.Deletes))
	}
	for _, id := range s.folder.Deletes {
		if _, ok := s.slices[id]; !ok {
			return outcome, fmt.Errorf("delete of slice %d that is not there", id)
		}
		delete(s.slices, id)
	}
	for _, w := range s.folder.Writes {
		s.slices[w.ID] = slices.Clone(w.Value)
	}
	switch outcome {
	case Rewrite:
		s.base, s.layers = slices.Clone(s.folder.Root), nil
	case Delete:
		s.base, s.layers = nil, nil
	}
	return outcome, s.check()
}

// check compares the slices that are stored with those that the root names.
func (s *store) check() error {
	value, err := s.value(NoHorizon)
	if err != nil {
		return err
	}
	ids, err := AppendSlices(nil, value)
	if err != nil {
		return err
	}
	if len(ids) != len(s.slices) {
		return fmt.Errorf("root names %d slices, %d are stored", len(ids), len(s.slices))
	}
	if !Dense(value) {
		return nil
	}
	var x index
	if _, err := x.decode(value); err != nil {
		return err
	}
	for i := range x.raw {
		d := &x.raw[i]
		raw, err := readRaw(s, d)
		if err != nil {
			return err
		}
		times, err := raw.appendTimes(nil)
		if err != nil {
			return err
		}
		if times[0] != d.min || times[len(times)-1] != d.max || !slices.IsSorted(times) {
			return fmt.Errorf("raw slice %d spans %d..%d; the root says %d..%d", d.id, times[0], times[len(times)-1], d.min, d.max)
		}
		if d.n > s.limits.withDefaults().slice(int(x.ids))*2 {
			return fmt.Errorf("raw slice %d has %d entries of %d", d.id, d.n, x.ids)
		}
	}
	return s.checkPanes(&x)
}

func (s *store) checkPanes(x *index) error {
	var all []pane
	for i := range x.panes {
		d := &x.panes[i]
		n := len(all)
		var err error
		if all, err = readPanes(all, s, d); err != nil {
			return err
		}
		if all[n].min != d.min || all[len(all)-1].max != d.max {
			return fmt.Errorf("pane slice %d spans other times than the root says", d.id)
		}
	}
	for i := 1; i < len(all); i++ {
		if all[i].min <= all[i-1].max {
			return fmt.Errorf("panes overlap: %d..%d, %d..%d", all[i-1].min, all[i-1].max, all[i].min, all[i].max)
		}
	}
	return nil
}

// answer reads the key, in a compaction order of its own.
func (s *store) answer(q *Query, a *Answer) error {
	value, err := s.value(q.Horizon)
	if err != nil {
		return err
	}
	return s.answers.Answer(value, s, s.extra, q, a)
}

// step does something that must not change any answer.
func (s *store) step(r *rand.Rand, horizon int64) error {
	switch r.Intn(6) {
	case 0:
		s.epoch(r.Intn(2) == 0)
	case 1, 2:
		from := r.Intn(len(s.layers) + 1)
		drop := NoHorizon
		if r.Intn(2) == 0 {
			drop = horizon
		}
		return s.compact(from, from+r.Intn(len(s.layers)+1-from), drop)
	case 3:
		value, err := s.value(NoHorizon)
		if err != nil {
			return err
		}
		if NeedsFold(value, s.limits) {
			_, err = s.fold(horizon)
		}
		return err
	case 4:
		_, err := s.fold(horizon)
		return err
	case 5: // crash: epochs are replayed, so an operand comes twice
		if n := len(s.layers); n > 0 {
			s.layers = append(s.layers, slices.Clone(s.layers[r.Intn(n)]))
		}
	}
	return nil
}
