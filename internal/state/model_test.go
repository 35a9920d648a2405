package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/slide"
)

// The model: a log of events kept as a list, read by brute force, against a store that is flushed, compacted, closed,
// and crashed between any two steps.

type modelEvent struct {
	counter int
	key     int
	entry   slide.Entry
}

type modelCounter struct {
	windows  []slide.Window
	lateness int64
	entry    Entry
	counter  *Counter
}

func (m *modelCounter) longest() int64 { return m.windows[len(m.windows)-1].Millis }

type model struct {
	t        *testing.T
	r        *rand.Rand
	limits   slide.Limits
	fs       *vfs.MemFS
	log      []modelEvent
	counters []*modelCounter
	now      int64

	store   *Store
	lane    *Lane
	scratch Scratch
}

// seeds returns the seeds that a random test runs: WEIR_SEED=n replays one, WEIR_SOAK=1 runs many.
func seeds(t *testing.T, usual int) []uint64 {
	if text := os.Getenv("WEIR_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{seed}
	}
	if os.Getenv("WEIR_SOAK") != "" {
		usual *= 100
	}
	list := make([]uint64, usual)
	for i := range list {
		list[i] = rand.Uint64()
	}
	return list
}

func eachSeed(t *testing.T, usual int, f func(t *testing.T, r *rand.Rand)) {
	for _, seed := range seeds(t, usual) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("replay: WEIR_SEED=%d go test -run '%s' ./internal/state", seed, t.Name())
				}
			})
			f(t, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

func newModel(t *testing.T, r *rand.Rand, counters int) *model {
	m := &model{t: t, r: r, fs: vfs.NewCrashableMem(), now: 1_000_000}
	m.limits = slide.Limits{SparseMax: 4 + r.IntN(8), SliceMax: 4 + r.IntN(8), PendingMin: 2 + r.IntN(6), PendingMax: 8 + r.IntN(20)}
	for i := range counters {
		m.counters = append(m.counters, &modelCounter{
			windows:  []slide.Window{{Name: "a", Millis: 1000}, {Name: "b", Millis: 60_000}, {Name: "c", Millis: 3_600_000 * int64(i+1)}},
			lateness: int64(r.IntN(2)) * 600_000,
		})
	}
	m.open()
	return m
}

func (m *model) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) open() {
	m.t.Helper()
	m.must(m.tryOpen(Options{FS: m.fs}))
	m.catchUp()
}

// tryOpen opens the store and a lane with all counters, creating those that are not there.
func (m *model) tryOpen(o Options) (err error) {
	o.Dir, o.MemtableBytes, o.DeltaBytes, o.LookupBytes = "state", 256<<10, 64<<10, 1<<16
	if m.store, err = Open(o); err != nil {
		return err
	}
	known := map[string]Entry{}
	for _, e := range m.store.Catalog() {
		known[e.Name] = e
	}
	next := int64(len(m.log))
	var list []*Counter
	for i, c := range m.counters {
		name := fmt.Sprint("c", i)
		e, ok := known[name]
		if !ok {
			e = Entry{Name: name, Live: true, LongestMS: c.longest(), LatenessMS: c.lateness}
			if e, err = m.store.Create(e, 1+i%2, 0, slide.NoHorizon); err != nil {
				return err
			}
		}
		c.entry = e
		if c.counter, err = m.store.Counter(e, m.limits); err != nil {
			return err
		}
		next = min(next, c.counter.Next())
		list = append(list, c.counter)
	}
	m.lane, err = m.store.NewLane(LaneOptions{Next: next, Counters: list, Lookups: true, Durable: func() int64 { return int64(len(m.log)) }})
	return err
}

func (m *model) key(counter, key int) []byte {
	id := m.counters[counter].entry.ID
	part := []byte(fmt.Sprint("key", key))
	if KeyParts(id) == 2 {
		return AppendKey(nil, id, part, []byte{byte(key)})
	}
	return AppendKey(nil, id, part)
}

// catchUp feeds the lane with what the log holds.
func (m *model) catchUp() {
	m.t.Helper()
	m.must(m.tryCatchUp())
}

