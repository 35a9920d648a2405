package state

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weirstream/weir/internal/invariant"
	"github.com/weirstream/weir/internal/osthread"
	"github.com/weirstream/weir/internal/slide"
)

const (
	// batchBytesRetained is how much memory the epoch's batch keeps for the next one.
	batchBytesRetained = 64 << 20

	// yieldKeys is how many keys, of about a microsecond each, an epoch writes before it lets others have the core.
	yieldKeys = 32

	// foldSlots is the number of slots that count arrivals for folding; a slot is shared by all keys whose hashes fall
	// into it. foldCheckMax is how many arrivals in a slot make the next key in it be read.
	foldSlots    = 1 << 16
	foldCheckMax = 48
)

// epochScratch is what writing an epoch needs, kept from one to the next.
type epochScratch struct {
	order    order
	batch    *pebble.Batch
	arrivals []slide.Entry
	operand  []byte
	record   []byte
	merged   []byte
	cached   []byte
	sliceKey []byte
	slices   []uint64
	merger   slide.Merger
	folder   slide.Folder
	fold     foldSlotsArray
	sequence uint32
	swept    [][]byte // keys whose cached roots must go when the epoch is published
}

// foldSlotsArray counts the arrivals since a key of each slot was last read.
type foldSlotsArray []uint8

// due counts n arrivals of a key and says whether it is time to look whether the key needs folding. A slot starts
// over at a place that depends on the hash and on how often it did, so that keys which take turns in a slot all get
// theirs.
func (f foldSlotsArray) due(hash uint64, n, limit int, turn uint64) bool {
	slot := &f[hash>>16&(foldSlots-1)]
	count := int(*slot) + n
	if count < limit {
		*slot = uint8(count)
		return false
	}
	*slot = uint8((hash ^ turn*0x9e3779b97f4a7c15) >> 40 % uint64(max(limit/4, 1)))
	return true
}

// standing is a counter and its marker at the moment of freezing.
type standing struct {
	counter *Counter
	marker  marker
}

// frozenEpoch is one epoch on its way into the store.
type frozenEpoch struct {
	number   uint64
	table    *table
	next     int64
	counters []standing
	stats    Commit
}

// Commit writes what was added since the last one, as one batch, and says whether there was anything to do. Only the
// committer calls it.
func (l *Lane) Commit() (bool, error) {
	s := l.store
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.usable(); err != nil {
		return false, err
	}
	start := s.opts.Clock.NowMS()
	e := l.freeze()
	if e == nil {
		return false, s.housekeeping()
	}
	if err := l.write(e); err != nil {
		return false, s.fail(fmt.Errorf("cannot commit an epoch: %w", err))
	}
	l.publish(e)
	if e.stats.Arrivals > 0 {
		s.writer.settling.busyMS = start
		s.writer.settling.interrupt()
	}
	if s.opts.Events.Committed != nil {
		e.stats.Duration = time.Duration(s.opts.Clock.NowMS()-start) * time.Millisecond
		s.opts.Events.Committed(e.stats)
	}
	return true, s.housekeeping()
}

// freeze takes the open table away from the loop and gives it an empty one. nil: there is nothing to commit.
func (l *Lane) freeze() *frozenEpoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed || (l.mu.next == l.committed && l.mu.open.entryLen == 0 && !l.sweeping()) {
		return nil
	}
	if l.durable != nil {
		end := l.durable()
		invariant.Check(l.mu.next <= end, "committing up to offset %d, beyond the durable end %d", l.mu.next, end)
	}
	e := &frozenEpoch{number: l.mu.view.epoch + 1, table: l.mu.open, next: l.mu.next}
	for _, c := range l.mu.counters {
		e.counters = append(e.counters, standing{c, c.marker})
	}
	l.mu.frozen, l.mu.open, l.spare = l.mu.open, l.spare, nil
	select {
	case l.swapped <- struct{}{}:
	default:
	}
	return e
}

// publish shows the epoch to look-ups as part of the store, and drops its table.
func (l *Lane) publish(e *frozenEpoch) {
	v := l.newView(e.number)
	l.mu.Lock()
	old := l.mu.view
	l.mu.view, l.mu.frozen = v, nil
	for _, key := range l.store.writer.swept {
		l.cache.drop(HashKey(key), key)
	}
	l.mu.Unlock()
	old.release()
	l.committed = e.next
	e.table.reset()
	l.spare = e.table
}

