package state

import (
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/weirstream/weir/internal/slide"
)

// mergerName is stored by Pebble, which refuses to open a store with another one.
const mergerName = "weir.slide.v1"

// newMerger makes the merge operator: slide's join. It drops what is at or below horizon(counter id), which must be a
// horizon that is persisted already: after a crash the log is replayed from there, and nothing may be gone that the
// recovered horizon still covers.
func newMerger(horizon func(id uint32) int64) *pebble.Merger {
	pool := &sync.Pool{New: func() any { return new(joiner) }}
	return &pebble.Merger{
		Name: mergerName,
		Merge: func(key, value []byte) (pebble.ValueMerger, error) {
			id, ok := keyID(key)
			if !ok {
				return nil, fmt.Errorf("%w: merge into a key of %d bytes", ErrCorrupt, len(key))
			}
			j := pool.Get().(*joiner)
			j.pool = pool
			j.merger.Reset(horizon(id))
			return j, j.merger.Add(value)
		},
	}
}

// joiner is one merge. The order of operands does not matter to a join.
type joiner struct {
	pool   *sync.Pool
	merger slide.Merger
	out    []byte
}

func (j *joiner) MergeNewer(value []byte) error { return j.merger.Add(value) }
func (j *joiner) MergeOlder(value []byte) error { return j.merger.Add(value) }

// Finish returns the join. It may be the empty value: the owner deletes that, a merge never does.
func (j *joiner) Finish(bool) ([]byte, io.Closer, error) {
	j.out = j.merger.Finish(j.out[:0])
	return j.out, j, nil
}

// Close takes the memory back once Pebble has copied the result.
func (j *joiner) Close() error {
	j.pool.Put(j)
	return nil
}

// newestProperty is the block property that nominates keys to the sweeper: the range of the newest ts of the roots and
// operands in a block. It only nominates, since a newer operand of the same key may lie in another block.
const newestProperty = "weir.newest.v1"

func newNewestCollector() pebble.BlockPropertyCollector {
	return sstable.NewBlockIntervalCollector(newestProperty, newestMapper{}, nil)
}

type newestMapper struct{}

// MapPointKey maps a root or an operand to its newest ts. Whatever else is stored is of no interest to the sweeper. A
// value that cannot be read is left for whoever reads the key to report: failing here would stop compactions.
func (newestMapper) MapPointKey(key pebble.InternalKey, value []byte) (sstable.BlockInterval, error) {
	switch key.Kind() {
	case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete, pebble.InternalKeyKindMerge:
	default:
		return sstable.BlockInterval{}, nil
	}
	id, _ := keyID(key.UserKey)
	n, ok := rootLen(key.UserKey)
	if !ok || n != len(key.UserKey) || KeySequence(id) == metaID {
		return sstable.BlockInterval{}, nil
	}
	ts, ok, err := slide.NewestTS(value)
	if err != nil {
		return sstable.BlockInterval{}, nil
	}
	if !ok {
		return sstable.BlockInterval{Lower: 0, Upper: 1}, nil // an empty value: always nominated
	}
	return sstable.BlockInterval{Lower: orderedTS(ts), Upper: horizonEnd(ts)}, nil
}

func (newestMapper) MapRangeKeys(sstable.Span) (sstable.BlockInterval, error) {
	return sstable.BlockInterval{}, nil
}

// newestFilter passes blocks that may hold a root or an operand whose newest ts is at or below horizon.
func newestFilter(horizon int64) pebble.BlockPropertyFilter {
	return sstable.NewBlockIntervalFilter(newestProperty, 0, horizonEnd(horizon), nil)
}
