package counter

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/clock"
	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/slide"
	"github.com/weirstream/weir/internal/state"
)

const (
	// EpochDefault is how long arrivals stay in memory before they become a batch.
	EpochDefault = 50 * time.Millisecond
	// AppliedWaitMax is how long a look-up waits for what was acknowledged before it arrived.
	AppliedWaitMax = 20 * time.Millisecond

	deltaBytesDefault = 16 << 20
)

// Stream is a stream that has counters.
type Stream struct {
	Name    string
	Log     *eventlog.Log
	Segment string // the path that the stream is partitioned by; empty: the partitionkey attribute, else the id
	AheadMS int64  // an event further ahead of its arrival, in ms, counts but moves no horizon; 0: every event does
}

// Options configures a Set. Zero fields take the defaults that stand behind them.
type Options struct {
	FS          vfs.FS // default: the operating system's
	Dir         string // folder of all counters; required; created
	Streams     []Stream
	Definitions []Definition

	Cache          *state.Cache  // block cache; default: one per partition, small
	MemtableBytes  int           // write buffer of each partition; see state.Options
	DeltaBytes     int           // bound of each delta table, two per partition and two more while it builds; 16 MiB
	LookupBytes    int           // look-up cache of each partition; see state.Options
	CompactionsMax int           // concurrent compactions of each partition; 1
	Epoch          time.Duration // 50 ms. Negative: only when a delta table is full, on Flush and on Close
	FlushAfter     time.Duration // see state.Options; 30s
	Limits         slide.Limits  // sizes at which values change their form; DedupIDs comes from the definitions

	Clock  clock.Clock  // default: the machine's
	Logger *slog.Logger // default: none
	Events Listener
	Fatal  func(error) // see state.Options

	committing chan struct{} // held by whoever writes an epoch: one core at least is left to those who wait for it
}

// Listener is what a set tells while it works. Each function may be nil; each must return quickly and not call the set.
type Listener struct {
	Committed func(stream string, partition int, c state.Commit) // an epoch was written
	Built     func(counter string, partition int)                // a counter was built and is looked up from now on
	Failed    func(stream string, partition int, err error)      // a partition stopped counting until it is opened again
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Epoch == 0 {
		o.Epoch = EpochDefault
	}
	if o.committing == nil {
		o.committing = make(chan struct{}, max(1, runtime.NumCPU()-1))
	}
	if o.DeltaBytes == 0 {
		o.DeltaBytes = deltaBytesDefault
	}
	return o
}

var (
	// ErrKeyParts says that a look-up's key does not have the parts that the counter's has.
	ErrKeyParts = errors.New("key does not fit the counter")
	// ErrBuilding is what *BuildingError unwraps to.
	ErrBuilding = errors.New("counter is being built")
	// ErrClosed says that the set is closed.
	ErrClosed = state.ErrClosed
	// ErrFailed says that a partition stopped counting. It wraps the cause.
	ErrFailed = errors.New("counter failed")
)

// BuildingError refuses a look-up of a counter that is still being built from the log.
type BuildingError struct {
	Counter  string
	Progress float64 // 0..1, of the events that were there when building began or that came since
}

func (e *BuildingError) Error() string {
	return fmt.Sprintf("cannot look up counter %s: it is being built, %.0f %% done", e.Counter, 100*e.Progress)
}

// Unwrap returns ErrBuilding.
func (e *BuildingError) Unwrap() error { return ErrBuilding }