func (m *model) tryCatchUp() error {
	for m.lane.Next() < int64(len(m.log)) {
		m.lane.Lock()
		next := m.lane.mu.next
		for next < int64(len(m.log)) && m.lane.Room(1, 100) {
			e := m.log[next]
			c := m.counters[e.counter].counter
			if next >= c.Next() && c.Accept(e.entry.TS) {
				key := m.key(e.counter, e.key)
				m.lane.Add(HashKey(key), key, e.entry)
			}
			next++
		}
		full := next < int64(len(m.log))
		m.lane.Advance(next)
		m.lane.Unlock()
		if full {
			if _, err := m.lane.Commit(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *model) commit() {
	m.t.Helper()
	_, err := m.lane.Commit()
	m.must(err)
	if p := m.store.Persisted(); p > m.lane.committed {
		m.t.Fatalf("persisted %d > committed %d", p, m.lane.committed)
	}
}

// commitSlowly is commit with look-ups between its steps, and events that come meanwhile.
func (m *model) commitSlowly() {
	m.t.Helper()
	m.store.writer.Lock()
	defer m.store.writer.Unlock()
	e := m.lane.freeze()
	if e == nil {
		return
	}
	m.checkSome(10)
	m.append(m.r.IntN(20))
	m.catchUp()
	m.checkSome(10)
	m.must(m.lane.write(e))
	m.checkSome(20)
	m.lane.publish(e)
	m.checkSome(10)
}

// append adds events to the log: to few keys, some of them twice, some late, some in bursts.
func (m *model) append(n int) {
	for range n {
		if m.r.IntN(8) == 0 {
			m.now += int64(m.r.IntN(200_000))
		}
		if m.r.IntN(400) == 0 {
			m.now += int64(m.r.IntN(8_000_000))
		}
		e := modelEvent{counter: m.r.IntN(len(m.counters)), key: int(m.r.ExpFloat64() * 3)}
		e.entry = slide.Entry{TS: m.now - int64(m.r.ExpFloat64()*20_000), FP: m.r.Uint64()}
		if len(m.log) > 0 && m.r.IntN(6) == 0 {
			old := m.log[len(m.log)-1-m.r.IntN(min(len(m.log), 200))]
			ts := old.entry.TS
			if m.limits.DedupIDs == 0 && m.r.IntN(3) == 0 {
				ts = e.entry.TS // a copy with another time, which only its id gives away
			}
			e = old
			e.entry.TS = ts
		}
		m.log = append(m.log, e)
	}
}

// truth returns the accepted events of a key by id, and H.
func (m *model) truth(counter, key int) (byID map[uint64]int64, h int64, dropped bool) {
	c := m.counters[counter]
	span := c.longest() + c.lateness
	h = slide.NoHorizon
	byID = map[uint64]int64{}
	var oldest int64
	seen := false
	for _, e := range m.log {
		if e.counter != counter {
			continue
		}
		if !seen || e.entry.TS < oldest {
			oldest, seen = e.entry.TS, true
		}
		if h != slide.NoHorizon && e.entry.TS <= h {
			continue
		}
		h = max(h, e.entry.TS-span)
		if ts, ok := byID[e.entry.FP]; e.key == key && (!ok || ts < e.entry.TS) {
			byID[e.entry.FP] = e.entry.TS
		}
	}
	return byID, h, seen && oldest <= h
}

func (m *model) check(counter, key int, asOf int64) {
	m.t.Helper()
	c := m.counters[counter]
	q := slide.Query{Windows: c.windows, AsOf: asOf}
	var a slide.Answer
	_, err := m.lane.Lookup(c.counter, m.key(counter, key), &q, &m.scratch, &a)
	m.must(err)
	byID, h, dropped := m.truth(counter, key)
	if q.Horizon != h {
		m.t.Fatalf("H: got %d; want %d", q.Horizon, h)
	}
	for i, w := range c.windows {
		count := int64(0)
		for _, ts := range byID {
			if asOf-w.Millis < ts && ts <= asOf {
				count++
			}
		}
		got := a.Windows[i]
		complete := !dropped || asOf-w.Millis >= h
		if got.Complete != complete {
			m.t.Fatalf("counter %d key %d at %d window %s: complete %v; want %v (H %d)", counter, key, asOf, w.Name, got.Complete, complete, h)
		}
		if !complete {
			continue
		}
		if got.Count > count || got.Max < count || got.Exact != (got.Count == got.Max) {
			m.t.Fatalf("counter %d key %d at %d window %s: got %+v; want %d", counter, key, asOf, w.Name, got, count)
		}
		if !got.Exact && m.limits.DedupIDs == 0 {
			m.t.Fatalf("counter %d key %d at %d window %s: got %+v; want it exact", counter, key, asOf, w.Name, got)
		}
	}
}

func (m *model) checkSome(n int) {
	m.t.Helper()
	for range n {
		counter := m.r.IntN(len(m.counters))
		asOf := m.now - int64(m.r.ExpFloat64()*100_000) + int64(m.r.IntN(1000))
		m.check(counter, m.r.IntN(20), asOf)
	}
}

// crash goes on with what the disk would hold after a power cut.
func (m *model) crash() {
	m.t.Helper()
	clone := m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: m.r.IntN(101), RNG: m.r})
	m.must(m.store.Close())
	m.fs = clone
	m.open()
}

func (m *model) step() {
	m.t.Helper()
	switch n := m.r.IntN(20); {
	case n < 9:
		m.append(1 + m.r.IntN(60))
		m.catchUp()
	case n < 12:
		m.commit()
	case n < 14:
		m.commitSlowly()
	case n < 16:
		m.must(m.store.Flush())
	case n < 17:
		m.must(m.store.Compact(context.Background()))
	case n < 18:
		m.commit()
		m.must(m.store.Close())
		m.open()
	default:
		m.crash()
	}
}

func TestModel(t *testing.T) {
	eachSeed(t, 12, func(t *testing.T, r *rand.Rand) {
		m := newModel(t, r, 2)
		for range 120 {
			m.step()
			m.checkSome(3)
		}
		m.must(m.store.Close())
		if err := m.store.Close(); err != nil {
			t.Fatal(err)
		}
		q, a := slide.Query{Windows: m.counters[0].windows}, slide.Answer{}
		if _, err := m.lane.Lookup(m.counters[0].counter, m.key(0, 0), &q, &m.scratch, &a); !errors.Is(err, ErrClosed) {
			t.Fatalf("got %v; want ErrClosed", err)
		}
	})
}
