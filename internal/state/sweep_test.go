package state

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/slide"
)

// stored counts the roots and slices of every counter in the store.
func (m *model) stored() (roots, slices int) {
	m.t.Helper()
	it, err := m.store.db.NewIter(nil)
	m.must(err)
	for ok := it.First(); ok; ok = it.Next() {
		id, _ := keyID(it.Key())
		n, ok := rootLen(it.Key())
		switch {
		case KeySequence(id) == metaID:
		case !ok:
			m.t.Fatalf("stored key %x is not well formed", it.Key())
		case n < len(it.Key()):
			slices++
		default:
			roots++
		}
	}
	m.must(it.Close())
	return roots, slices
}

// diskBytes is what the first counter takes on disk.
func (m *model) diskBytes() int64 {
	m.t.Helper()
	n, err := m.store.DiskBytes(m.counters[0].entry.ID)
	m.must(err)
	return n
}

// settle commits until no sweep is under way.
func (m *model) settle() {
	m.t.Helper()
	for {
		did, err := m.lane.Commit()
		m.must(err)
		if !did {
			return
		}
	}
}

// Users come, are counted a few times, some of them very often, and never come again, while event time moves on for many
// spans: what is stored stays as much as the last spans hold.
func TestChurn(t *testing.T) {
	eachSeed(t, 2, func(t *testing.T, r *rand.Rand) {
		m := newModel(t, r, 1)
		c := m.counters[0]
		span := c.longest() + c.lateness
		const perSpan, spans = 300, 12
		most, disk := 0, int64(0)
		for i := range spans * perSpan {
			m.now += span / perSpan
			for range 1 + r.IntN(3) + r.IntN(30)/29*60 {
				m.log = append(m.log, modelEvent{key: i, entry: slide.Entry{TS: m.now - r.Int64N(span/perSpan), FP: r.Uint64()}})
			}
			if i%10 == 0 {
				m.catchUp()
				m.commit()
			}
			if i%100 == 0 {
				m.must(m.store.Flush())
			}
			if i%perSpan == 0 {
				m.settle()
				roots, _ := m.stored()
				most = max(most, roots)
				for range 10 {
					m.check(0, max(0, i-r.IntN(perSpan)), m.now)
				}
				m.must(m.store.Compact(context.Background()))
				disk = max(disk, m.diskBytes())
			}
		}
		if most > 2*perSpan {
			t.Errorf("got up to %d keys of %d; want no more than %d", most, spans*perSpan, 2*perSpan)
		}

		// Time leaps: everything dies but what comes now. (Keys of the very epoch in which they die wait for the next pass.)
		m.catchUp()
		m.commit()
		m.now += 3 * span
		m.log = append(m.log, modelEvent{key: 1_000_000, entry: slide.Entry{TS: m.now, FP: 1}})
		m.catchUp()
		m.commit()
		m.settle()
		m.must(m.store.Compact(context.Background()))
		if roots, slices := m.stored(); roots != 1 || slices != 0 {
			t.Errorf("got %d roots and %d slices; want the one that lives", roots, slices)
		}
		if left := m.diskBytes(); left > disk/4 {
			t.Errorf("got %d bytes on disk of %d; want them freed", left, disk)
		}
		m.check(0, 1_000_000, m.now)
		for i, n := range m.store.density.slots {
			if n != 0 {
				t.Fatalf("density slot %d is %d; want 0 where nothing is dense", i, n)
			}
		}
		m.must(m.store.Close())
	})
}

// Keys die in epochs as large as those in which they came: what is stored stays within a few spans, however many keys an
// epoch brings.
func TestChurnOfLargeEpochs(t *testing.T) {
	const perEpoch, epochsPerSpan, epochs = 3000, 4, 40
	m := &model{t: t, fs: vfs.NewCrashableMem(), now: 1_000_000_000}
	for range 2 {
		m.counters = append(m.counters, &modelCounter{windows: []slide.Window{{Name: "h", Millis: 3_600_000}}})
	}
	m.open()
	for i := range epochs {
		m.now += 3_600_000 / epochsPerSpan
		for j := range 2 * perEpoch {
			m.log = append(m.log, modelEvent{counter: j % 2, key: i*perEpoch + j/2, entry: slide.Entry{TS: m.now, FP: uint64(j)}})
		}
		m.catchUp()
		m.commit()
	}
	if roots, _ := m.stored(); roots > 3*2*perEpoch*epochsPerSpan {
		t.Errorf("got %d keys of %d; want at most three spans of them, %d", roots, 2*perEpoch*epochs, 3*2*perEpoch*epochsPerSpan)
	}
	m.must(m.store.Close())
}

// Few remembered ids: answers of dense keys may be brackets, and must be true ones.
func TestModelForgets(t *testing.T) {
	eachSeed(t, 6, func(t *testing.T, r *rand.Rand) {
		m := newModel(t, r, 1)
		m.limits.DedupIDs = 20 + r.IntN(50)
		m.must(m.store.Close())
		m.open()
		for range 120 {
			m.step()
			m.checkSome(3)
		}
		m.must(m.store.Close())
	})
}

// A key that gets a few arrivals in every epoch becomes dense soon, and its pending arrivals stay few.
func TestBusyKeysAreFolded(t *testing.T) {
	var folds int
	o := Options{FS: vfs.NewMem(), Dir: "s", Events: Listener{Committed: func(c Commit) { folds += c.Folds }}}
	b := newBench(t, o)
	longest := 0
	for i := range int64(2000) {
		b.lane.Lock()
		b.add(1, 1, slide.Entry{TS: 1_700_000_000_000 + i, FP: uint64(i) * 0x9e3779b97f4a7c15})
		b.lane.Unlock()
		b.commit(t)
		value, err := b.store.get(nil, b.keyOf(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, len(value))
	}
	value, err := b.store.get(nil, b.keyOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	if !slide.Dense(value) || folds < 2000/foldCheckMax || folds > 200 || longest > 4<<10 {
		t.Errorf("got dense %v, %d folds, values of up to %d bytes; want it dense, a read in about %d arrivals, and short values",
			slide.Dense(value), folds, longest, foldCheckMax)
	}
}
