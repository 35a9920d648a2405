package state

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/slide"
)

// BenchmarkHotKey looks a key of a million events up, with one epoch's arrivals in the open table, and adds to it.
func BenchmarkHotKey(b *testing.B) {
	const events, perEpoch = 1_000_000, 5000
	s := newBench(b, Options{FS: vfs.NewMem(), Dir: "s", DeltaBytes: 8 << 20})
	r := rand.New(rand.NewPCG(1, 2))
	now := int64(1_700_000_000_000)
	epoch := func() {
		s.lane.Lock()
		for range perEpoch {
			now += r.Int64N(1000)
			s.add(1, 1, slide.Entry{TS: now, FP: r.Uint64()})
		}
		s.lane.Unlock()
	}
	for range events / perEpoch {
		epoch()
		s.commit(b)
	}
	var scratch Scratch
	var a slide.Answer
	q := slide.Query{Windows: s.windows}
	look := func(b *testing.B) {
		q.AsOf = now
		if _, err := s.lane.Lookup(s.counter, s.keyOf(1, 1), &q, &scratch, &a); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("lookup", func(b *testing.B) {
		for b.Loop() {
			look(b)
		}
	})
	epoch()
	b.Run("lookup while 5,000 arrivals wait", func(b *testing.B) {
		for b.Loop() {
			look(b)
		}
	})
	b.Run("epoch of 5,000", func(b *testing.B) {
		for b.Loop() {
			epoch()
			s.commit(b)
		}
	})
	if w := a.Windows[len(a.Windows)-1]; w.Count == 0 || !w.Exact {
		b.Errorf("got %+v; want it exact", w)
	}
}