// write puts the epoch into one batch and applies it.
func (l *Lane) write(e *frozenEpoch) error {
	w := &l.store.writer
	if w.batch == nil {
		w.batch = l.store.db.NewBatch(pebble.WithMaxRetainedSizeBytes(batchBytesRetained))
		w.fold = make(foldSlotsArray, foldSlots)
	}
	w.batch.Reset()
	w.swept = w.swept[:0]
	if err := l.writeKeys(e); err != nil {
		return err
	}
	if err := l.sweepKeys(e); err != nil {
		return err
	}
	var err error
	if w.record, err = l.store.density.write(w.batch, w.record); err != nil {
		return err
	}
	for i := range e.counters {
		st := &e.counters[i]
		w.record = appendMarker(w.record[:0], &st.marker)
		if err := w.batch.Set(metaKey(markerLetter, st.counter.ID), w.record, nil); err != nil {
			return fmt.Errorf("cannot write a marker: %w", err)
		}
	}
	e.stats.Bytes = w.batch.Len()
	if err := w.batch.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("cannot apply a batch of %d bytes: %w", e.stats.Bytes, err)
	}
	return nil
}

// writeKeys adds an operand, or a folded root, for every key of the epoch's table, in the order of keys.
func (l *Lane) writeKeys(e *frozenEpoch) error {
	w := &l.store.writer
	var st *standing
	for _, item := range w.order.sort(e.table) {
		entry := &e.table.entries[item.index]
		key := e.table.keyOf(entry)
		if id, _ := keyID(key); st == nil || st.counter.ID != id {
			if st = e.find(id); st == nil {
				return fmt.Errorf("%w: arrivals of counter %d, which the lane does not have", ErrUnknownCounter, id)
			}
		}
		w.arrivals = e.table.appendChain(w.arrivals[:0], entry)
		if e.stats.Keys++; e.stats.Keys%yieldKeys == 0 {
			osthread.Yield()
		}
		e.stats.Arrivals += len(w.arrivals)
		if err := l.writeKey(e, st, entry.hash, key); err != nil {
			return fmt.Errorf("key %x: %w", key, err)
		}
	}
	return nil
}

func (e *frozenEpoch) find(id uint32) *standing {
	for i := range e.counters {
		if e.counters[i].counter.ID == id {
			return &e.counters[i]
		}
	}
	return nil
}

func (l *Lane) writeKey(e *frozenEpoch, st *standing, hash uint64, key []byte) error {
	w := &l.store.writer
	w.operand = slide.AppendOperand(w.operand[:0], w.arrivals, l.store.density.has(hash))
	limit := foldCheckAt(st.counter.Limits)
	due := w.fold.due(hash, len(w.arrivals), limit, e.number)
	if due || l.wanted.take(hash) {
		return l.foldKey(e, st, hash, key)
	}
	if err := w.batch.Merge(key, w.operand, nil); err != nil {
		return fmt.Errorf("cannot merge: %w", err)
	}
	return l.refresh(e, st, hash, key)
}

// foldCheckAt returns how many arrivals make a key be read: few enough that a sparse value is found soon after it passed
// its limit, and that no key piles up a hundred operands.
func foldCheckAt(limits slide.Limits) int {
	if limits.SparseMax > 0 {
		return min(max(limits.SparseMax/2, 1), foldCheckMax)
	}
	return foldCheckMax
}

// refresh brings a cached root up to the epoch that is being written, if anybody looked it up since it was cached;
// otherwise the cache forgets it. From then on readers find the epoch in the root, and leave its frozen arrivals out.
func (l *Lane) refresh(e *frozenEpoch, st *standing, hash uint64, key []byte) error {
	w := &l.store.writer
	var used, ok bool
	w.cached, used, ok = l.cache.take(w.cached[:0], hash, key)
	if !ok || !used {
		return nil
	}
	w.merger.Reset(st.marker.h())
	if err := errors.Join(w.merger.Add(w.cached), w.merger.Add(w.operand)); err != nil {
		return fmt.Errorf("cannot join a cached root: %w", err)
	}
	w.merged = w.merger.Finish(w.merged[:0])
	l.cache.put(hash, key, w.merged, e.number)
	return nil
}

