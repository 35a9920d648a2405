package counter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/slide"
	"github.com/weirstream/weir/internal/state"
)

// Look-ups during ingestion: what was acknowledged before one is in its bracket, what was not sent before it ended is
// not, and no window counts less than a shorter one.
func TestLookupWhileCounting(t *testing.T) {
	n := newNode(t, testDefinitions()[:2]...)
	n.limits = slide.Limits{SparseMax: 16, SliceMax: 16, PendingMin: 16, PendingMax: 64}
	n.open()
	const rounds, each = 150, 40
	var sent, acked atomic.Int64
	var wg sync.WaitGroup
	for _, q := range []struct {
		counter string
		key     []string
	}{{"pair", []string{"u1", "a1"}}, {"ads", []string{"a1"}}} {
		wg.Go(func() {
			var a Answer
			for last := int64(0); last < rounds*each; {
				lower := acked.Load()
				n.lookup(q.counter, q.key, testStart+100_000, &a)
				upper := sent.Load()
				long := a.Windows[len(a.Windows)-1]
				if long.Max < lower || long.Count > upper || long.Count < last {
					t.Errorf("%s: got %+v; want %d..%d, and at least %d", q.counter, long, lower, upper, last)
					return
				}
				for i := 1; i < len(a.Windows); i++ {
					if a.Windows[i-1].Count > a.Windows[i].Count {
						t.Errorf("%s: got %+v; want longer windows to count no less", q.counter, a.Windows)
						return
					}
				}
				last = long.Count
			}
		})
	}
	for round := range rounds {
		var samples []sample
		for i := range each {
			id := fmt.Sprint(round*each + i)
			samples = append(samples, sample{user: "u1", ad: "a1", id: id, kind: "view", ts: testStart + int64(round*each+i)})
		}
		sent.Add(each)
		n.append(eventlog.Ack(round%2), samples...)
		acked.Add(each)
		if round%50 == 25 {
			n.must(n.set.Flush())
		}
	}
	wg.Wait()
	n.close()
}

// While the log takes events, a counter is added: it is refused until it is built, and complete from then on.
func TestBuildWhileLive(t *testing.T) {
	defs := testDefinitions()
	n := newNode(t, defs[0])
	n.open()
	tr := &traffic{r: rand.New(rand.NewPCG(1, 1)), now: testStart}
	for range 60 {
		n.append(eventlog.AckMemory, tr.some(300)...)
	}
	n.must(n.set.Close())
	n.defs = defs
	n.openSet()
	for range 20 {
		n.append(eventlog.AckDisk, tr.some(50)...)
	}
	for i := range defs {
		truths := n.truths(&defs[i])
		for user := range 6 {
			n.check(&defs[i], truths, sample{user: fmt.Sprint("u", user), ad: "a1", kind: "view"}, tr.now)
		}
	}
	for _, info := range n.set.Info() {
		if info.Building || info.Progress != 1 {
			t.Errorf("got %+v; want it built", info)
		}
	}
	n.close()
}

func TestBuildingIsRefused(t *testing.T) {
	n := newNode(t)
	n.open()
	n.append(eventlog.AckDisk, (&traffic{r: rand.New(rand.NewPCG(1, 1)), now: testStart}).some(1000)...)
	n.must(n.set.Close())
	n.defs = testDefinitions()
	o := n.options()
	built := make(chan struct{}, 2*len(n.defs))
	o.Events.Built = func(string, int) { built <- struct{}{} }
	n.openSetPaused(o, func(s *Set) {
		c, _ := s.Counter("pair")
		var building *BuildingError
		err := c.Lookup(context.Background(), [][]byte{[]byte("u1"), []byte("a1")}, testStart, new(Answer))
		if !errors.As(err, &building) || building.Progress != 0 || !errors.Is(err, ErrBuilding) {
			t.Fatalf("got %v; want a BuildingError at 0", err)
		}
		if info := c.Info(); !info.Building || info.Progress != 0 {
			t.Fatalf("got %+v; want it building", info)
		}
	})
	for range cap(built) {
		<-built
	}
	n.must(n.set.WaitCaughtUp(context.Background()))
	if !n.set.CaughtUp() {
		t.Fatal("got false; want it caught up")
	}
	n.close()
}

