package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable/block"

	"github.com/weirstream/weir/internal/orderfs"
	"github.com/weirstream/weir/internal/slide"
)

// Cache is a block cache that stores and logs of one process share.
type Cache = pebble.Cache

// NewCache makes a block cache of bytes bytes. The caller has one reference: Unref it after the last store was opened.
func NewCache(bytes int64) *Cache { return pebble.NewCache(bytes) }

// Store is the state of one partition: one Pebble instance, and the lanes that write to it.
type Store struct {
	opts    Options
	db      *pebble.DB
	density *density // guarded by writer

	// writer is held by whoever writes: one epoch, or one change of the catalog, at a time.
	writer struct {
		sync.Mutex
		epochScratch
		catalog   map[uint32]*Entry
		persisted map[uint32]marker // what a crash would leave of each counter's marker
		lanes     []*Lane
		settling  settling
		closed    bool
	}

	// life is held for reading by what looks at the store without being a writer: it must not wait for an epoch that
	// waits for a disk.
	life struct {
		sync.RWMutex
		ended bool
	}

	horizons  atomic.Pointer[map[uint32]int64] // persisted H of each counter, for merges
	persisted atomic.Int64                     // see Persisted
	flushed   atomic.Bool                      // a flush ended since persisted was read
	trouble   chan struct{}                    // holds one: a flush or compaction failed
	flushMS   int64                            // when the last flush was asked for; guarded by writer
	failed    atomic.Pointer[error]
}

// Open opens the store in opts.Dir, creating it where there is none.
func Open(opts Options) (*Store, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	s := &Store{opts: opts, density: newDensity(), trouble: make(chan struct{}, 1)}
	s.writer.catalog = map[uint32]*Entry{}
	s.writer.persisted = map[uint32]marker{}
	s.horizons.Store(&map[uint32]int64{})
	db, err := pebble.Open(opts.Dir, s.pebbleOptions())
	if err != nil {
		return nil, fmt.Errorf("cannot open counter state in %s: %w", opts.Dir, err)
	}
	s.db = db
	s.flushMS = opts.Clock.NowMS()
	s.writer.settling.busyMS = s.flushMS
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open counter state in %s: %w", opts.Dir, err), db.Close())
	}
	return s, nil
}

func (s *Store) pebbleOptions() *pebble.Options {
	o := &pebble.Options{
		FS:                          orderfs.Wrap(s.opts.FS),
		Cache:                       s.opts.Cache,
		Comparer:                    newComparer(),
		Merger:                      newMerger(s.horizonOf),
		DisableWAL:                  true, // the event log is the log
		FormatMajorVersion:          pebble.FormatValueSeparation,
		MemTableSize:                uint64(s.opts.MemtableBytes),
		MemTableStopWritesThreshold: memtablesMax,
		L0CompactionThreshold:       l0CompactionTrigger,
		L0StopWritesThreshold:       l0StopWrites,
		MaxOpenFiles:                openFilesMax,
		BytesPerSync:                syncEveryBytes,
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, s.opts.CompactionsMax },
		Logger:                      pebbleLogger{logger: s.opts.Logger, fatal: s.opts.Fatal},
		EventListener: &pebble.EventListener{
			FlushEnd: func(info pebble.FlushInfo) {
				if info.Err == nil {
					s.flushed.Store(true)
				}
			},
			BackgroundError: s.backgroundError,
			// Whoever met it gets the error. Pebble's default would end the process.
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				s.opts.Logger.Error("counter state: corrupt file", "path", info.Path, "err", info.Details)
			},
		},
	}
	o.Experimental.FileCacheShards = 1
	// Columns of keys and values as random as these compress a seventh worse than rows.
	o.Experimental.EnableColumnarBlocks = func() bool { return false }
	// And what is compressible in them every method finds: zstd saves one byte in twelve and costs a tenth of all CPU.
	// Level 0 lives too briefly to be worth any.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings {
		settings := pebble.DBCompressionFastest
		settings.Levels[0] = block.NoCompression
		return settings
	})
	size := int64(tableBytesFirst)
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockBytes
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBitsPerKey)
		o.TargetFileSizes[i] = min(size, tableBytesLast)
		size *= 2
	}
	o.Levels[len(o.Levels)-1].FilterPolicy = pebble.NoFilterPolicy
	return o
}

func (s *Store) backgroundError(err error) {
	select {
	case s.trouble <- struct{}{}:
	default:
	}
	s.opts.Logger.Warn("counter state: flush or compaction failed, trying again", "dir", s.opts.Dir, "err", err)
	if s.opts.Events.Failed != nil {
		s.opts.Events.Failed(err)
	}
}

// pebbleLogger passes on what must not be missed.
type pebbleLogger struct {
	logger *slog.Logger
	fatal  func(error)
}

func (l pebbleLogger) Infof(string, ...any) {}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.logger.Warn("counter state: storage", "msg", fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) { l.fatal(fmt.Errorf(format, args...)) }

// load reads the store's own records.
func (s *Store) load() error {
	err := s.eachRecord(densityLetter, nil, s.density.load)
	if err != nil {
		return err
	}
	err = s.eachRecord(catalogLetter, nil, func(id uint32, record []byte) error {
		e, err := decodeEntry(record)
		if err == nil && e.ID != id {
			err = fmt.Errorf("%w: catalog entry of counter %d under %d", ErrCorrupt, e.ID, id)
		}
		s.writer.catalog[id] = &e
		return err
	})
	if err != nil {
		return err
	}
	return s.refreshPersisted()
}

