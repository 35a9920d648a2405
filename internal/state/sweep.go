package state

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weirstream/weir/internal/slide"
)

// Nothing of a key that nobody counts any more would ever leave the disk by itself, for events only come to keys that
// live. The sweeper goes through the keys of a counter in passes, some in every epoch, and deletes those of which nothing
// is above H. A pass begins when H has moved by a sixteenth of its span, so all of a counter's keys are read sixteen times
// while event time moves by its longest window and lateness: twice a day where those are eight days.
//
// Block properties could let a pass skip blocks in which everything lives, but Pebble shows their collectors no values of
// SETs, which is what every operand becomes in the last level; and where keys sort by user, few blocks are without one
// that died.

const (
	sweepPasses    = 16 // passes while H moves by its span
	sweepStepMinMS = 1

	// What one epoch may spend. Keys die at the rate at which they come, so an epoch of many keys may spend more than an
	// empty one: with sweepShare, a store where every arrival makes a key holds twice the keys of one span.
	sweepKeysMin  = 2048     // keys looked at
	sweepDeadMax  = 16 << 10 // of those, keys deleted or rewritten at most: with more look-ups would notice the publishing
	sweepBytesMin = 4 << 20
	sweepShare    = 2 // keys looked at for each key with arrivals
)

// sweep is where the sweeper is in one counter. The committer owns it.
type sweep struct {
	active bool
	begun  bool   // a pass has begun before, at H last
	last   int64  // H when the last pass began
	at     []byte // where to go on
}

// sweeping says whether any pass is under way, or should be.
func (l *Lane) sweeping() bool {
	for _, c := range l.mu.counters {
		if c.sweep.active || c.sweep.due(&c.marker) {
			return true
		}
	}
	return false
}

// due says whether it is time for another pass.
func (s *sweep) due(m *marker) bool {
	h := m.h()
	step := max(m.horizon.Span/sweepPasses, sweepStepMinMS)
	return h != slide.NoHorizon && (!s.begun || uint64(h)-uint64(s.last) >= uint64(step))
}

// sweepKeys spends the epoch's budget on the counters, another one first in each epoch: one whose passes follow each other
// without a pause must not leave nothing to the rest.
func (l *Lane) sweepKeys(e *frozenEpoch) error {
	budget := budgetFor(e.stats.Keys)
	n := uint64(len(e.counters))
	for i := range n {
		st := &e.counters[(e.number+i)%n]
		if sw := &st.counter.sweep; !sw.active && sw.due(&st.marker) {
			*sw = sweep{active: true, begun: true, last: st.marker.h(), at: AppendCounterID(sw.at[:0], st.counter.ID)}
		}
		if st.counter.sweep.active && !budget.spent() {
			if err := l.sweepCounter(e, st, &budget); err != nil {
				return fmt.Errorf("cannot sweep counter %d: %w", st.counter.ID, err)
			}
		}
	}
	return nil
}

type sweepBudget struct{ keys, dead, bytes int }

// budgetFor returns what an epoch of so many keys may spend.
func budgetFor(keys int) sweepBudget {
	looked := max(sweepShare*keys, sweepKeysMin)
	return sweepBudget{
		keys:  looked,
		dead:  min(looked, sweepDeadMax),
		bytes: looked / sweepKeysMin * sweepBytesMin,
	}
}

func (b *sweepBudget) spent() bool { return b.keys <= 0 || b.dead <= 0 || b.bytes <= 0 }

func (l *Lane) sweepCounter(e *frozenEpoch, st *standing, budget *sweepBudget) error {
	sw := &st.counter.sweep
	_, upper := counterBounds(st.counter.ID)
	it, err := l.store.db.NewIter(&pebble.IterOptions{LowerBound: sw.at, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("cannot open an iterator: %w", err)
	}
	ok := it.First()
	for ; ok && err == nil && !budget.spent(); ok = it.Next() {
		budget.keys--
		budget.bytes -= len(it.Key()) + len(it.Value())
		err = l.sweepKey(e, st, it.Key(), it.Value(), budget)
	}
	if ok {
		sw.at = append(sw.at[:0], it.Key()...)
	} else {
		sw.active = false
	}
	return errors.Join(err, it.Error(), it.Close())
}

// sweepKey deletes a key if nothing in it is above H, and rewrites it if most of it is not.
func (l *Lane) sweepKey(e *frozenEpoch, st *standing, key, value []byte, budget *sweepBudget) error {
	n, ok := rootLen(key)
	if !ok {
		return fmt.Errorf("%w: key %x", ErrCorrupt, key)
	}
	if n != len(key) {
		return nil // a slice goes with its root
	}
	live, dead, err := slide.LiveAfter(value, st.marker.h())
	if err != nil {
		return fmt.Errorf("key %x: %w", key, err)
	}
	hash := HashKey(key)
	if dead <= live && live > 0 || e.table.find(hash, key) >= 0 {
		// Of the latter the batch has an operand already, which a deletion behind it would take along. What is in the open
		// table does no harm: it is merged after the deletion.
		return nil
	}
	budget.dead--
	if live == 0 {
		e.stats.Swept++
		err = l.deleteKey(hash, key, value)
	} else {
		e.stats.Folds++
		_, err = l.fold(st, hash, key, value)
	}
	l.store.writer.swept = append(l.store.writer.swept, slices.Clone(key))
	return err
}

// deleteKey deletes a key with its slices.
func (l *Lane) deleteKey(hash uint64, key, value []byte) error {
	w := &l.store.writer
	if err := w.batch.Delete(key, nil); err != nil {
		return fmt.Errorf("cannot delete key %x: %w", key, err)
	}
	var err error
	if w.slices, err = slide.AppendSlices(w.slices[:0], value); err != nil {
		return fmt.Errorf("key %x: %w", key, err)
	}
	l.store.density.change(hash, slide.Dense(value), false)
	return l.deleteSlices(key, w.slices)
}
