package state

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weirstream/weir/internal/invariant"
	"github.com/weirstream/weir/internal/slide"
)

// Lane is one reader's way into a store: the counters that stand at the same place in the log, and their delta tables.
// The live counters of a partition share one lane; counters that are being rebuilt have another.
//
// One goroutine, the loop, calls Lock, Room, Add, Advance and Unlock, a batch of events at a time. Another one, the
// committer, calls Commit. Any may call Lookup.
type Lane struct {
	store   *Store
	cache   *cache
	durable func() int64

	mu struct {
		sync.RWMutex
		counters []*Counter
		next     int64 // offset of the first event that is not in the tables
		open     *table
		frozen   *table // nil while no commit is under way
		view     *view
		closed   bool
	}
	views     sync.WaitGroup // the view, and older ones that look-ups still read
	spare     *table         // the committer's, between commits
	committed int64          // next, as of the view; the committer's
	full      chan struct{}  // Room failed: commit now
	swapped   chan struct{}  // an empty table was opened

	wanted wanted
}

// view is the store as of the last epoch that was published.
type view struct {
	snapshot *pebble.Snapshot
	epoch    uint64       // number of that epoch
	refs     atomic.Int64 // the lane's own, and one per reader
	lane     *Lane
}

func (l *Lane) newView(epoch uint64) *view {
	l.views.Add(1)
	v := &view{snapshot: l.store.db.NewSnapshot(), epoch: epoch, lane: l}
	v.refs.Store(1)
	return v
}

// release gives a reference up. Closing a snapshot cannot fail while the store is open, and the store waits for all
// views of its lanes.
func (v *view) release() {
	if v.refs.Add(-1) == 0 {
		_ = v.snapshot.Close()
		v.lane.views.Done()
	}
}

// LaneOptions configures a lane.
type LaneOptions struct {
	Next     int64        // where its loop starts; counters may be ahead of it, and skip what they have
	Counters []*Counter   // those that share it
	Lookups  bool         // whether it is looked up: it gets the look-up cache then
	Durable  func() int64 // durable end of the log, which Next never passes; nil: not checked
}

// NewLane opens a lane.
func (s *Store) NewLane(o LaneOptions) (*Lane, error) {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	l := &Lane{store: s, durable: o.Durable, full: make(chan struct{}, 1), swapped: make(chan struct{}, 1)}
	l.mu.counters, l.mu.next, l.committed = o.Counters, o.Next, o.Next
	lookups := 0
	if o.Lookups {
		lookups = s.opts.LookupBytes
	}
	var err error
	if l.cache, err = newCache(lookups); err != nil {
		return nil, fmt.Errorf("cannot open a lane: %w", err)
	}
	if l.mu.open, err = newTable(s.opts.DeltaBytes); err != nil {
		return nil, fmt.Errorf("cannot open a lane: %w", err)
	}
	if l.spare, err = newTable(s.opts.DeltaBytes); err != nil {
		return nil, fmt.Errorf("cannot open a lane: %w", err)
	}
	l.mu.view = l.newView(0)
	s.writer.lanes = append(s.writer.lanes, l)
	return l, nil
}

// Lock begins a batch.
func (l *Lane) Lock() { l.mu.Lock() }

// Unlock ends a batch: look-ups see what was added.
func (l *Lane) Unlock() { l.mu.Unlock() }

// Room says whether one arrival for each of keys keys fits, of keyBytes bytes in all. If not, the loop ends its batch and
// calls WaitRoom. The caller holds the lane.
func (l *Lane) Room(keys, keyBytes int) bool {
	return !l.mu.closed && l.mu.open.room(keys, keyBytes)
}

// WaitRoom asks for a commit and returns when there may be room again.
func (l *Lane) WaitRoom(ctx context.Context) error {
	l.askCommit()
	select {
	case <-l.swapped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Full tells the committer that the epoch should end early: the loop waits for room, or one key has many arrivals.
func (l *Lane) Full() <-chan struct{} { return l.full }

// Add takes one accepted event of a counter in. key begins with the counter's id, and hash is its HashKey. The caller
// holds the lane and has asked for room.
func (l *Lane) Add(hash uint64, key []byte, arrival slide.Entry) {
	if l.mu.open.add(hash, key, arrival) == hotArrivals {
		l.askCommit()
	}
}

// hotArrivals of one key end the epoch: a look-up of the key goes through all that wait.
const hotArrivals = 4096

// askCommit tells the committer not to wait for the end of the epoch.
func (l *Lane) askCommit() {
	select {
	case l.full <- struct{}{}:
	default: // it has been told
	}
}

// Advance says that every event below next was added or skipped. The caller holds the lane.
func (l *Lane) Advance(next int64) {
	invariant.Check(next >= l.mu.next, "lane goes back from offset %d to %d", l.mu.next, next)
	l.mu.next = next
	for _, c := range l.mu.counters {
		c.next = max(c.next, next)
	}
}

// Counters returns the lane's counters. The caller holds the lane.
func (l *Lane) Counters() []*Counter { return l.mu.counters }

// Next returns the offset of the first event that look-ups do not see.
func (l *Lane) Next() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.mu.next
}

// Adopt moves counters of another lane, which has committed everything and whose loop has ended, into l. The caller holds
// neither lane, and l's loop does not run meanwhile: the counters stand at l's own offset or beyond.
func (l *Lane) Adopt(from *Lane) error {
	l.store.writer.Lock()
	defer l.store.writer.Unlock()
	from.mu.Lock()
	counters, next := from.mu.counters, from.mu.next
	invariant.Check(next == from.committed, "a lane at offset %d is adopted with only %d committed", next, from.committed)
	from.mu.counters = nil
	from.mu.Unlock()

	l.mu.Lock()
	old := l.mu.view
	l.mu.counters = append(append([]*Counter(nil), l.mu.counters...), counters...)
	if l.mu.frozen == nil {
		l.mu.view = l.newView(old.epoch)
	}
	l.mu.Unlock()
	if l.mu.view != old {
		old.release()
	}
	return from.closeIn(l.store)
}

// closeIn closes a lane that the store needs no more. The caller holds writer.
func (l *Lane) closeIn(s *Store) error {
	for i, other := range s.writer.lanes {
		if other == l {
			s.writer.lanes = append(s.writer.lanes[:i:i], s.writer.lanes[i+1:]...)
		}
	}
	return l.close()
}

// close waits for readers and frees the lane's memory. The caller holds the store's writer.
func (l *Lane) close() error {
	l.mu.Lock()
	if l.mu.closed {
		l.mu.Unlock()
		return nil
	}
	l.mu.closed = true
	v := l.mu.view
	tables := []*table{l.mu.open, l.mu.frozen, l.spare}
	l.mu.open, l.mu.frozen, l.mu.view, l.spare = nil, nil, nil, nil
	l.mu.Unlock()
	v.release()
	l.views.Wait() // also for look-ups that began before the last epoch was published
	err := l.cache.free()
	for _, t := range tables {
		if t != nil {
			if freeErr := t.free(); err == nil {
				err = freeErr
			}
		}
	}
	return err
}
