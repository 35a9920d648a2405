package eventlog

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/clock"
	"github.com/weirstream/weir/internal/ring"
)

// DiskReserveDefault is how many bytes of the disk stay free where Options does not say it.
const DiskReserveDefault = 256 << 20

// Defaults and bounds of Options.
const (
	retentionDefault    = 8 * 24 * time.Hour
	ringAgeDefault      = 5 * time.Second
	ringBytesDefault    = 256 << 20
	dedupWindowDefault  = 10 * time.Minute
	dedupWindowMax      = 7 * 24 * time.Hour // arrivals are remembered in 32 bits of ms
	dedupMaxIDsDefault  = 1_000_000
	dedupMaxIDsMax      = 1 << 30
	queueBytesDefault   = 64 << 20
	eventBytesDefault   = 1 << 20
	memtableDefault     = 16 << 20
	memtableMin         = 256 << 10
	ballastBytesDefault = 64 << 20
	cacheBytesDefault   = 32 << 20
	partitionsMax       = 4096
)

// Compression says how the warm tier's files are compressed.
type Compression uint8

const (
	CompressionFast Compression = iota // Snappy or better where it is as fast
	CompressionGood                    // zstd: smaller files for more work when they are written
	CompressionNone
)

// Options configures one stream's log. Zero fields take the defaults that stand behind them.
type Options struct {
	FS         vfs.FS // where everything is stored; default: the operating system's
	Dir        string // the stream's own folder; required; created
	Stream     string // the stream's name, for errors and logs; required
	Partitions int    // 1..4096; required; fixed once data is stored
	Segment    string // the segment path of the stream, as text; fixed once data is stored

	Retention      time.Duration // how long events are kept after their arrival; 8d. Negative: for ever
	RingAge        time.Duration // how long events stay in RAM after they were written; 5s
	RingBytes      int64         // RAM for rings, of the whole stream; 256 MiB
	DedupWindow    time.Duration // how long an id is remembered after its arrival, at most 7d; 10m. Negative: not at all
	DedupMaxIDs    int           // ids remembered per partition at most; 1,000,000
	QueueBytesMax  int64         // bytes of records that wait for their partitions, of the whole stream; 64 MiB
	EventBytesMax  int           // the longest record that will be appended; 1 MiB, and some for the attributes
	MemtableBytes  int64         // write buffer of each partition; 16 MiB
	Compression    Compression   // of the warm tier's files
	Cache          *pebble.Cache // shared by whoever is given it; default: an own one of 32 MiB
	DiskReserve    int64         // free bytes of the disk below which appends are refused; 256 MiB. Negative: none
	BallastBytes   int64         // size of a file that is given up when a write finds the disk full; 64 MiB. Negative: none
	CompactionsMax int           // concurrent compactions of each partition; 1

	Clock  clock.Clock  // default: the machine's
	Logger *slog.Logger // default: none
	Events Listener     // what to call when something happens

	// Fatal is called when the storage below failed so that the process must not go on (a WAL or MANIFEST could not be
	// written). It must not return: a process ends here. Default: log, and end the store's goroutine that met it, which leaves a
	// log that answers everything with ErrFailed.
	Fatal func(err error)
}

// Listener is what a log tells while it works. Each function may be nil; each is called from the log's own goroutines
// and must return quickly without calling the log.
type Listener struct {
	Committed  func(Commit)                     // a group of appends became durable
	Synced     func(int, time.Duration)         // a partition wrote and fsynced, which took so long
	Overloaded func(partition int)              // an append was refused
	DiskFull   func(full bool)                  // appends are refused from now on, or taken again
	Spilled    func(partition, chunks int)      // the ring gave up chunks before their age, for want of room
	Trimmed    func(partition int, first int64) // retention moved the first offset
}

// Commit is one group commit of a partition.
type Commit struct {
	Partition  int
	Requests   int   // appends that shared the commit
	Events     int   // events stored
	Duplicates int   // events that were stored already
	Frames     int   // frames they were stored in
	Bytes      int64 // bytes of those frames
}

// recordSlack is what the attributes and the record's own fields may add to an event's bytes.
const recordSlack = 64 << 10

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
	orDuration(&o.Retention, retentionDefault)
	orDuration(&o.RingAge, ringAgeDefault)
	orDuration(&o.DedupWindow, dedupWindowDefault)
	orInt64(&o.RingBytes, ringBytesDefault)
	orInt64(&o.QueueBytesMax, queueBytesDefault)
	orInt64(&o.MemtableBytes, memtableDefault)
	orInt64(&o.DiskReserve, DiskReserveDefault)
	orInt64(&o.BallastBytes, ballastBytesDefault)
	if o.DedupMaxIDs == 0 {
		o.DedupMaxIDs = dedupMaxIDsDefault
	}
	if o.EventBytesMax == 0 {
		o.EventBytesMax = eventBytesDefault + recordSlack
	}
	if o.CompactionsMax == 0 {
		o.CompactionsMax = 1
	}
	if o.Fatal == nil {
		logger := o.Logger
		o.Fatal = func(err error) {
			logger.Error("event log: storage failed", "stream", o.Stream, "err", err)
			runtime.Goexit()
		}
	}
	return o
}

func (o *Options) validate() error {
	ringMin := int64(o.Partitions) * ringBytesMin(o.EventBytesMax)
	switch {
	case o.Dir == "" || o.Stream == "":
		return fmt.Errorf("cannot open event log: got folder %q, stream %q; want both", o.Dir, o.Stream)
	case o.Partitions < 1 || o.Partitions > partitionsMax:
		return fmt.Errorf("cannot open stream %s: got %d partitions; want 1..%d", o.Stream, o.Partitions, partitionsMax)
	case o.DedupWindow > dedupWindowMax:
		return fmt.Errorf("cannot open stream %s: got a dedup window of %v; want at most %v", o.Stream, o.DedupWindow, dedupWindowMax)
	case o.DedupMaxIDs < 0 || o.DedupMaxIDs > dedupMaxIDsMax:
		return fmt.Errorf("cannot open stream %s: got %d dedup ids; want 0..%d", o.Stream, o.DedupMaxIDs, dedupMaxIDsMax)
	case o.EventBytesMax < 0 || o.EventBytesMax > math.MaxInt32:
		return fmt.Errorf("cannot open stream %s: got events of %d bytes; want 0..%d", o.Stream, o.EventBytesMax, math.MaxInt32)
	case o.RingBytes < ringMin:
		return fmt.Errorf("cannot open stream %s: got a ring of %d bytes; want at least %d for %d partitions and events of %d bytes: %w",
			o.Stream, o.RingBytes, ringMin, o.Partitions, o.EventBytesMax, ErrTooLarge)
	case o.MemtableBytes < memtableMin:
		return fmt.Errorf("cannot open stream %s: got a write buffer of %d bytes; want at least %d", o.Stream, o.MemtableBytes, memtableMin)
	case o.QueueBytesMax < int64(o.Partitions):
		return fmt.Errorf("cannot open stream %s: got a queue of %d bytes; want more", o.Stream, o.QueueBytesMax)
	}
	return nil
}

// ringBytesMin returns what the ring of one partition needs.
func ringBytesMin(eventBytesMax int) int64 { return ring.BytesMin(eventBytesMax + frameHeaderBytes) }

func orDuration(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

func orInt64(v *int64, value int64) {
	if *v == 0 {
		*v = value
	}
}
