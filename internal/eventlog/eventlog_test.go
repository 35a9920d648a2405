package eventlog

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/event"
)

func TestAppendReadReopen(t *testing.T) {
	o := testOptions(vfs.NewMem())
	want := newOracle(o.Partitions)
	n := 0
	for round := range 3 {
		l := mustOpen(t, o)
		want.compare(t, l)
		for range 200 {
			var samples []sample
			for range 1 + n%7*5 {
				samples = append(samples, numbered(n))
				n++
			}
			ack := AckDisk
			if n%3 == 0 {
				ack = AckMemory
			}
			want.note(t, mustAppend(t, l, ack, samples...))
		}
		want.compare(t, l)
		mustClose(t, l)
		if err := l.Append(context.Background(), batchesOf(2, numbered(0)), AckDisk); !errors.Is(err, ErrClosed) {
			t.Fatalf("round %d: append to a closed log: %v", round, err)
		}
	}
}

func TestOnDisk(t *testing.T) {
	o := testOptions(vfs.Default)
	o.Dir = t.TempDir() + "/a/b"
	want := newOracle(o.Partitions)
	for round := range 2 {
		l := mustOpen(t, o)
		if _, err := Open(o); !errors.Is(err, ErrLocked) {
			t.Fatalf("second open: %v; want ErrLocked", err)
		}
		for n := range 20 {
			var samples []sample
			for i := range 50 {
				samples = append(samples, numbered(round*1000+n*50+i))
			}
			want.note(t, mustAppend(t, l, AckDisk, samples...))
		}
		want.compare(t, l)
		if s := l.Partition(0).Stats(); s.WarmBytes == 0 || s.Events == 0 || s.Commits == 0 {
			t.Fatalf("stats %+v", s)
		}
		mustClose(t, l)
	}
}

func TestDuplicates(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.DedupWindow = 10 * time.Minute
	l := mustOpen(t, o)
	want := newOracle(o.Partitions)
	a, b := numbered(1), numbered(2)
	got := mustAppend(t, l, AckDisk, a, b, a) // inside one request
	want.note(t, got)
	duplicates := func(batches []event.Batch) (n int) {
		for i := range batches {
			for _, item := range batches[i].Items {
				if item.Duplicate {
					n++
				}
			}
		}
		return n
	}
	if n := duplicates(got); n != 1 {
		t.Fatalf("%d duplicates; want 1", n)
	}
	late := func(s sample, ms int64) sample { s.arrival += ms; return s }
	got = mustAppend(t, l, AckMemory, late(a, 600_000), late(b, 600_001))
	want.note(t, got)
	if n := duplicates(got); n != 1 {
		t.Fatalf("%d duplicates at the window's edge; want 1", n)
	}
	mustClose(t, l)

	o.manual().Set(testNow + 700_000)
	l = mustOpen(t, o) // ids are rebuilt from the log
	got = mustAppend(t, l, AckDisk, late(b, 700_000), late(a, 700_000))
	want.note(t, got)
	if n := duplicates(got); n != 1 {
		t.Fatalf("%d duplicates after a restart; want 1", n)
	}
	want.compare(t, l)
	mustClose(t, l)
}

func TestStreamChanged(t *testing.T) {
	o := testOptions(vfs.NewMem())
	mustClose(t, mustOpen(t, o))
	for _, c := range []struct {
		what, stored, wanted string
		change               func(*Options)
	}{
		{"partitions", "2", "3", func(o *Options) { o.Partitions = 3 }},
		{"segment", "data.user", "data.ad", func(o *Options) { o.Segment = "data.ad" }},
	} {
		changed := o
		c.change(&changed)
		_, err := Open(changed)
		var got *StreamChanged
		if !errors.As(err, &got) || !errors.Is(err, ErrStreamChanged) || got.What != c.what || got.Stored != c.stored || got.Wanted != c.wanted {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	mustClose(t, mustOpen(t, o)) // a refusal leaves no lock behind
}

func TestOptionsRefused(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*Options)
	}{
		{"want both", func(o *Options) { o.Dir = "" }},
		{"want 1..", func(o *Options) { o.Partitions = 0 }},
		{"dedup window", func(o *Options) { o.DedupWindow = 8 * 24 * time.Hour }},
		{"dedup ids", func(o *Options) { o.DedupMaxIDs = -1 }},
		{"events of", func(o *Options) { o.EventBytesMax = -1 }},
		{"got a ring", func(o *Options) { o.RingBytes = 100 << 10 }},
		{"write buffer", func(o *Options) { o.MemtableBytes = 1 }},
		{"queue", func(o *Options) { o.QueueBytesMax = 1 }},
	} {
		o := testOptions(vfs.NewMem())
		c.change(&o)
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.want, err)
		}
	}
}

