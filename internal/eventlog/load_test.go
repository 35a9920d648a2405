package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/weirstream/weir/internal/event"
)

// Appenders, followers and wanderers at once, through rings that spill: every reader sees every event once, in order.
func TestReadersUnderLoad(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.RingBytes = int64(o.Partitions) * ringBytesMin(o.EventBytesMax)
	l := mustOpen(t, o)
	seed := seedOf(t)
	const writers = 4
	each := soak(150, 5000)
	var producing, reading sync.WaitGroup
	for w := range writers {
		producing.Add(1)
		go func() {
			defer producing.Done()
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			for n := range each {
				var samples []sample
				for i := range 1 + rng.IntN(40) {
					s := numbered(w*10_000_000 + n*50 + i)
					s.data = strings.Repeat("z", rng.IntN(600))
					samples = append(samples, s)
				}
				if err := l.Append(context.Background(), batchesOf(2, samples...), Ack(rng.IntN(2))); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	var done atomic.Bool
	got := make([][]string, 2*4)
	for i := range got {
		reading.Add(1)
		go func() {
			defer reading.Done()
			var err error
			if got[i], err = follow(l.Partition(i%2), i/2, &done); err != nil {
				t.Error(err)
			}
		}()
	}
	producing.Wait()
	done.Store(true)
	reading.Wait()
	for i := range got {
		if fmt.Sprint(got[i]) != fmt.Sprint(got[i%2]) || int64(len(got[i])) != l.Partition(i%2).Frontiers().Appended {
			t.Fatalf("reader %d read %d events, others %d of %d", i, len(got[i]), len(got[i%2]), l.Partition(i%2).Frontiers().Appended)
		}
	}
	if s := l.Partition(0).Stats(); s.Spills == 0 {
		t.Errorf("no spills: %+v", s)
	}
	mustClose(t, l)
}

// follow reads a partition until the producers are done: habits 0 and 1 up to the appended frontier, 2 and 3 up to the
// durable one; the odd ones as scans.
func follow(p *Partition, habit int, done *atomic.Bool) (ids []string, err error) {
	r := p.NewReader(0)
	if habit%2 == 1 {
		r = p.NewScan(0, ScanOptions{})
	}
	defer r.Close()
	var e event.Event
	for {
		ended := done.Load()
		limit := p.Frontiers().Appended
		if habit >= 2 && !ended {
			limit = p.Frontiers().Durable
		}
		at := r.Offset()
		frame, ok, err := r.Next(limit)
		if err != nil {
			return nil, err
		}
		if !ok {
			if ended {
				return ids, nil
			}
			runtime.Gosched()
			continue
		}
		if frame.First != at {
			return nil, fmt.Errorf("habit %d: read %d at %d", habit, frame.First, at)
		}
		for records := frame.Records; len(records) > 0; {
			if records, err = e.Decode(records); err != nil {
				return nil, err
			}
			ids = append(ids, string(e.ID))
		}
		if int64(len(ids)) != r.Offset() {
			return nil, fmt.Errorf("habit %d: %d events up to %d", habit, len(ids), r.Offset())
		}
	}
}

// gate lets operations through, or holds them until it opens.
type gate struct {
	match func(errorfs.Op) bool
	mu    sync.Mutex
	shut  chan struct{}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

func (g *gate) inject(op errorfs.Op) error {
	if !g.match(op) {
		return nil
	}
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
	return nil
}

func walWrite(op errorfs.Op) bool {
	return strings.HasSuffix(op.Path, ".log") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite
}

func tableWrite(op errorfs.Op) bool {
	return strings.HasSuffix(op.Path, ".sst") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite
}

// stuck is a log of one partition whose disk stands still for the operations that match.
func stuck(t *testing.T, o Options, match func(errorfs.Op) bool) (*Log, *gate) {
	t.Helper()
	g := &gate{match: match}
	o.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(g.inject))
	l := mustOpen(t, o)
	g.close()
	return l, g
}

// sendUntilRefused appends events of 5 kB, each from its own goroutine, until one is refused. It returns how many were
// admitted; their answers come later.
func sendUntilRefused(t *testing.T, l *Log) (admitted int, answers chan error) {
	t.Helper()
	answers = make(chan error, 10_000)
	for n := range cap(answers) {
		s := numbered(n)
		s.data = strings.Repeat("q", 5000)
		queued := l.Partition(0).queue.admitted.Load()
		refused := l.Partition(0).count.overloads.Load()
		go func() { answers <- l.Append(context.Background(), batchesOf(1, s), AckDisk) }()
		for l.Partition(0).queue.admitted.Load() == queued {
			if l.Partition(0).count.overloads.Load() != refused {
				return n, answers
			}
			runtime.Gosched()
		}
	}
	t.Fatal("nothing was refused")
	return 0, nil
}

// The disk stands still: the queue fills, acks are slow, then appends are refused; when it goes on, exactly what was
// admitted is stored.
func TestOverload(t *testing.T) {
	for _, c := range []struct {
		name  string
		match func(errorfs.Op) bool
	}{{"no fsync", walWrite}, {"no flush, so the ring fills", tableWrite}} {
		t.Run(c.name, func(t *testing.T) {
			o := testOptions(nil)
			o.Partitions, o.QueueBytesMax, o.RingBytes = 1, 100_000, ringBytesMin(o.EventBytesMax)
			told := 0
			o.Events.Overloaded = func(int) { told++ }
			l, g := stuck(t, o, c.match)
			p := l.Partition(0)
			admitted, answers := sendUntilRefused(t, l)
			g.open()
			refused := 0
			for range admitted + 1 {
				err := <-answers
				var overload *Overload
				switch {
				case errors.As(err, &overload):
					refused++
					if !errors.Is(err, ErrOverloaded) || overload.RetryAfter < RetryAfterMin || overload.RetryAfter > RetryAfterMax {
						t.Fatalf("refused with %v", err)
					}
				case err != nil:
					t.Fatal(err)
				}
			}
			s := p.Stats()
			if refused != 1 || told != 1 || s.Overloads != 1 || s.QueueBytes != 0 || s.Frontiers.Durable != int64(admitted) {
				t.Fatalf("%d admitted, %d refused, %d told, stats %+v", admitted, refused, told, s)
			}
			r := p.NewReader(0)
			if got := readAll(t, r, math.MaxInt64); len(got) != admitted {
				t.Fatalf("%d events; want %d", len(got), admitted)
			}
			r.Close()
			mustClose(t, l)
		})
	}
}

// One partition's refusal refuses the whole request and takes nothing from the others.
func TestOverloadIsAllOrNothing(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.QueueBytesMax = 2000
	l := mustOpen(t, o)
	l.Partition(1).queue.bytes.Store(999)
	batches := batchesOf(2, numberedRange(0, 20)...)
	if err := l.Append(within(t), batches, AckDisk); !errors.Is(err, ErrOverloaded) {
		t.Fatalf("got %v; want ErrOverloaded", err)
	}
	if s := l.Partition(0).Stats(); s.QueueBytes != 0 || s.Events != 0 {
		t.Fatalf("the other partition kept %+v", s)
	}
	l.Partition(1).queue.bytes.Store(0)
	if err := l.Append(within(t), batches, AckDisk); err != nil { // larger than the queue, which is empty
		t.Fatal(err)
	}
	mustClose(t, l)
}

// A close that may not wait answers what is queued with ErrClosed; nothing is acknowledged that is not stored.
func TestCloseWithoutDraining(t *testing.T) {
	o := testOptions(nil)
	o.Partitions, o.QueueBytesMax, o.RingBytes = 1, 100_000, ringBytesMin(o.EventBytesMax)
	l, g := stuck(t, o, walWrite)
	admitted, answers := sendUntilRefused(t, l)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	closed := make(chan error, 1)
	go func() { closed <- l.Close(ctx) }()
	for !l.Partition(0).abandon.Load() {
		runtime.Gosched()
	}
	g.open()
	if err := <-closed; !errors.Is(err, context.Canceled) {
		t.Fatalf("close: %v", err)
	}
	stored := 0
	for range admitted + 1 {
		switch err := <-answers; {
		case err == nil:
			stored++
		case !errors.Is(err, ErrClosed) && !errors.Is(err, ErrOverloaded):
			t.Fatal(err)
		}
	}
	if end := l.Partition(0).Frontiers().Durable; end != int64(stored) {
		t.Fatalf("%d acknowledged, %d durable", stored, end)
	}
}

// In the steady state an event costs no allocation from the append to the reader; a request costs a few.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	o := testOptions(vfs.NewMem())
	o.Partitions, o.RingBytes, o.MemtableBytes, o.DedupMaxIDs = 1, 8<<20, 4<<20, 50_000
	l := mustOpen(t, o)
	defer mustClose(t, l)
	const events = 500
	p := l.Partition(0)
	r := p.NewReader(0)
	defer r.Close()
	batch := rawBatch(0, events, 100)
	batches := []event.Batch{batch}
	ctx := context.Background()
	next := uint64(0)
	var e event.Event
	round := func() {
		for i := range batches[0].Items {
			next++
			batches[0].Items[i].Hash = event.Hash{Hi: next * 0x9e3779b97f4a7c15, Lo: next}
		}
		if err := l.Append(ctx, batches, AckDisk); err != nil {
			t.Fatal(err)
		}
		for {
			frame, ok, err := r.Next(math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return
			}
			for records := frame.Records; len(records) > 0; {
				if records, err = e.Decode(records); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for range 200 {
		round()
	}
	perRequest := testing.AllocsPerRun(200, round)
	t.Logf("%.0f allocations per request of %d events", perRequest, events)
	if perRequest/events >= 0.2 { // flushes and compactions are in this figure
		t.Errorf("%.2f allocations per event; want 0", perRequest/events)
	}
}

// BenchmarkAppend writes records of 200 bytes in batches of 500 over 4 partitions to the real disk, from 8 clients.
func BenchmarkAppend(b *testing.B) {
	for _, ack := range []struct {
		name string
		ack  Ack
	}{{"disk", AckDisk}, {"memory", AckMemory}} {
		b.Run("ack="+ack.name, func(b *testing.B) {
			o := Options{Dir: b.TempDir() + "/log", Stream: "bench", Partitions: 4, DiskReserve: -1, BallastBytes: -1}
			l := mustOpen(b, o)
			defer l.Close(context.Background())
			benchmarkAppend(b, l, ack.ack)
		})
	}
}

func benchmarkAppend(b *testing.B, l *Log, ack Ack) {
	const events, clients = 500, 8
	batches := make([][]event.Batch, clients)
	for c := range batches {
		for range l.Partitions() {
			batches[c] = append(batches[c], rawBatch(0, events/l.Partitions(), 170))
		}
	}
	bytes := 0
	for i := range batches[0] {
		bytes += len(batches[0][i].Records)
	}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	var next atomic.Uint64
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for c := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for left.Add(-1) >= 0 {
				for i := range batches[c] {
					for j := range batches[c][i].Items {
						n := next.Add(1)
						batches[c][i].Items[j].Hash = event.Hash{Hi: n * 0x9e3779b97f4a7c15, Lo: n * 0xd1342543de82ef95}
					}
				}
				err := l.Append(context.Background(), batches[c], ack)
				for errors.Is(err, ErrOverloaded) {
					runtime.Gosched()
					err = l.Append(context.Background(), batches[c], ack)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)*events/b.Elapsed().Seconds(), "events/s")
	commits := int64(0)
	for i := range l.Partitions() {
		commits += l.Partition(i).Stats().Commits
	}
	b.ReportMetric(float64(b.N)*events/float64(max(commits, 1)), "events/fsync")
}
