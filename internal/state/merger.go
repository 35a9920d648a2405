package state

import (
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"

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
