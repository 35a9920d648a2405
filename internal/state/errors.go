package state

import (
	"errors"
	"fmt"
)

var (
	// ErrCorrupt says that a record of the store does not hold what it should. It wraps the detail.
	ErrCorrupt = errors.New("corrupt counter state")
	// ErrUnknownFormat says that a newer Weir wrote the store.
	ErrUnknownFormat = errors.New("unknown format of counter state")
	// ErrClosed says that the store is closed.
	ErrClosed = errors.New("counter state is closed")
	// ErrUnknownCounter says that the catalog has no counter of that id.
	ErrUnknownCounter = errors.New("unknown counter")
	// ErrAhead is what *AheadError unwraps to.
	ErrAhead = errors.New("counter state is ahead of its log")
)

// AheadError refuses a state whose marker lies beyond the log's end: the log lost events that were counted, so the
// offsets it gives out next would be taken for counted ones.
type AheadError struct {
	Counter string
	Marker  int64 // next offset of the counter
	End     int64 // durable end of the log
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("cannot open state of counter %s: got a marker at offset %d; want at most %d, the end of its log: the log lost events, or belongs to another state",
		e.Counter, e.Marker, e.End)
}

// Unwrap returns ErrAhead.
func (e *AheadError) Unwrap() error { return ErrAhead }