// eachRecord calls f for every record of a letter.
func (s *Store) eachRecord(letter byte, opts *pebble.IterOptions, f func(index uint32, record []byte) error) error {
	if opts == nil {
		opts = &pebble.IterOptions{}
	}
	opts.LowerBound, opts.UpperBound = metaBounds(letter)
	it, err := s.db.NewIter(opts)
	if err != nil {
		return fmt.Errorf("cannot read records: %w", err)
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		index, keyErr := metaIndex(it.Key())
		if err = keyErr; err == nil {
			err = f(index, it.Value())
		}
	}
	return errors.Join(err, it.Close())
}

func (s *Store) horizonOf(id uint32) int64 {
	if h, ok := (*s.horizons.Load())[id]; ok {
		return h
	}
	return slide.NoHorizon
}

// refreshPersisted reads the markers that a crash would leave: merges may drop what is at or below their horizons, and
// the log what is below the smallest of them. A counter whose marker is not persisted yet holds the log where it began.
// The caller holds writer.
func (s *Store) refreshPersisted() error {
	horizons := map[uint32]int64{}
	opts := &pebble.IterOptions{OnlyReadGuaranteedDurable: true}
	err := s.eachRecord(markerLetter, opts, func(id uint32, record []byte) error {
		m, err := decodeMarker(record)
		if _, known := s.writer.catalog[id]; known && err == nil {
			s.writer.persisted[id] = m
			horizons[id] = m.h()
		}
		return err
	})
	if err != nil {
		return err
	}
	s.horizons.Store(&horizons)
	s.publishPersisted()
	return nil
}

func (s *Store) publishPersisted() {
	least := int64(math.MaxInt64)
	for _, m := range s.writer.persisted {
		least = min(least, m.next)
	}
	s.persisted.Store(least)
}

// Persisted returns the offset from which a crash would make the counters of this store read the log again: retention
// must not remove it. math.MaxInt64 where there are no counters.
func (s *Store) Persisted() int64 { return s.persisted.Load() }

// Flush writes what is committed into files, and returns when a crash would keep it.
func (s *Store) Flush() error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("cannot flush counter state: %w", err)
	}
	s.flushMS = s.opts.Clock.NowMS()
	return s.refreshPersisted()
}

// Compact rewrites everything into the last level.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.Flush(); err != nil {
		return err
	}
	return s.mergeAll(ctx)
}

// mergeAll moves everything into the last level. It holds nothing.
func (s *Store) mergeAll(ctx context.Context) error {
	lower, upper := counterBounds(0)
	upper = bytes.Repeat([]byte{0xff}, len(upper)+1)
	if err := s.db.Compact(ctx, lower, upper, false); err != nil {
		return fmt.Errorf("cannot compact counter state: %w", err)
	}
	return nil
}

// housekeeping starts a flush when it is due and learns what flushes have persisted. The caller holds writer.
func (s *Store) housekeeping() error {
	if s.flushed.Swap(false) {
		if err := s.refreshPersisted(); err != nil {
			return err
		}
	}
	now := s.opts.Clock.NowMS()
	if age := now - s.flushMS; age >= 0 && age < s.opts.FlushAfter.Milliseconds() {
		return nil // a negative age: the clock was set back
	}
	s.flushMS = now
	if _, err := s.db.AsyncFlush(); err != nil {
		return fmt.Errorf("cannot start a flush of counter state: %w", err)
	}
	s.settle(now)
	return nil
}

// usable says whether the store can be written. The caller holds writer.
func (s *Store) usable() error {
	if s.writer.closed {
		return ErrClosed
	}
	return s.Err()
}

// fail makes err the answer to everything from now on: after a batch that could not be written, memory and disk do not
// agree any more, and only opening again repairs that.
func (s *Store) fail(err error) error {
	s.failed.CompareAndSwap(nil, &err)
	return err
}

// Err returns what made the store fail, or nil.
func (s *Store) Err() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Close closes the lanes and the store. What was committed is flushed first, so that opening again reads little of the
// log.
func (s *Store) Close() error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if s.writer.closed {
		return nil
	}
	s.writer.closed = true
	s.writer.settling.wait()
	var errs []error
	for _, l := range s.writer.lanes {
		errs = append(errs, l.close())
	}
	if s.Err() == nil {
		errs = append(errs, s.flushForClose())
	}
	s.life.Lock()
	s.life.ended = true
	s.life.Unlock()
	errs = append(errs, s.db.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot close counter state in %s: %w", s.opts.Dir, err)
	}
	return nil
}

// closeFlushMax is how long closing waits for a flush. Pebble tries one that fails again for ever, on a full disk for
// instance, and nothing is lost without it: the log is read again from the marker that is on disk.
const closeFlushMax = 5 * time.Second

// flushForClose flushes, unless flushes fail. The caller holds writer.
func (s *Store) flushForClose() error {
	select {
	case <-s.trouble: // of long ago
	default:
	}
	done, err := s.db.AsyncFlush()
	if err != nil {
		return err
	}
	timer := time.NewTimer(closeFlushMax)
	defer timer.Stop()
	select {
	case <-done:
	case <-s.trouble:
	case <-timer.C:
	}
	return nil
}
