// Package clock is time as a value that is passed in, so that everything that asks for it can be tested with a time of
// the test's choosing.
package clock

import (
	"sync/atomic"
	"time"
)

// Clock tells the wall-clock time.
type Clock interface {
	// NowMS returns ms since 1970-01-01T00:00Z.
	NowMS() int64
}

// System is the machine's clock.
type System struct{}

// NowMS returns the machine's time in ms.
func (System) NowMS() int64 { return time.Now().UnixMilli() }

// Manual is a clock that stands where it was set. Its zero value shows 0; it may be shared.
type Manual struct{ ms atomic.Int64 }

// NowMS returns the time that was set last.
func (m *Manual) NowMS() int64 { return m.ms.Load() }

// Set moves the clock to ms, forwards or backwards.
func (m *Manual) Set(ms int64) { m.ms.Store(ms) }

// Advance moves the clock by ms and returns the new time.
func (m *Manual) Advance(ms int64) int64 { return m.ms.Add(ms) }