// openSetPaused opens a set and calls f before it starts counting.
func (n *node) openSetPaused(o Options, f func(*Set)) {
	n.t.Helper()
	s, err := open(o)
	n.must(err)
	f(s)
	s.start()
	n.set = s
}

// A look-up that arrives before its events are applied says how many there are, and allows for them.
func TestBehind(t *testing.T) {
	n := newNode(t, testDefinitions()[0])
	n.openLog()
	n.append(eventlog.AckDisk, sample{user: "u1", ad: "a1", id: "1", kind: "view", ts: testStart})
	n.openSet()
	var a Answer
	n.lookup("pair", []string{"u1", "a1"}, testStart, &a)
	n.must(n.set.Close())
	n.openSetPaused(n.options(), func(s *Set) {
		n.append(eventlog.AckDisk,
			sample{user: "u1", ad: "a1", id: "2", kind: "view", ts: testStart}, sample{user: "u1", ad: "a1", id: "3", kind: "view", ts: testStart})
		n.set = s
		n.lookup("pair", []string{"u1", "a1"}, testStart, &a)
		if w := a.Windows[0]; a.Behind != 2 || w.Count != 1 || w.Max != 3 || w.Exact {
			t.Fatalf("got %+v; want 1..3, 2 behind", a)
		}
	})
	n.lookup("pair", []string{"u1", "a1"}, testStart, &a)
	for a.Behind > 0 { // on a machine that is slower than AppliedWaitMax
		n.lookup("pair", []string{"u1", "a1"}, testStart, &a)
	}
	if w := a.Windows[0]; w.Count != 3 || !w.Exact {
		t.Fatalf("got %+v; want 3", a)
	}
	n.close()
}

// A log that lost what was counted is refused, not counted twice.
func TestStateAheadOfLog(t *testing.T) {
	n := newNode(t, testDefinitions()[0])
	n.open()
	n.append(eventlog.AckDisk, sample{user: "u1", ad: "a1", id: "1", kind: "view", ts: testStart})
	n.must(n.set.WaitCaughtUp(context.Background()))
	n.close()
	n.must(n.fs.RemoveAll("log"))
	n.openLog()
	_, err := Open(n.options())
	var ahead *state.AheadError
	if !errors.As(err, &ahead) || ahead.Marker != 1 || ahead.End != 0 || !errors.Is(err, state.ErrAhead) {
		t.Fatalf("got %v; want an AheadError", err)
	}
	n.must(n.log.Close(context.Background()))
}

func TestWhatIsNotCounted(t *testing.T) {
	defs := testDefinitions()
	defs[0].Where = `type == "view"`
	n := newNode(t, defs[0], defs[1])
	n.open()
	n.append(eventlog.AckDisk,
		sample{user: "u1", ad: "a1", id: "1", kind: "view", ts: testStart},
		sample{user: "u1", ad: "a1", id: "2", kind: "click", ts: testStart},
		sample{user: "u1", ad: "", id: "3", kind: "view", ts: testStart},
		sample{user: "u1", ad: "a1", id: "4", kind: "view", ts: testStart - 3_600_000},
		sample{user: "u1", ad: "a1", id: "5", kind: "view", ts: testStart - 3_599_999})
	var a Answer
	n.lookup("pair", []string{"u1", "a1"}, testStart, &a)
	if w := a.Windows[2]; w.Count != 2 || !w.Exact || a.CompleteSince != testStart-3_599_999 {
		t.Errorf("got %+v; want 2, complete since %d", a, testStart-3_599_999)
	}
	info := n.set.Info()
	sum := ShareInfo{}
	for _, p := range info[0].Partitions {
		sum.Counted += p.Counted
		sum.Late += p.Late
		sum.SkippedWhere += p.SkippedWhere
		sum.SkippedKey += p.SkippedKey
	}
	if sum.Counted != 2 || sum.Late != 1 || sum.SkippedWhere != 1 || sum.SkippedKey != 1 || !info[0].Local || info[1].Local {
		t.Errorf("got %+v; want 2 counted, 1 late, 1 skipped by where, 1 by key", sum)
	}
	if a.NextExpiry != testStart+1 {
		t.Errorf("next expiry: got %d; want %d", a.NextExpiry, testStart+1)
	}
	c, _ := n.set.Counter("pair")
	for _, key := range [][][]byte{{[]byte("u1")}, {[]byte("u1"), make([]byte, state.KeyPartBytesMax+1)}} {
		if err := c.Lookup(context.Background(), key, testStart, &a); !errors.Is(err, ErrKeyParts) {
			t.Errorf("got %v; want ErrKeyParts", err)
		}
	}
	n.close()
	if err := c.Lookup(context.Background(), [][]byte{nil, nil}, testStart, &a); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v; want ErrClosed", err)
	}
}

