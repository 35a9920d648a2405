package state

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weirstream/weir/internal/slide"
)

// Nothing of a key that nobody counts any more would ever leave the disk by itself, for events only come to keys that
// live. The sweeper goes through the keys of a counter in passes, some in every epoch, and deletes what lies at or below
// H as a whole. A pass begins when H has moved by a sixteenth of its span, and looks only into blocks that may hold
// something whose newest ts is at or below H.

const (
	sweepPasses    = 16   // passes while H moves by its span
	sweepKeysMax   = 2048 // keys looked at in one epoch
	sweepReadsMax  = 256  // of those, keys read again without the filter
	sweepBytesMax  = 4 << 20
	sweepStepMinMS = 1
)

// sweep is where the sweeper is in one counter. The committer owns it.
type sweep struct {
	active  bool
	horizon int64  // H when the pass began
	last    int64  // H when the last one did
	started bool   // last is set
	at      []byte // where to go on
}

// sweeping says whether any pass is under way.
func (l *Lane) sweeping() bool {
	for _, c := range l.mu.counters {
		if c.sweep.active {
			return true
		}
	}
	return false
}

// begin starts a pass when it is time.
func (s *sweep) begin(id uint32, m *marker) {
	h := m.h()
	if s.active || h == slide.NoHorizon {
		return
	}
	step := max(m.horizon.Span/sweepPasses, sweepStepMinMS)
	if s.started && uint64(h)-uint64(s.last) < uint64(step) {
		return
	}
	*s = sweep{active: true, started: true, horizon: h, last: h, at: AppendCounterID(s.at[:0], id)}
}

// sweepKeys spends the epoch's budget on the counters in turn.
func (l *Lane) sweepKeys(e *frozenEpoch) error {
	budget := sweepBudget{keys: sweepKeysMax, reads: sweepReadsMax, bytes: sweepBytesMax}
	for i := range e.counters {
		st := &e.counters[i]
		st.counter.sweep.begin(st.counter.ID, &st.marker)
		if st.counter.sweep.active && !budget.spent() {
			if err := l.sweepCounter(e, st, &budget); err != nil {
				return fmt.Errorf("cannot sweep counter %d: %w", st.counter.ID, err)
			}
		}
	}
	return nil
}

type sweepBudget struct{ keys, reads, bytes int }

func (b *sweepBudget) spent() bool { return b.keys <= 0 || b.reads <= 0 || b.bytes <= 0 }

func (l *Lane) sweepCounter(e *frozenEpoch, st *standing, budget *sweepBudget) error {
	sw := &st.counter.sweep
	_, upper := counterBounds(st.counter.ID)
	it, err := l.store.db.NewIter(&pebble.IterOptions{
		LowerBound:      sw.at,
		UpperBound:      upper,
		PointKeyFilters: []pebble.BlockPropertyFilter{newestFilter(sw.horizon)},
	})
	if err != nil {
		return fmt.Errorf("cannot open an iterator: %w", err)
	}
	ok := it.First()
	for ; ok && err == nil && !budget.spent(); ok = it.Next() {
		budget.keys--
		budget.bytes -= len(it.Key()) + len(it.Value())
		err = l.nominate(e, st, it, budget)
	}
	if ok {
		sw.at = append(sw.at[:0], it.Key()...)
	} else {
		sw.active = false
	}
	return errors.Join(err, it.Error(), it.Close())
}

// nominate looks at what the filtered iterator shows of a key: maybe only a part of it.
func (l *Lane) nominate(e *frozenEpoch, st *standing, it *pebble.Iterator, budget *sweepBudget) error {
	n, ok := rootLen(it.Key())
	if !ok {
		return fmt.Errorf("%w: key %x", ErrCorrupt, it.Key())
	}
	if n != len(it.Key()) {
		return nil // a slice goes with its root
	}
	newest, some, err := slide.NewestTS(it.Value())
	if err != nil {
		return fmt.Errorf("key %x: %w", it.Key(), err)
	}
	if some && newest > st.counter.sweep.horizon {
		return nil
	}
	key := it.Key()
	hash := HashKey(key)
	if e.table.find(hash, key) >= 0 {
		return nil // the batch writes it already; what is in the open table will be merged after the deletion
	}
	budget.reads--
	return l.sweepKey(e, st, hash, key)
}

// sweepKey reads the whole key and deletes it if nothing in it is above H, or rewrites it if most of it is not.
func (l *Lane) sweepKey(e *frozenEpoch, st *standing, hash uint64, key []byte) error {
	w := &l.store.writer
	value, err := l.store.get(w.cached[:0], key)
	w.cached = value
	if err != nil || len(value) == 0 {
		return err
	}
	live, dead, err := slide.LiveAfter(value, st.marker.h())
	switch {
	case err != nil:
		return fmt.Errorf("key %x: %w", key, err)
	case live == 0:
		if err := l.deleteKey(hash, key, value); err != nil {
			return err
		}
		e.stats.Swept++
	case dead > live:
		if _, err := l.fold(st, hash, key, value); err != nil {
			return err
		}
		e.stats.Folds++
	default:
		return nil
	}
	w.swept = append(w.swept, append([]byte(nil), key...))
	return nil
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
