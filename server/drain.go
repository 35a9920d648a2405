package server

import (
	"context"
	"net/http"
	"sync"
)

// inFlight knows the requests that are being served, so that a drain can wait for them while the listeners still answer.
// Closing the listeners first, as http.Server.Shutdown does, would let nobody ask /readyz why the node refuses.
type inFlight struct {
	mu struct {
		sync.Mutex
		count int
		done  chan struct{} // set once the node drains; closed when count is 0
	}
}

// wrap returns h, counted.
func (f *inFlight) wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.enter() {
			defer f.leave()
		}
		h.ServeHTTP(w, r)
	})
}

// enter is false for requests that begin during the drain: they are refused anyway, and one after another they would
// keep it from ending.
func (f *inFlight) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.done != nil {
		return false
	}
	f.mu.count++
	return true
}

func (f *inFlight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.count--; f.mu.count == 0 && f.mu.done != nil {
		close(f.mu.done)
	}
}

// drain returns when the requests that had begun before it was called have ended, or with ctx. It is called once.
func (f *inFlight) drain(ctx context.Context) {
	f.mu.Lock()
	done := make(chan struct{})
	f.mu.done = done
	if f.mu.count == 0 {
		close(done)
	}
	f.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