// Where retention has removed the beginning, a rebuilt counter says since when it is complete.
func TestRebuildAfterTrim(t *testing.T) {
	n := newNode(t)
	n.open()
	n.append(eventlog.AckDisk, sample{user: "u1", ad: "a1", id: "1", kind: "view", ts: testStart + 5000})
	n.clock.Advance(2 * time.Hour.Milliseconds())
	for i := range 3000 {
		n.append(eventlog.AckDisk, sample{user: "u1", ad: "a1", id: fmt.Sprint("x", i), kind: "view", ts: testStart + 6000})
	}
	n.must(n.log.Trim(n.clock.NowMS()))
	trimmed := false
	lost := int64(0)
	for i := range testPartitions {
		if first, maxTime := n.log.Partition(i).Trimmed(); first > 0 {
			trimmed, lost = true, maxTime
		}
	}
	if !trimmed {
		t.Fatal("retention removed nothing")
	}
	n.must(n.set.Close())
	n.defs = testDefinitions()[:1]
	n.openSet()
	var a Answer
	n.lookup("pair", []string{"u1", "a1"}, testStart+6000, &a)
	if a.CompleteSince != lost+1 || a.Windows[0].Count == 0 {
		t.Fatalf("got %+v; want it complete since %d", a, lost+1)
	}
	n.close()
}

// Retention that comes before the counters run leaves what they have not counted.
func TestTrimWhileOpening(t *testing.T) {
	n := newNode(t, testDefinitions()[0])
	n.openLog()
	n.append(eventlog.AckDisk, sample{user: "u1", ad: "a1", id: "1", kind: "view", ts: testStart})
	n.must(n.log.Close(context.Background())) // in tables from now on
	n.openLog()
	n.openSetPaused(n.options(), func(*Set) {
		n.clock.Advance(2 * time.Hour.Milliseconds())
		n.must(n.log.Trim(n.clock.NowMS()))
	})
	var a Answer
	n.lookup("pair", []string{"u1", "a1"}, testStart, &a)
	if w := a.Windows[0]; w.Count != 1 || !w.Exact || a.CompleteSince != slide.CompleteAlways {
		t.Errorf("got %+v; want the one event, exactly", a)
	}
	n.close()
}

// An event from far in the future, on a stream that accepts such ones, counts at its time and makes nobody late.
func TestFutureEventsDoNotMoveTheHorizon(t *testing.T) {
	const year = 365 * 24 * 3_600_000
	for name, ids := range map[string][]string{"first": {"far", "1", "2"}, "between": {"1", "far", "2"}} {
		n := newNode(t, testDefinitions()[0])
		n.openLog()
		o := n.options()
		o.Streams[0].AheadMS = 300_000
		n.openSetPaused(o, func(*Set) {})
		for _, id := range ids {
			s := sample{user: "u1", ad: "a1", id: id, kind: "view", ts: testStart}
			if id == "far" {
				s.ts += year
			}
			n.append(eventlog.AckDisk, s)
		}
		n.must(n.set.WaitCaughtUp(context.Background()))
		for asOf, want := range map[int64]int64{testStart: 2, testStart + year - 1: 0, testStart + year: 1} {
			var a Answer
			n.lookup("pair", []string{"u1", "a1"}, asOf, &a)
			if w := a.Windows[2]; w.Count != want || !w.Exact || a.CompleteSince != slide.CompleteAlways {
				t.Errorf("%s, at %d: got %+v; want %d, exactly", name, asOf-testStart, a, want)
			}
		}
		n.close()
	}
}

