package state

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/clock"
	"github.com/weirstream/weir/internal/slide"
)

// Defaults and bounds of Options.
const (
	memtableDefault   = 32 << 20
	memtableMin       = 256 << 10
	deltaDefault      = 16 << 20
	lookupDefault     = 16 << 20
	flushAfterDefault = 30 * time.Second
)

// Options configures the state of one partition. Zero fields take the defaults that stand behind them.
type Options struct {
	FS  vfs.FS // default: the operating system's
	Dir string // the store's own folder; required; created

	Cache          *pebble.Cache // block cache, shared by whoever is given it; default: Pebble's own of 8 MiB
	MemtableBytes  int           // write buffer; up to four may exist while a flush is slow; 32 MiB
	DeltaBytes     int           // bound of one delta table, of which there are two per lane; 16 MiB
	LookupBytes    int           // look-up cache of the live lane; 16 MiB. Negative: none
	CompactionsMax int           // concurrent compactions; 1
	FlushAfter     time.Duration // a memtable is flushed at the latest this long after the flush before, if it holds anything; 30s

	Limits slide.Limits // sizes at which values change their form

	Clock  clock.Clock  // for FlushAfter and durations; default: the machine's
	Logger *slog.Logger // default: none
	Events Listener
	// Fatal is called when the storage below failed so that the process must not go on. It must not return, and should
	// end the process. Default: log, and stop the goroutine that met the failure for good.
	Fatal func(err error)
}

// Listener is what a store tells while it works. Each function may be nil; each must return quickly and not call the
// store.
type Listener struct {
	Committed func(Commit)    // an epoch was written
	Failed    func(err error) // something went wrong in the background: a flush or compaction, which will be tried again
}

// Commit is one epoch's batch.
type Commit struct {
	Keys      int           // keys with arrivals
	Arrivals  int           // arrivals
	Bytes     int           // of the batch
	Folds     int           // keys that were read and written back
	Swept     int           // dead keys that were deleted
	Conflicts int           // copies of one id that differed in ts, met while folding: best effort
	Duration  time.Duration // from freezing to publishing
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.MemtableBytes == 0 {
		o.MemtableBytes = memtableDefault
	}
	if o.DeltaBytes == 0 {
		o.DeltaBytes = deltaDefault
	}
	if o.LookupBytes == 0 {
		o.LookupBytes = lookupDefault
	}
	if o.CompactionsMax == 0 {
		o.CompactionsMax = 1
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.FlushAfter == 0 {
		o.FlushAfter = flushAfterDefault
	}
	if o.Fatal == nil {
		logger := o.Logger
		o.Fatal = func(err error) {
			logger.Error("counter state: storage failed for good", "dir", o.Dir, "err", err)
			select {}
		}
	}
	return o
}

func (o *Options) validate() error {
	switch {
	case o.Dir == "":
		return fmt.Errorf("cannot open counter state: got no folder; want one")
	case o.MemtableBytes < memtableMin:
		return fmt.Errorf("cannot open counter state: got a write buffer of %d bytes; want at least %d", o.MemtableBytes, memtableMin)
	case o.DeltaBytes < tableBytesMin || o.DeltaBytes > 1<<30:
		return fmt.Errorf("cannot open counter state: got delta tables of %d bytes; want %d..%d", o.DeltaBytes, tableBytesMin, 1<<30)
	}
	return nil
}

// Filters, blocks and tables. Blocks are small, because point reads take one each. The last level holds nine tenths of
// the data and is asked about keys that mostly exist, so a filter there would cost disk and save little.
// docs/design/0003-counter-state.md has the numbers.
const (
	bloomBitsPerKey     = 10
	blockBytes          = 8 << 10
	tableBytesFirst     = 4 << 20
	tableBytesLast      = 64 << 20
	l0CompactionTrigger = 10 // with 4, ingest loses a tenth; what that leaves unmerged, a quiet store merges
	l0StopWrites        = 24
	openFilesMax        = 512
	memtablesMax        = 3
	syncEveryBytes      = 512 << 10
)
