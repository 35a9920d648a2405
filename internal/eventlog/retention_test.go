package eventlog

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/event"
)

const hourMS = 3600 * 1000

// fillHours appends 40 events an hour to one partition, in requests of 10, flushes, and returns them.
func fillHours(t *testing.T, l *Log, from, hours int) (all []sample) {
	t.Helper()
	for h := range hours {
		for i := range 4 {
			var samples []sample
			for j := range 10 {
				s := numbered(((from+h)*4+i)*10 + j)
				s.arrival = testNow + int64(from+h)*hourMS
				s.time = s.arrival - int64(j)*7*hourMS
				samples = append(samples, s)
			}
			mustAppend(t, l, AckDisk, samples...)
			all = append(all, samples...)
		}
	}
	flushAll(t, l)
	return all
}

// flushAll makes everything warm.
func flushAll(t testing.TB, l *Log) {
	t.Helper()
	for _, p := range l.partitions {
		if err := p.db.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := p.refreshWarm(); err != nil {
			t.Fatal(err)
		}
		if f := p.Frontiers(); f.Warm != f.Appended {
			t.Fatalf("frontiers after a flush: %+v", f)
		}
	}
}

func TestRetention(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Partitions, o.Retention = 1, 24*time.Hour
	l := mustOpen(t, o)
	p := l.Partition(0)
	if first, maxTime := p.Trimmed(); first != 0 || maxTime != math.MinInt64 {
		t.Fatalf("new log: trimmed %d, %d", first, maxTime)
	}
	all := fillHours(t, l, 0, 48)

	check := func(step string, now int64, wantFirst int) {
		t.Helper()
		if err := l.Trim(now); err != nil {
			t.Fatal(err)
		}
		first, maxTime := p.Trimmed()
		wantMax := int64(math.MinInt64)
		for _, s := range all[:wantFirst] {
			wantMax = max(wantMax, s.time)
		}
		if first != int64(wantFirst) || maxTime != wantMax || p.Frontiers().First != first {
			t.Fatalf("%s: trimmed %d, %d; want %d, %d", step, first, maxTime, wantFirst, wantMax)
		}
		r := p.NewReader(first)
		defer r.Close()
		equal(t, 0, readAll(t, r, math.MaxInt64), all[first:])
		if wantFirst > 0 {
			for _, r := range []*Reader{p.NewReader(first - 1), p.NewScan(0, ScanOptions{TimeTo: math.MaxInt64})} {
				if _, _, err := r.Next(math.MaxInt64); !errors.Is(err, ErrTrimmed) {
					t.Fatalf("%s: read below first: %v", step, err)
				}
				r.Close()
			}
		}
	}
	const day = 24 * hourMS
	check("nothing is old", testNow+day, 0)
	check("the first hour", testNow+day+1, 40)
	check("a clock that was set back", testNow, 40)
	p.Hold(100)
	check("held", testNow+day+10*hourMS, 100)
	p.Hold(math.MaxInt64)
	check("freed", testNow+day+10*hourMS, 400)
	mustClose(t, l)

	l = mustOpen(t, o)
	p = l.Partition(0)
	check("after a restart", testNow, 400)
	check("everything", testNow+1000*hourMS, len(all))
	mustClose(t, l)

	l = mustOpen(t, o) // offsets go on in an empty log
	p = l.Partition(0)
	check("empty", testNow+1000*hourMS, len(all))
	all = append(all, fillHours(t, l, 2000, 2)...)
	check("filled again", testNow+2000*hourMS, 48*40)
	if got := len(all); p.Frontiers().Appended != int64(got) {
		t.Fatalf("%d appended; want %d", p.Frontiers().Appended, got)
	}
	mustClose(t, l)
}

// A clock that ran a year ahead for a while keeps its events no longer than their neighbours.
func TestRetentionAfterClockJump(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Partitions, o.Retention, o.DedupWindow = 1, 24*time.Hour, -1
	l := mustOpen(t, o)
	defer mustClose(t, l)
	fillHours(t, l, 0, 30)
	fillHours(t, l, 365*24, 1)
	fillHours(t, l, 31, 30)
	if err := l.Trim(testNow + (24+60)*hourMS); err != nil {
		t.Fatal(err)
	}
	if first := l.Partition(0).Frontiers().First; first < 60*40-40 {
		t.Fatalf("first %d; want the events of the jump removed with those after it", first)
	}
}

// What is not in the tables yet is never removed, however old.
func TestRetentionStopsAtWarm(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Partitions, o.Retention = 1, time.Hour
	l := mustOpen(t, o)
	defer mustClose(t, l)
	mustAppend(t, l, AckDisk, numbered(1), numbered(2))
	if err := l.Trim(testNow + 1000*hourMS); err != nil {
		t.Fatal(err)
	}
	if first := l.Partition(0).Frontiers().First; first != 0 {
		t.Fatalf("first %d; want 0: nothing was warm", first)
	}
}

