package state

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weirstream/weir/internal/slide"
)

// Scratch is the memory of one look-up, to be reused by the next. Not for concurrent use.
type Scratch struct {
	answerer slide.Answerer
	value    []byte
	extra    []slide.Entry
	slices   sliceReader
}

// Seen is what a look-up's answer is based on.
type Seen struct {
	Next          int64 // every event below it is in the answer
	CompleteSince int64 // of the counter in this partition; slide.CompleteAlways if it holds everything
}

// Lookup answers q, whose Horizon and CompleteSince it sets, for one key of c. The answer holds every event below
// Seen.Next and no other. With the key in the look-up cache and sparse, it allocates nothing and reads no disk.
func (l *Lane) Lookup(c *Counter, key []byte, q *slide.Query, s *Scratch, a *slide.Answer) (Seen, error) {
	hash := HashKey(key)
	v, seen, hit, err := l.gather(c, hash, key, q, s)
	if err != nil {
		return seen, err
	}
	if v != nil {
		defer v.release()
		if !hit {
			if s.value, err = appendValue(s.value[:0], v.snapshot, key); err != nil {
				return seen, err
			}
			l.remember(v, hash, key, s.value)
		}
		s.slices.from, s.slices.key = v.snapshot, key
	}
	if slide.NeedsFold(s.value, c.Limits) {
		l.wanted.add(hash)
	}
	err = s.answerer.Answer(s.value, &s.slices, s.extra, q, a)
	if err := errors.Join(err, s.slices.close()); err != nil {
		return seen, fmt.Errorf("cannot look up key %x: %w", key, err)
	}
	return seen, nil
}

// gather takes from one moment the arrivals that are in the tables, and the base: a cached root (hit), or the view to read
// it from. The view is also returned, and referenced, where a cached root is dense.
func (l *Lane) gather(c *Counter, hash uint64, key []byte, q *slide.Query, s *Scratch) (v *view, seen Seen, hit bool, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.mu.closed {
		return nil, seen, false, ErrClosed
	}
	if err := l.store.Err(); err != nil {
		return nil, seen, false, err
	}
	var epoch uint64
	s.value, epoch, hit = l.cache.get(s.value[:0], hash, key)
	s.extra = l.mu.open.appendArrivals(s.extra[:0], hash, key)
	if l.mu.frozen != nil && !(hit && epoch > l.mu.view.epoch) {
		s.extra = l.mu.frozen.appendArrivals(s.extra, hash, key)
	}
	seen = Seen{Next: c.next, CompleteSince: c.completeSince()}
	q.Horizon, q.CompleteSince = c.h(), seen.CompleteSince
	if !hit || slide.Dense(s.value) {
		v = l.mu.view
		v.refs.Add(1)
	}
	return v, seen, hit, nil
}

// remember caches a root that was read from a view, unless the store has gone on: then it may be old. A key of the frozen
// table is left out, since the committer may have passed it.
func (l *Lane) remember(v *view, hash uint64, key, value []byte) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.mu.view != v || (l.mu.frozen != nil && l.mu.frozen.find(hash, key) >= 0) {
		return
	}
	l.cache.put(hash, key, value, v.epoch)
}

// sliceReader reads the slices of one key from a store or a snapshot of it.
type sliceReader struct {
	from    pebble.Reader
	key     []byte
	scratch []byte
	closer  io.Closer
}

// ReadSlice implements slide.SliceReader.
func (r *sliceReader) ReadSlice(id uint64) ([]byte, error) {
	if err := r.close(); err != nil {
		return nil, err
	}
	r.scratch = appendSliceKey(r.scratch[:0], r.key, id)
	value, closer, err := r.from.Get(r.scratch)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, fmt.Errorf("key %x: %w", r.scratch, slide.ErrSliceMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read key %x: %w", r.scratch, err)
	}
	r.closer = closer
	return value, nil
}

// close ends the last read.
func (r *sliceReader) close() error {
	if r.closer == nil {
		return nil
	}
	err := r.closer.Close()
	r.closer = nil
	return err
}

// wantedMax bounds the keys that look-ups have found to need folding and no arrival has come to yet.
const wantedMax = 1024

// wanted is a small set of hashes of keys that look-ups found overdue for folding. The next arrival folds them.
type wanted struct {
	mu struct {
		sync.Mutex
		hashes map[uint64]struct{}
	}
	some atomic.Bool // so that the committer need not lock to find nothing
}

func (w *wanted) add(hash uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.hashes == nil {
		w.mu.hashes = make(map[uint64]struct{}, wantedMax)
	}
	if len(w.mu.hashes) < wantedMax {
		w.mu.hashes[hash] = struct{}{}
		w.some.Store(true)
	}
}

func (w *wanted) take(hash uint64) bool {
	if !w.some.Load() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.mu.hashes[hash]; !ok {
		return false
	}
	delete(w.mu.hashes, hash)
	w.some.Store(len(w.mu.hashes) > 0)
	return true
}