// foldKey reads what the key holds, joins the epoch's arrivals to it and writes the whole back, folded where it is time.
// So it also ends the chain of operands.
func (l *Lane) foldKey(e *frozenEpoch, st *standing, hash uint64, key []byte) error {
	w := &l.store.writer
	w.merger.Reset(st.marker.h())
	before, err := l.store.get(w.cached[:0], key)
	if err != nil {
		return err
	}
	w.cached = before
	if err := errors.Join(w.merger.Add(before), w.merger.Add(w.operand)); err != nil {
		return fmt.Errorf("cannot join: %w", err)
	}
	w.merged = w.merger.Finish(w.merged[:0])
	e.stats.Folds++
	e.stats.Conflicts += w.merger.Conflicts
	root, changed, err := l.rewrite(e, st, hash, key, w.merged)
	if err != nil {
		return err
	}
	_, used, cached := l.cache.take(nil, hash, key)
	// A dense root that changed names slices that are not there before the batch is: it is read anew after that.
	if cached && used && !(changed && (slide.Dense(root) || slide.Dense(before))) {
		l.cache.put(hash, key, root, e.number)
	}
	return nil
}

// rewrite folds value if it needs that, and writes the outcome. changed: slices may have been written or deleted.
func (l *Lane) rewrite(e *frozenEpoch, st *standing, hash uint64, key, value []byte) (root []byte, changed bool, err error) {
	w := &l.store.writer
	if !slide.NeedsFold(value, st.counter.Limits) {
		if err := w.batch.Set(key, value, nil); err != nil {
			return nil, false, fmt.Errorf("cannot set: %w", err)
		}
		return value, false, nil
	}
	root, err = l.fold(st, hash, key, value)
	e.stats.Conflicts += w.folder.Conflicts
	return root, true, err
}

// fold folds value and writes root and slices to the batch. root is nil where nothing is left.
func (l *Lane) fold(st *standing, hash uint64, key, value []byte) (root []byte, err error) {
	w := &l.store.writer
	f := &w.folder
	reader := sliceReader{from: l.store.db, key: key, scratch: w.sliceKey}
	outcome, err := f.Fold(value, &reader, st.marker.h(), st.counter.Limits)
	w.sliceKey = reader.scratch
	if err := errors.Join(err, reader.close()); err != nil {
		return nil, fmt.Errorf("cannot fold: %w", err)
	}
	switch outcome {
	case slide.Delete:
		if err := w.batch.Delete(key, nil); err != nil {
			return nil, fmt.Errorf("cannot delete: %w", err)
		}
	case slide.Rewrite:
		root = f.Root
	case slide.Unchanged:
		root = value
	}
	if root != nil {
		if err := w.batch.Set(key, root, nil); err != nil {
			return nil, fmt.Errorf("cannot set: %w", err)
		}
	}
	for i := range f.Writes {
		w.sliceKey = appendSliceKey(w.sliceKey[:0], key, f.Writes[i].ID)
		if err := w.batch.Set(w.sliceKey, f.Writes[i].Value, nil); err != nil {
			return nil, fmt.Errorf("cannot set a slice: %w", err)
		}
	}
	if err := l.deleteSlices(key, f.Deletes); err != nil {
		return nil, err
	}
	l.store.density.change(hash, slide.Dense(value), slide.Dense(root))
	return root, nil
}

func (l *Lane) deleteSlices(key []byte, ids []uint64) error {
	w := &l.store.writer
	for _, id := range ids {
		w.sliceKey = appendSliceKey(w.sliceKey[:0], key, id)
		if err := w.batch.Delete(w.sliceKey, nil); err != nil {
			return fmt.Errorf("cannot delete a slice: %w", err)
		}
	}
	return nil
}

// get appends what the key holds to dst; nothing for an unknown key.
func (s *Store) get(dst, key []byte) ([]byte, error) { return appendValue(dst, s.db, key) }

// appendValue appends the key's value in from to dst; nothing for an unknown key.
func appendValue(dst []byte, from pebble.Reader, key []byte) ([]byte, error) {
	value, closer, err := from.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, nil
	}
	if err != nil {
		return dst, fmt.Errorf("cannot read key %x: %w", key, err)
	}
	dst = append(dst, value...)
	if err := closer.Close(); err != nil {
		return dst, fmt.Errorf("cannot read key %x: %w", key, err)
	}
	return dst, nil
}
