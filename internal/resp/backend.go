package resp

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Backend is what the server serves. Its methods are called by many connections at once and must not allocate: they
// lie on the path of every command. Names alias the connection's buffer and must not be kept.
type Backend interface {
	// Stream returns the stream called name.
	Stream(name []byte) (Stream, bool)
	// Counter returns the counter called name.
	Counter(name []byte) (Counter, bool)
	// Ready returns ok, or the status that keeps commands on streams and counters from being served ("recovering").
	Ready() (status string, ok bool)
	// AppendInfo appends the text of INFO about streams and counters: "name:value" lines, each ended by CR LF.
	AppendInfo(dst []byte) []byte
}

// Stream is where XADD puts events.
type Stream interface {
	// Partitions returns how many there are.
	Partitions() int
	// Len returns how many events partition holds, from the first retained one on.
	Len(partition int) int64
	// NewBatch returns an empty batch, from a pool: the server calls Release when it is done with it.
	NewBatch() Batch
}

// Batch collects the events of neighbouring XADDs, so that they reach the log in one append. One goroutine uses it.
type Batch interface {
	// Add checks the event that the name/value pairs in fields describe and takes a copy. An error, best an
	// *EventError, refuses this event and leaves the others alone.
	Add(fields [][]byte) error
	// Commit appends the events that were added, in order and all or none, and returns once they are on disk. It
	// returns a *BusyError where the stream is overloaded.
	Commit(ctx context.Context) error
	// ID returns where the event of the i-th successful Add lies, or its first copy if it is a duplicate. Valid after
	// Commit, until Release.
	ID(i int) (partition int, offset int64)
	// Release gives the batch back. It must not be used afterwards.
	Release()
}

// Counter answers look-ups.
type Counter interface {
	// KeyParts returns the number of parts of a key.
	KeyParts() int
	// Windows returns the windows' names in the configured order.
	Windows() []string
	// Lookup answers for key (KeyParts parts, aliasing the connection's buffer) as of asOf, in ms since the epoch or
	// AsOfNow, into a, reusing its memory. a.Windows gets one element per window. A counter that is being rebuilt
	// returns a *BuildingError.
	Lookup(ctx context.Context, key [][]byte, asOf int64, a *Answer) error
}

// AsOfNow asks for the newest state.
const AsOfNow int64 = math.MinInt64

// NoExpiry is Answer.NextExpiry where no count will shrink by the passing of time alone.
const NoExpiry int64 = math.MaxInt64

// NoMax is WindowAnswer.Max where nothing bounds the count from above.
const NoMax int64 = -1

// Answer is what a look-up found. It is reused from one look-up to the next.
type Answer struct {
	Windows    []WindowAnswer // in the order of Counter.Windows
	NextExpiry int64          // ms since the epoch, or NoExpiry
}

// WindowAnswer is one window's count.
type WindowAnswer struct {
	Count int64
	Max   int64 // the most that the true count can be, or NoMax
	Exact bool  // Count is the true count
}

// BusyError refuses an append because the stream has more to do than it can.
type BusyError struct{ RetryAfter time.Duration }

func (e *BusyError) Error() string {
	return fmt.Sprintf("overloaded: retry in %v", e.RetryAfter)
}

// BuildingError refuses a look-up because the counter is being rebuilt from the log.
type BuildingError struct{ Progress float64 } // 0 to 1

func (e *BuildingError) Error() string {
	return fmt.Sprintf("counter is being rebuilt: %d%% done", int(e.Progress*100))
}

// EventError refuses one event.
type EventError struct {
	Code    string // from the table of API errors
	Message string
}

func (e *EventError) Error() string { return e.Code + " " + e.Message }

// Allow is what a client may do.
type Allow uint8

// The rights of a token.
const (
	AllowRead  Allow = 1 << iota // look-ups, lengths, INFO
	AllowWrite                   // XADD
)
