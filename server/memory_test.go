package server

import (
	"testing"

	"github.com/weirstream/weir/internal/config"
)

// What the collector may take and what it does not see fit into memory together, and what it may take holds all of the
// budget that is Go's.
func TestHeapLimitLeavesRoomForWhatIsNotGo(t *testing.T) {
	for _, counted := range []bool{false, true} {
		cfg := config.Default()
		if counted {
			cfg.Counters = []config.Counter{{Name: "c", Stream: "events"}}
		}
		b, err := cfg.Divide()
		if err != nil {
			t.Fatal(err)
		}
		outside := b.Rings + b.DeltaTables + b.LookupCache
		if pebbleOutsideHeap {
			outside += b.BlockCache + b.Memtables
		}
		limit := heapLimit(b)
		if limit+outside > b.Total {
			t.Errorf("counted %v: Go may take %d beside %d outside its heap; want at most %d together", counted, limit, outside, b.Total)
		}
		if needs := b.RecentIDs + b.Bodies + b.Commands + b.Queues; limit <= needs {
			t.Errorf("counted %v: Go may take %d; want more than the %d that its parts of the budget hold", counted, limit, needs)
		}
	}
}
