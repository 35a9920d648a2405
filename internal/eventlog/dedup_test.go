package eventlog

import (
	"math/rand/v2"
	"testing"

	"github.com/weirstream/weir/internal/event"
)

// hashNumber is a hash with few different tags and tables, so that probes collide.
func hashNumber(n int) event.Hash {
	return event.Hash{Hi: uint64(n) * 0x9e3779b97f4a7c15, Lo: uint64(n%200) | uint64(n)<<33}
}

// The oracle is a list of everything that was accepted.
func TestDedupAgainstList(t *testing.T) {
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	type accepted struct {
		hash    event.Hash
		arrival int64
	}
	for _, c := range []struct {
		window  int64
		max     int
		ids     int
		stepMax int64
	}{
		{1000, 1 << 20, 300, 20},
		{1000, 100, 300, 3},
		{50, 5000, 100, 10},
		{1000, 1, 5, 10},
		{1 << 28, 20_000, 9000, 2},
		{1000, 20_000, 300, 900},
	} {
		const first = int64(1)<<31 - 500 // the lower halves of offsets wrap
		d := newDedup(c.window, c.max, first)
		var log []accepted
		now := int64(testNow)
		for range 20_000 {
			now += rng.Int64N(c.stepMax + 1)
			arrival := now - rng.Int64N(3)
			hash := hashNumber(rng.IntN(c.ids))
			offset, ok := d.lookup(hash, arrival)
			wantOffset, want := int64(0), false
			for i := len(log) - 1; i >= 0 && i >= len(log)-c.max; i-- {
				if log[i].hash == hash {
					wantOffset, want = first+int64(i), arrival-log[i].arrival <= c.window
					break
				}
			}
			if ok != want || ok && offset != wantOffset {
				t.Fatalf("window %d, max %d: hash %v at %d: got %d, %v; want %d, %v", c.window, c.max, hash, arrival, offset, ok, wantOffset, want)
			}
			if !ok {
				d.push(hash, arrival, first+int64(len(log)))
				log = append(log, accepted{hash, arrival})
			}
			if n := d.ids.Load(); n > int64(c.max) {
				t.Fatalf("%d ids remembered; want at most %d", n, c.max)
			}
		}
	}
}

func TestDedupDisabled(t *testing.T) {
	for _, d := range []*dedup{newDedup(0, 10, 0), newDedup(10, 0, 0), newDedup(-1, 10, 0)} {
		d.push(hashNumber(1), testNow, 0)
		if _, ok := d.lookup(hashNumber(1), testNow); ok {
			t.Error("a duplicate was found by what remembers nothing")
		}
	}
}

// An id that comes again after 49.7 days, when its 32 bits of arrival look new.
func TestDedupLongSilence(t *testing.T) {
	d := newDedup(1000, 10, 0)
	d.push(hashNumber(1), testNow, 0)
	if _, ok := d.lookup(hashNumber(1), testNow+1<<32); ok {
		t.Error("a duplicate was found after 2^32 ms")
	}
}

// A clock that was an hour ahead and was set back does not make the ids that come after it look old.
func TestDedupAfterClockWasSetBack(t *testing.T) {
	d := newDedup(10*60_000, 3, 0)
	for i, arrival := range []int64{testNow, testNow + hourMS, testNow + 1, testNow + 2, testNow + 3, testNow + 4} {
		d.push(hashNumber(i), arrival, int64(i))
	}
	for i := range 3 {
		want := int64(3 + i)
		if offset, ok := d.lookup(hashNumber(3+i), testNow+5); !ok || offset != want {
			t.Errorf("id %d: got %d, %v; want it remembered at %d", 3+i, offset, ok, want)
		}
	}
}

func TestDedupSteadyStateAllocatesNothing(t *testing.T) {
	d := newDedup(1<<28, 50_000, 0)
	n := int64(0)
	step := func() {
		hash := event.Hash{Hi: uint64(n) * 0x9e3779b97f4a7c15, Lo: uint64(n) * 0xd1342543de82ef95}
		if _, ok := d.lookup(hash, testNow+n); !ok {
			d.push(hash, testNow+n, n)
		}
		n++
	}
	for range 300_000 {
		step()
	}
	before := d.bytes.Load()
	if a := testing.AllocsPerRun(100_000, step); a != 0 {
		t.Errorf("%v allocations per id; want 0", a)
	}
	if after := d.bytes.Load(); after > before+before/4 {
		t.Errorf("memory grew from %d to %d at a constant number of ids", before, after)
	}
	if perID := float64(d.bytes.Load()) / 50_000; perID > 48 {
		t.Errorf("%.1f bytes per id; want at most 48", perID)
	}
}

func BenchmarkDedup(b *testing.B) {
	d := newDedup(1<<30, 1_000_000, 0)
	n := int64(0)
	for b.Loop() {
		hash := event.Hash{Hi: uint64(n) * 0x9e3779b97f4a7c15, Lo: uint64(n) * 0xd1342543de82ef95}
		if _, ok := d.lookup(hash, testNow+n); !ok {
			d.push(hash, testNow+n, n)
		}
		n++
	}
}