func TestDefinitionsAreChecked(t *testing.T) {
	good := testDefinitions()[0]
	for name, spoil := range map[string]func(*Definition){
		"no name":       func(d *Definition) { d.Name = "" },
		"no stream":     func(d *Definition) { d.Stream = "other" },
		"no key":        func(d *Definition) { d.Key = nil },
		"bad key":       func(d *Definition) { d.Key = []string{"data..x"} },
		"bad where":     func(d *Definition) { d.Where = `type ==` },
		"no window":     func(d *Definition) { d.Windows = nil },
		"short window":  func(d *Definition) { d.Windows = windows(999) },
		"same window":   func(d *Definition) { d.Windows = windows(1000, 1000) },
		"negative late": func(d *Definition) { d.LatenessMS = -1 },
		"ids":           func(d *Definition) { d.DedupIDs = -1 },
	} {
		n := newNode(t)
		n.openLog()
		d := good
		spoil(&d)
		n.defs = []Definition{d}
		if s, err := Open(n.options()); err == nil {
			t.Errorf("%s: got no error", name)
			n.must(s.Close())
		}
		n.must(n.log.Close(context.Background()))
	}
}

func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	n := newNode(t, testDefinitions()...)
	n.epoch = -1
	n.open()
	tr := &traffic{r: rand.New(rand.NewPCG(1, 1)), now: testStart}
	n.append(eventlog.AckDisk, tr.some(100)...)
	n.must(n.set.WaitCaughtUp(context.Background()))
	n.must(n.set.Flush())

	c, _ := n.set.Counter("pair")
	key := [][]byte{[]byte("u1"), []byte("a1")}
	var a Answer
	if got := testing.AllocsPerRun(1000, func() { n.must(c.Lookup(context.Background(), key, testStart, &a)) }); got != 0 {
		t.Errorf("got %v allocations a look-up; want none", got)
	}

	var b event.Batch
	for i, batches := 0, n.batches(tr.some(500)); i < len(batches); i++ {
		if len(batches[i].Items) > len(b.Items) {
			b = batches[i]
		}
	}
	p := n.set.parts[0]
	frame := eventlog.Frame{First: p.waiters.applied.Load(), Count: len(b.Items), Records: b.Records}
	feed := func() {
		p.lane.Lock()
		frame.First = p.lane.Counters()[0].Next()
		p.lane.Unlock()
		n.must(p.live.feed(context.Background(), frame))
	}
	feed()
	n.must(func() error { _, err := p.lane.Commit(); return err }())
	if got := testing.AllocsPerRun(1, feed); got != 0 {
		t.Errorf("got %v allocations for %d events; want none", got, frame.Count)
	}
}

func BenchmarkFeed(b *testing.B) {
	n := newNode(b, testDefinitions()[0])
	n.epoch, n.delta = -1, 16<<20
	n.open()
	r := rand.New(rand.NewPCG(1, 1))
	var samples []sample
	for i := range 10_000 {
		samples = append(samples, sample{user: fmt.Sprint("user-", r.IntN(100_000)), ad: fmt.Sprint("a", r.IntN(1000)), id: fmt.Sprint(i), kind: "view", ts: testStart})
	}
	batch := n.batches(samples)[0]
	p := n.set.parts[0]
	b.ReportAllocs()
	for b.Loop() {
		frame := eventlog.Frame{First: p.lane.Next(), Count: len(batch.Items), Records: batch.Records}
		n.must(p.live.feed(b.Context(), frame))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(batch.Items)), "ns/event")
}
