package eventlog

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/orderfs"
)

const (
	timeProperty = "weir.source_ts" // block property: interval of source_ts

	blockBytes       = 32 << 10 // a frame of 256 KiB has a block of its own, small ones share
	tableBytes       = 16 << 20
	l0Compaction     = 4  // sub-levels; files do not overlap, so compactions move them
	l0StopWrites     = 24 // sub-levels
	memtablesMax     = 4  // write buffers that may wait to be flushed
	maxOpenFilesEach = 256
)

// openStore opens the Pebble instance of one partition, or makes it if fresh: in a folder without its markers Pebble would
// begin anew, and remove the tables that it finds. flushed is called when a write buffer has become a file.
func openStore(o *Options, fs vfs.FS, dir string, fresh bool, flushed func(), fatal func(error)) (*pebble.DB, error) {
	logger := &storeLogger{log: o.Logger.With("dir", dir), fatal: fatal}
	po := &pebble.Options{
		FS:                          orderfs.Wrap(fs),
		Cache:                       o.Cache,
		Logger:                      logger,
		FormatMajorVersion:          pebble.FormatTableFormatV6,
		MemTableSize:                uint64(o.MemtableBytes),
		MemTableStopWritesThreshold: memtablesMax,
		L0CompactionThreshold:       l0Compaction,
		L0StopWritesThreshold:       l0StopWrites,
		MaxOpenFiles:                maxOpenFilesEach,
		CompactionConcurrencyRange:  func() (int, int) { return 1, o.CompactionsMax },
		BlockPropertyCollectors:     []func() pebble.BlockPropertyCollector{newTimeCollector},
		EventListener:               storeEvents(logger, flushed),
		ErrorIfNotExists:            !fresh,
	}
	for i := range po.Levels {
		po.Levels[i].BlockSize = blockBytes
	}
	po.TargetFileSizes[0] = tableBytes
	po.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return compression(o.Compression) })
	db, err := pebble.Open(dir, po)
	if err != nil {
		return nil, err
	}
	return db, nil
}

func compression(c Compression) pebble.DBCompressionSettings {
	switch c {
	case CompressionNone:
		return pebble.DBCompressionNone
	case CompressionGood:
		return pebble.UniformDBCompressionSettings(sstable.BalancedCompression)
	default:
		return pebble.DBCompressionFastest
	}
}

func storeEvents(logger *storeLogger, flushed func()) *pebble.EventListener {
	return &pebble.EventListener{
		FlushEnd: func(pebble.FlushInfo) { flushed() },
		BackgroundError: func(err error) {
			logger.log.Warn("event log: background work failed, will be tried again", "err", err)
		},
		// The reader that met it gets the error. Pebble's default would end the process.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			logger.log.Error("event log: corrupt file", "path", info.Path, "err", info.Details)
		},
	}
}

// storeLogger takes what Pebble logs. Its everyday messages are of no interest; a fatal one ends the process.
type storeLogger struct {
	log   *slog.Logger
	fatal func(error)
}

func (l *storeLogger) Infof(string, ...any) {}

func (l *storeLogger) Errorf(format string, args ...any) {
	l.log.Error("event log: " + fmt.Sprintf(format, args...))
}

func (l *storeLogger) Fatalf(format string, args ...any) {
	l.fatal(fmt.Errorf(format, args...))
}

// timeMapper tells Pebble which source_ts a frame holds.
type timeMapper struct{}

func newTimeCollector() pebble.BlockPropertyCollector {
	return sstable.NewBlockIntervalCollector(timeProperty, timeMapper{}, nil)
}

// MapPointKey returns the interval of a frame's source_ts; other keys have none. A value that is no frame gets the
// widest interval, so that whoever reads it finds it out.
func (timeMapper) MapPointKey(key pebble.InternalKey, value []byte) (sstable.BlockInterval, error) {
	if key.Kind() != pebble.InternalKeyKindSet {
		return sstable.BlockInterval{}, nil
	}
	if _, ok := frameKeyOffset(key.UserKey); !ok {
		return sstable.BlockInterval{}, nil
	}
	if len(value) < frameHeaderBytes {
		return sstable.BlockInterval{Lower: 0, Upper: ^uint64(0)}, nil
	}
	var h frameHeader
	h.peek(value)
	upper := orderedTime(h.MaxTime)
	if upper != ^uint64(0) {
		upper++ // exclusive
	}
	return sstable.BlockInterval{Lower: min(orderedTime(h.MinTime), upper), Upper: upper}, nil
}

// MapRangeKeys is for keys that the log does not write.
func (timeMapper) MapRangeKeys(sstable.Span) (sstable.BlockInterval, error) {
	return sstable.BlockInterval{}, nil
}

// get returns a copy of a value, nil where there is none.
func get(db *pebble.DB, key []byte) ([]byte, error) {
	value, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return append([]byte{}, value...), closer.Close()
}
