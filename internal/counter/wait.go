package counter

import (
	"context"
	"sync"
	"sync/atomic"
)

// waiters are look-ups (and builders) that wait until the loop has applied an offset.
type waiters struct {
	applied atomic.Int64 // every event below it can be looked up
	mu      struct {
		sync.Mutex
		list   []waiter
		failed bool
	}
	some atomic.Int32 // len(list), so that the loop need not lock to wake nobody
}

type waiter struct {
	target int64
	done   chan struct{}
}

// moved wakes those whose offset has been reached.
func (w *waiters) moved(next int64) {
	w.applied.Store(next)
	if w.some.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake(func(target int64) bool { return target <= next })
}

// fail wakes everybody: nothing will be applied any more.
func (w *waiters) fail() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.failed = true
	w.wake(func(int64) bool { return true })
}

func (w *waiters) wake(reached func(target int64) bool) {
	left := w.mu.list[:0]
	for _, waiting := range w.mu.list {
		if reached(waiting.target) {
			close(waiting.done)
		} else {
			left = append(left, waiting)
		}
	}
	clear(w.mu.list[len(left):])
	w.mu.list = left
	w.some.Store(int32(len(left)))
}

// wait returns when every event below target is applied, when nothing will be any more, or when ctx is done.
func (w *waiters) wait(ctx context.Context, target int64) {
	done := make(chan struct{})
	w.mu.Lock()
	w.mu.list = append(w.mu.list, waiter{target, done})
	w.some.Store(int32(len(w.mu.list)))
	// Looked at after the list says so: the loop either finds the waiter there or has moved before this.
	if w.mu.failed || w.applied.Load() >= target {
		w.wake(func(t int64) bool { return w.mu.failed || t <= w.applied.Load() })
	}
	w.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		w.leave(done)
	}
}

func (w *waiters) leave(done chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.mu.list {
		if w.mu.list[i].done == done {
			w.mu.list = append(w.mu.list[:i], w.mu.list[i+1:]...)
			break
		}
	}
	w.some.Store(int32(len(w.mu.list)))
}