func TestTooLargeAndMalformed(t *testing.T) {
	o := testOptions(vfs.NewMem())
	l := mustOpen(t, o)
	defer mustClose(t, l)
	big := numbered(1)
	big.data = strings.Repeat("x", o.EventBytesMax)
	if err := l.Append(within(t), batchesOf(2, numbered(0), big), AckDisk); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if err := l.Append(within(t), make([]event.Batch, 3), AckDisk); err == nil {
		t.Error("three batches for two partitions were taken")
	}
	odd := batchesOf(2, numbered(0))
	for i := range odd {
		odd[i].Records = append(odd[i].Records, 1)
	}
	if err := l.Append(within(t), odd, AckDisk); err == nil {
		t.Error("records without items were taken")
	}
	if err := l.Append(within(t), make([]event.Batch, 2), AckDisk); err != nil {
		t.Errorf("nothing to append: %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Append(ended, batchesOf(2, numbered(0)), AckDisk); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
	newOracle(2).compare(t, l)
}

// Events that are longer than a usual chunk, among short ones, through a ring that is far too small for all of them.
func TestLargeEventsSpill(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.RingBytes = int64(o.Partitions) * ringBytesMin(o.EventBytesMax)
	spilled := 0
	o.Partitions, o.RingBytes = 1, o.RingBytes/int64(o.Partitions)
	o.Events.Spilled = func(_, chunks int) { spilled += chunks }
	l := mustOpen(t, o)
	want := newOracle(1)
	for n := range 60 {
		s := numbered(n)
		s.data = strings.Repeat("y", []int{10, 90 << 10, 1000, 30 << 10, 120 << 10}[n%5])
		want.note(t, mustAppend(t, l, AckDisk, s))
	}
	want.compare(t, l)
	if stats := l.Partition(0).Stats(); stats.Spills == 0 || stats.RingBytes > o.RingBytes {
		t.Fatalf("stats %+v; want spills, and a ring within %d", stats, o.RingBytes)
	}
	mustClose(t, l)
	if spilled == 0 {
		t.Fatal("spills were not told")
	}
}

// Random limits, starts and kinds of reader, over what lies partly in the ring and partly below it.
func TestReaderOverlap(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Partitions = 1
	o.RingBytes = ringBytesMin(o.EventBytesMax)
	l := mustOpen(t, o)
	defer mustClose(t, l)
	want := newOracle(1)
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for n := 0; n < 30_000; {
		var samples []sample
		for range 1 + rng.IntN(1500) {
			samples = append(samples, numbered(n))
			n++
		}
		want.note(t, mustAppend(t, l, AckMemory, samples...))
	}
	all := want.partitions[0]
	p := l.Partition(0)
	if stats := p.Stats(); stats.RingFirst == 0 {
		t.Fatalf("everything is in the ring: %+v", stats)
	}
	for range 300 {
		from := rng.Int64N(int64(len(all)))
		r := p.NewReader(from)
		if rng.IntN(2) == 0 {
			r = p.NewScan(from, ScanOptions{})
		}
		for at := from; at < int64(len(all)) && at < from+3000; {
			limit := min(at+rng.Int64N(900), int64(len(all)))
			got := readAll(t, r, limit)
			equal(t, 0, got, all[at:limit])
			at = limit
		}
		r.Close()
		if _, _, err := r.Next(math.MaxInt64); !errors.Is(err, ErrClosed) {
			t.Fatalf("closed reader: %v", err)
		}
	}
}

// A reader with a time filter may leave frames out, never an event in range, and it comes to the end.
func TestTimeFilter(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Partitions = 1
	o.RingBytes = ringBytesMin(o.EventBytesMax)
	l := mustOpen(t, o)
	defer mustClose(t, l)
	const each = 600
	for n := range 60 {
		var samples []sample
		for i := range each {
			s := numbered(n*each + i)
			s.time = testNow + int64(n)*1000 + int64(i)
			samples = append(samples, s)
		}
		mustAppend(t, l, AckDisk, samples...)
	}
	p := l.Partition(0)
	end := p.Frontiers().Appended
	for _, c := range []struct{ from, to int64 }{{0, 1}, {3, 5}, {10, 11}, {58, 60}, {70, 80}, {-5, 0}} {
		r := p.NewScan(0, ScanOptions{TimeFrom: testNow + c.from*1000, TimeTo: testNow + c.to*1000})
		events, matching := 0, 0
		for {
			frame, ok, err := r.Next(end)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			for _, s := range decodeFrame(t, frame) {
				events++
				if s.time >= testNow+c.from*1000 && s.time < testNow+c.to*1000 {
					matching++
				}
			}
		}
		want := 0
		for n := int64(0); n < 60; n++ {
			if n >= c.from && n < c.to {
				want += each
			}
		}
		if matching != want || events > want+2*frameEventsMax || r.Offset() != end {
			t.Errorf("%+v: %d of %d events match; want %d; at %d of %d", c, matching, events, want, r.Offset(), end)
		}
		r.Close()
	}
}

func TestWaitDurable(t *testing.T) {
	l := mustOpen(t, testOptions(vfs.NewMem()))
	p := l.Partition(0)
	reached := make(chan error, 3)
	for offset := range 3 {
		go func() { reached <- p.WaitDurable(within(t), int64(offset)) }()
	}
	for n := 0; p.Frontiers().Durable < 3; n++ {
		mustAppend(t, l, AckDisk, numbered(n))
	}
	for range 3 {
		if err := <-reached; err != nil {
			t.Fatal(err)
		}
	}
	if err := p.WaitAppended(within(t), 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { reached <- p.WaitDurable(ctx, 1e9) }()
	cancel()
	if err := <-reached; !errors.Is(err, context.Canceled) {
		t.Fatalf("ended context: %v", err)
	}
	go func() { reached <- p.WaitDurable(within(t), 1e9) }()
	mustClose(t, l)
	if err := <-reached; !errors.Is(err, ErrClosed) {
		t.Fatalf("closed: %v", err)
	}
}
