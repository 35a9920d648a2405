package state

import (
	"context"
	"errors"
	"fmt"
)

// While events pour in, tables pile up in level 0 and above the last level, and merging them all the time would cost
// more than it saves. A store that has become quiet merges them once, so that it rests at the size that it needs.

// settleShare is the part of a store, one in so many, that has to be unmerged for merging it to be worth rewriting all.
const settleShare = 4

// settling is the merge of a quiet store. All but done is guarded by the store's writer.
type settling struct {
	busyMS int64 // when an event was last committed
	cancel context.CancelFunc
	done   chan struct{} // closed when the merge has ended; nil before the first
}

// interrupt keeps the merge from starting on another level.
func (m *settling) interrupt() {
	if m.cancel != nil {
		m.cancel()
	}
}

// wait ends the merge and returns when it does not use the store any more.
func (m *settling) wait() {
	m.interrupt()
	if m.done != nil {
		<-m.done
	}
}

func (m *settling) running() bool {
	if m.done == nil {
		return false
	}
	select {
	case <-m.done:
		return false
	default:
		return true
	}
}

// settle begins to merge the store where it has been quiet for as long as a memtable may wait, and is worth it. The
// caller holds writer.
func (s *Store) settle(now int64) {
	m := &s.writer.settling
	if now-m.busyMS < s.opts.FlushAfter.Milliseconds() || m.running() || !s.scattered() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	m.cancel, m.done = cancel, done
	go func() {
		defer close(done)
		defer cancel()
		if err := s.mergeAll(ctx); err != nil && !errors.Is(err, context.Canceled) {
			s.backgroundError(fmt.Errorf("cannot merge a quiet store: %w", err))
		}
	}()
}

// scattered says whether enough of the store lies above the last level.
func (s *Store) scattered() bool {
	m := s.db.Metrics()
	last := len(m.Levels) - 1
	above := int64(0)
	for i := range last {
		above += m.Levels[i].TablesSize
	}
	return above > 0 && above >= (above+m.Levels[last].TablesSize)/settleShare
}