// A stream that would not fill a write buffer in years loses its old events all the same.
func TestRetentionOfAQuietStream(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Partitions, o.Retention = 1, time.Hour
	l := mustOpen(t, o)
	defer mustClose(t, l)
	mustAppend(t, l, AckDisk, numbered(1), numbered(2))
	p := l.Partition(0)
	trim := func(now int64) {
		t.Helper()
		if err := l.Trim(now); err != nil {
			t.Fatal(err)
		}
	}
	trim(testNow) // nothing has expired
	if m := p.db.Metrics(); m.Flush.Count != 0 || m.MemTable.Count != 1 {
		t.Fatalf("got %d flushes, %d write buffers; want no flush", m.Flush.Count, m.MemTable.Count)
	}
	trim(testNow + 1000*hourMS)
	if m := p.db.Metrics(); m.Flush.Count == 0 && m.MemTable.Count < 2 {
		t.Fatalf("got no flush of what has expired")
	}
	for p.Frontiers().Warm < 2 {
		runtime.Gosched()
	}
	trim(testNow + 1000*hourMS)
	if first := p.Frontiers().First; first != 2 {
		t.Errorf("first %d; want 2", first)
	}
}

// Readers that meet retention get every event from where they are, or ErrTrimmed; nothing else.
func TestReadersDuringRetention(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Partitions, o.Retention = 1, 24*time.Hour
	l := mustOpen(t, o)
	all := fillHours(t, l, 0, 100)
	mustClose(t, l)
	l = mustOpen(t, o) // with an empty ring, so that everything is read from the warm tier
	defer mustClose(t, l)
	p := l.Partition(0)
	var reading sync.WaitGroup
	var done atomic.Bool
	for i := range 4 {
		reading.Add(1)
		go func() {
			defer reading.Done()
			for !done.Load() {
				if err := readUntilTrimmed(p, all, i%2 == 0); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	for hour := range 100 {
		if err := l.Trim(testNow + int64(24+hour)*hourMS + 1); err != nil {
			t.Fatal(err)
		}
	}
	done.Store(true)
	reading.Wait()
	if first := p.Frontiers().First; first != int64(len(all)) {
		t.Fatalf("first %d; want %d", first, len(all))
	}
}

func readUntilTrimmed(p *Partition, all []sample, patient bool) error {
	from := p.Frontiers().First
	r := p.NewReader(from)
	if patient {
		r = p.NewScan(from, ScanOptions{})
	}
	defer r.Close()
	var e event.Event
	for {
		frame, ok, err := r.Next(math.MaxInt64)
		if !ok || errors.Is(err, ErrTrimmed) {
			return nil
		}
		if err != nil {
			return err
		}
		for offset, records := frame.First, frame.Records; len(records) > 0; offset++ {
			if records, err = e.Decode(records); err != nil {
				return err
			}
			if sampleOf(&e) != all[offset] {
				return fmt.Errorf("offset %d: got %+v; want %+v", offset, sampleOf(&e), all[offset])
			}
		}
	}
}

// A power cut around a trim leaves the mark and the frames as they were before it, or after.
func TestCrashAroundTrim(t *testing.T) {
	fs := vfs.NewCrashableMem()
	o := testOptions(fs)
	o.Partitions, o.Retention = 1, 24*time.Hour
	l := mustOpen(t, o)
	all := fillHours(t, l, 0, 40)
	for hour := range 40 {
		before, _ := l.Partition(0).Trimmed()
		var clones []*vfs.MemFS
		clone := func(percent int) {
			clones = append(clones, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(hour), 1))}))
		}
		clone(50)
		if err := l.Trim(testNow + int64(24+hour)*hourMS + 1); err != nil {
			t.Fatal(err)
		}
		after, afterTime := l.Partition(0).Trimmed()
		clone(0)
		clone(hour * 100 / 40)
		for i, clone := range clones {
			o := o
			o.FS = clone
			crashed := mustOpen(t, o)
			p := crashed.Partition(0)
			first, maxTime := p.Trimmed()
			if i == 0 && first != before || i > 0 && (first != after || maxTime != afterTime) {
				t.Fatalf("hour %d, clone %d: trimmed %d; before %d, after %d", hour, i, first, before, after)
			}
			r := p.NewReader(first)
			equal(t, 0, readAll(t, r, math.MaxInt64), all[first:])
			r.Close()
			mustClose(t, crashed)
		}
	}
	mustClose(t, l)
}
