package state

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/slide"
)

// diskBytesPerEventMax is what an event may take on disk where a user has 8 bytes, an ad 4, and three events share a key.
const diskBytesPerEventMax = 14

func TestDiskBytesPerEvent(t *testing.T) {
	if raceEnabled {
		t.Skip("says nothing about races, and takes its time")
	}
	const keys, perKey = 200_000, 3
	b := newBench(t, Options{FS: vfs.NewMem(), Dir: "s", DeltaBytes: 8 << 20, MemtableBytes: 8 << 20})
	r := rand.New(rand.NewPCG(1, 2))
	start, week := int64(1_700_000_000_000), int64(7*86_400_000)
	for i := range perKey {
		for k := range uint64(keys) {
			b.lane.Lock()
			user := k * 0x9e3779b97f4a7c15
			ts := start + (int64(i)*week+r.Int64N(week))/perKey
			for !b.add(user, uint32(k%1000), slide.Entry{TS: ts, FP: r.Uint64()}) {
				b.lane.Unlock()
				b.commit(t)
				b.lane.Lock()
			}
			b.lane.Unlock()
		}
	}
	b.commit(t)
	if err := b.store.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	bytes, err := b.store.DiskBytes(b.counter.ID)
	if err != nil {
		t.Fatal(err)
	}
	perEvent := float64(bytes) / (keys * perKey)
	t.Logf("%.2f bytes an event", perEvent)
	if perEvent > diskBytesPerEventMax {
		t.Errorf("got %.2f bytes an event; want at most %d", perEvent, diskBytesPerEventMax)
	}
}
