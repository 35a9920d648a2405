package state

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/slide"
)

// bench is a store with one counter of user and ad.
type bench struct {
	store   *Store
	lane    *Lane
	counter *Counter
	windows []slide.Window
	next    int64
	key     []byte
}

func newBench(t testing.TB, o Options) *bench {
	t.Helper()
	b := &bench{windows: []slide.Window{{Name: "1m", Millis: 60_000}, {Name: "1h", Millis: 3_600_000}, {Name: "1d", Millis: 86_400_000}, {Name: "7d", Millis: 7 * 86_400_000}}}
	store, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	e, err := store.Create(Entry{Name: "c", Live: true, LongestMS: b.windows[3].Millis, LatenessMS: 86_400_000}, 2, 0, slide.NoHorizon)
	if err != nil {
		t.Fatal(err)
	}
	if b.counter, err = store.Counter(e, slide.Limits{}); err != nil {
		t.Fatal(err)
	}
	if b.lane, err = store.NewLane(LaneOptions{Counters: []*Counter{b.counter}, Lookups: true}); err != nil {
		t.Fatal(err)
	}
	b.store = store
	return b
}

func (b *bench) keyOf(user uint64, ad uint32) []byte {
	b.key = AppendCounterID(b.key[:0], b.counter.ID)
	b.key = append(b.key, 8)
	b.key = binary.BigEndian.AppendUint64(b.key, user)
	b.key = append(b.key, 4)
	b.key = binary.BigEndian.AppendUint32(b.key, ad)
	return b.key
}

// add takes one event in, as the loop does for a batch. false: no room.
func (b *bench) add(user uint64, ad uint32, e slide.Entry) bool {
	key := b.keyOf(user, ad)
	if !b.lane.Room(1, len(key)) {
		return false
	}
	if b.counter.Accept(e.TS) {
		b.lane.Add(HashKey(key), key, e)
	}
	b.next++
	b.lane.Advance(b.next)
	return true
}

func (b *bench) commit(t testing.TB) {
	t.Helper()
	if _, err := b.lane.Commit(); err != nil {
		t.Fatal(err)
	}
}

// fill adds n events to random users, with three events a key.
func (b *bench) fill(t testing.TB, r *rand.Rand, n, users int, from, span int64) {
	t.Helper()
	for i := 0; i < n; {
		b.lane.Lock()
		room := true
		for ; i < n && room; i++ {
			user := r.Uint64N(uint64(users)) * 0x9e3779b97f4a7c15
			if room = b.add(user, uint32(user>>32)%1000, slide.Entry{TS: from + int64(r.Uint64N(uint64(span))), FP: r.Uint64()}); !room {
				i--
			}
		}
		b.lane.Unlock()
		if !room {
			b.commit(t)
		}
	}
	b.commit(t)
}

func TestNoAllocations(t *testing.T) {
	b := newBench(t, Options{FS: vfs.NewMem(), Dir: "s", DeltaBytes: 8 << 20})
	r := rand.New(rand.NewPCG(1, 2))
	b.fill(t, r, 1000, 300, 1_700_000_000_000, 1000)
	b.lane.Lock()
	added := testing.AllocsPerRun(20_000, func() {
		b.add(r.Uint64N(1<<20), 7, slide.Entry{TS: 1_700_000_001_000, FP: r.Uint64()})
	})
	b.lane.Unlock()
	var s Scratch
	var a slide.Answer
	q := slide.Query{Windows: b.windows, AsOf: 1_700_000_002_000}
	user := uint64(5)
	user *= 0x9e3779b97f4a7c15
	key := append([]byte(nil), b.keyOf(user, uint32(user>>32)%1000)...)
	looked := testing.AllocsPerRun(1000, func() {
		if _, err := b.lane.Lookup(b.counter, key, &q, &s, &a); err != nil {
			t.Fatal(err)
		}
	})
	if !raceEnabled && (added != 0 || looked != 0) {
		t.Fatalf("got %v allocations an event, %v a look-up; want none", added, looked)
	}
}

func BenchmarkAdd(b *testing.B) {
	for _, users := range []int{1000, 10_000_000} {
		b.Run(fmt.Sprint(users), func(b *testing.B) {
			s := newBench(b, Options{FS: vfs.NewMem(), Dir: "s"})
			r := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			b.ResetTimer()
			s.fill(b, r, b.N, users, 1_700_000_000_000, 3_600_000)
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	const users = 200_000
	for _, c := range []struct {
		name  string
		users int
		cache int
	}{{"cached", 1000, 64 << 20}, {"uncached", users, -1}, {"unknown", 1 << 40, -1}} {
		b.Run(c.name, func(b *testing.B) {
			s := newBench(b, Options{FS: vfs.NewMem(), Dir: "s", LookupBytes: c.cache})
			r := rand.New(rand.NewPCG(1, 2))
			s.fill(b, r, 3*users, users, 1_700_000_000_000, 3_600_000)
			if err := s.store.Compact(b.Context()); err != nil {
				b.Fatal(err)
			}
			var scratch Scratch
			var a slide.Answer
			q := slide.Query{Windows: s.windows, AsOf: 1_700_003_600_000}
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				user := r.Uint64N(uint64(c.users)) * 0x9e3779b97f4a7c15
				if _, err := s.lane.Lookup(s.counter, s.keyOf(user, uint32(user>>32)%1000), &q, &scratch, &a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
