package eventlog

import (
	"context"
	"sync"
	"sync/atomic"
)

// frontier is an offset that only grows and that others can wait for.
type frontier struct {
	_       [64]byte
	value   atomic.Int64
	waiting atomic.Int64 // waiters in the list; the owner looks here before it locks
	_       [64]byte

	mu struct {
		sync.Mutex
		waiters []*waiter
		err     error // set once: nothing more will come
	}
}

type waiter struct {
	offset int64
	wake   chan error // holds one
}

var waiterPool = sync.Pool{New: func() any { return &waiter{wake: make(chan error, 1)} }}

func (f *frontier) load() int64 { return f.value.Load() }

// advance moves the frontier to value and wakes whoever waited for less.
func (f *frontier) advance(value int64) {
	f.value.Store(value)
	if f.waiting.Load() == 0 {
		return // a waiter that counts itself after this load sees the new value
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wakeLocked(func(w *waiter) bool { return value > w.offset }, nil)
}

// finish ends every wait, now and later, with err.
func (f *frontier) finish(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.err == nil {
		f.mu.err = err
	}
	f.wakeLocked(func(*waiter) bool { return true }, f.mu.err)
}

func (f *frontier) wakeLocked(done func(*waiter) bool, err error) {
	kept := f.mu.waiters[:0]
	for _, w := range f.mu.waiters {
		if done(w) {
			w.wake <- err
			f.waiting.Add(-1)
		} else {
			kept = append(kept, w)
		}
	}
	clear(f.mu.waiters[len(kept):])
	f.mu.waiters = kept
}

// wait returns nil when the frontier is beyond offset, and an error when ctx or the frontier has ended first.
func (f *frontier) wait(ctx context.Context, offset int64) error {
	if f.value.Load() > offset {
		return nil
	}
	w := waiterPool.Get().(*waiter)
	w.offset = offset
	if registered, err := f.register(w); !registered {
		waiterPool.Put(w)
		return err
	}
	select {
	case err := <-w.wake:
		waiterPool.Put(w)
		return err
	case <-ctx.Done():
	}
	if !f.withdraw(w) {
		<-w.wake // it was woken at the same time
	}
	waiterPool.Put(w)
	return ctx.Err()
}

// register puts w on the list, unless there is nothing to wait for.
func (f *frontier) register(w *waiter) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting.Add(1) // before the value is read: see advance
	if f.value.Load() > w.offset {
		f.waiting.Add(-1)
		return false, nil
	}
	if f.mu.err != nil {
		f.waiting.Add(-1)
		return false, f.mu.err
	}
	f.mu.waiters = append(f.mu.waiters, w)
	return true, nil
}

func (f *frontier) withdraw(w *waiter) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, other := range f.mu.waiters {
		if other == w {
			last := len(f.mu.waiters) - 1
			f.mu.waiters[i] = f.mu.waiters[last]
			f.mu.waiters[last] = nil
			f.mu.waiters = f.mu.waiters[:last]
			f.waiting.Add(-1)
			return true
		}
	}
	return false
}
