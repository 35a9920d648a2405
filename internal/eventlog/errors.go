package eventlog

import (
	"errors"
	"fmt"
	"time"
)

// What an append may be answered with. Nothing of a refused append is stored.
var (
	// ErrClosed says that the log is closing or closed.
	ErrClosed = errors.New("event log is closed")

	// ErrOverloaded is what *Overload unwraps to.
	ErrOverloaded = errors.New("event log is overloaded")

	// ErrDiskFull says that the disk's free space is at the reserve. The log recovers by itself when space returns.
	ErrDiskFull = errors.New("event log's disk is full")

	// ErrFailed says that the storage below a partition failed: it takes no more events until it is opened again. It
	// wraps the cause. Whether the events of the append that met it are stored is unknown.
	ErrFailed = errors.New("event log failed")

	// ErrTooLarge says that one event, or the ring that was given to the log, does not fit.
	ErrTooLarge = errors.New("event is too large")
)

// What opening a log may be answered with.
var (
	// ErrLocked says that another process, or another Log of this one, has the folder open.
	ErrLocked = errors.New("event log's folder is in use")

	// ErrStreamChanged is what *StreamChanged unwraps to.
	ErrStreamChanged = errors.New("stream differs from what is stored")

	// ErrUnknownFormat says that a newer Weir wrote the folder.
	ErrUnknownFormat = errors.New("unknown format")
)

// What reading may be answered with.
var (
	// ErrTrimmed says that retention removed the offset. Partition.Frontiers tells the first one that is left.
	ErrTrimmed = errors.New("offset was removed by retention")

	// ErrCorrupt is what *Corruption unwraps to.
	ErrCorrupt = errors.New("event log is corrupt")
)

// Overload refuses an append because the queue of a partition holds its bound.
type Overload struct {
	Partition  int
	RetryAfter time.Duration // about when the queue will have drained
}

func (o *Overload) Error() string {
	return fmt.Sprintf("cannot queue events: partition %d is at its bound; want a retry after %v", o.Partition, o.RetryAfter)
}

// Unwrap returns ErrOverloaded.
func (o *Overload) Unwrap() error { return ErrOverloaded }

// StreamChanged refuses to open a stream whose routing differs from the one that its events were stored by.
type StreamChanged struct {
	Stream string
	What   string // "partitions" or "segment"
	Stored string
	Wanted string
}

func (c *StreamChanged) Error() string {
	return fmt.Sprintf("cannot open stream %s: %s changed: got %s; want %s, which its stored events were routed by (set it back, or name a new stream)",
		c.Stream, c.What, c.Wanted, c.Stored)
}

// Unwrap returns ErrStreamChanged.
func (c *StreamChanged) Unwrap() error { return ErrStreamChanged }

// Corruption says where stored bytes are not what was written.
type Corruption struct {
	Stream    string
	Partition int
	Offset    int64 // the offset that could not be read
	Err       error
}

func (c *Corruption) Error() string {
	return fmt.Sprintf("cannot read stream %s, partition %d, offset %d: corrupt: %v", c.Stream, c.Partition, c.Offset, c.Err)
}

// Unwrap returns ErrCorrupt and the detail.
func (c *Corruption) Unwrap() []error { return []error{ErrCorrupt, c.Err} }
