package state

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/slide"
)

// TestHotKeyEndsTheEpoch asks that the committer is told once a key has many arrivals waiting, and not before.
func TestHotKeyEndsTheEpoch(t *testing.T) {
	b := newBench(t, Options{FS: vfs.NewMem(), Dir: "s", DeltaBytes: 8 << 20})
	told := func() bool {
		select {
		case <-b.lane.Full():
			return true
		default:
			return false
		}
	}
	b.lane.Lock()
	defer b.lane.Unlock()
	for i := range uint64(hotArrivals - 1) {
		b.add(1, 1, slide.Entry{TS: int64(i), FP: i})
		b.add(2+i, 1, slide.Entry{TS: int64(i), FP: i}) // many keys are no hot key
	}
	if told() {
		t.Errorf("the committer was told after %d arrivals of a key", hotArrivals-1)
	}
	b.add(1, 1, slide.Entry{TS: hotArrivals, FP: hotArrivals})
	if !told() {
		t.Errorf("the committer was not told after %d arrivals of a key", hotArrivals)
	}
}
