package server

import "sync/atomic"

// admission is the memory set aside for what requests carry, from the first byte read until the answer.
type admission struct {
	max  int64
	used atomic.Int64
}

// take sets bytes aside, or nothing where they do not fit. A single request may always use the whole.
func (a *admission) take(bytes int64) bool {
	for {
		used := a.used.Load()
		if used+bytes > a.max {
			return false
		}
		if a.used.CompareAndSwap(used, used+bytes) {
			return true
		}
	}
}

func (a *admission) give(bytes int64) { a.used.Add(-bytes) }
