package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func soak(short, long int) int {
	if os.Getenv("WEIR_SOAK") != "" {
		return long
	}
	return short
}

// history is everything that was sent, in the order in which each partition must hold it, and how much of it was
// acknowledged as durable.
type history struct {
	t     testing.TB
	mu    sync.Mutex
	sent  *oracle
	acked []int // per partition
}

func newHistory(t testing.TB, partitions int) *history {
	return &history{t: t, sent: newOracle(partitions), acked: make([]int, partitions)}
}

func (h *history) append(l *Log, ack Ack, samples ...sample) error {
	batches := batchesOf(l.Partitions(), samples...)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range batches {
		for j := range batches[i].Items {
			h.sent.partitions[i] = append(h.sent.partitions[i], decodeSample(h.t, batches[i].Record(j)))
		}
	}
	h.mu.Unlock()
	err := l.Append(context.Background(), batches, ack)
	h.mu.Lock()
	if err != nil {
		return err
	}
	if ack == AckDisk {
		for i := range h.acked {
			h.acked[i] = len(h.sent.partitions[i])
		}
	}
	return nil
}

// verify opens what a crash left and checks it: each partition is a prefix of what was sent, and holds all that was
// acknowledged.
func (h *history) verify(t testing.TB, o Options, what string) {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatalf("%s: cannot open: %v", what, err)
	}
	defer mustClose(t, l)
	for i, sent := range h.sent.partitions {
		p := l.Partition(i)
		f := p.Frontiers()
		if f.Appended != f.Durable || f.Warm > f.Durable || f.First != 0 {
			t.Fatalf("%s: partition %d: frontiers %+v", what, i, f)
		}
		r := p.NewReader(0)
		got := readAll(t, r, f.Durable)
		r.Close()
		if len(got) < h.acked[i] || len(got) > len(sent) {
			t.Fatalf("%s: partition %d: %d events; want %d..%d", what, i, len(got), h.acked[i], len(sent))
		}
		equal(t, i, got, sent[:len(got)])
	}
}

// Power cuts: the file system is cloned as a crash would leave it, after every acknowledgement.
func TestCrashAfterEveryAck(t *testing.T) {
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	for round := range soak(2, 100) {
		fs := vfs.NewCrashableMem()
		o := testOptions(fs)
		o.RingBytes = int64(o.Partitions) * ringBytesMin(o.EventBytesMax)
		l := mustOpen(t, o)
		h := newHistory(t, o.Partitions)
		n := 0
		for step := range 40 {
			var samples []sample
			for range 1 + rng.IntN(300) {
				samples = append(samples, numbered(n))
				n++
			}
			ack := AckDisk
			if rng.IntN(3) == 0 {
				ack = AckMemory
			}
			if err := h.append(l, ack, samples...); err != nil {
				t.Fatal(err)
			}
			percent := []int{0, 100, rng.IntN(101)}[rng.IntN(3)]
			clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, uint64(step)))})
			after := o
			after.FS = clone
			h.verify(t, after, fmt.Sprintf("round %d, step %d, %d%% of unsynced data kept", round, step, percent))
		}
		mustClose(t, l)
		h.verify(t, o, "closed")
	}
}

// deathbed runs code where a fatal error of the storage ends the goroutine that meets it, as it would end the process.
type deathbed struct {
	died     chan struct{}
	once     sync.Once
	panicked atomic.Pointer[any]
}

func newDeathbed() *deathbed { return &deathbed{died: make(chan struct{})} }

func (d *deathbed) die() { d.once.Do(func() { close(d.died) }) }

func (d *deathbed) fatal(error) {
	d.die()
	runtime.Goexit()
}

// run returns fn's error, or one that says that the process would be dead. Then fn may still be running.
func (d *deathbed) run(fn func() error) (err error) {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil { // Pebble panics where it cannot sync a folder
				d.panicked.Store(&r)
				d.die()
			}
		}()
		done <- fn()
	}()
	select {
	case err = <-done:
		return err
	case <-d.died:
		return ErrFailed // fn may hang in what is dead; the test goes on without it
	}
}

func (d *deathbed) dead() bool {
	select {
	case <-d.died:
		return true
	default:
		return false
	}
}

// stopOnPanic makes the operations fail that Pebble panics over while it holds a lock, which a test cannot survive,
// by never returning from them: to the disk it is the same.
func (d *deathbed) stopOnPanic(inner errorfs.Injector) errorfs.Injector {
	return errorfs.InjectorFunc(func(op errorfs.Op) error {
		if d.dead() {
			select {} // the dead write no more
		}
		err := inner.MaybeError(op)
		wal := strings.HasSuffix(op.Path, ".log") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite
		folder := op.Kind == errorfs.OpFileSync && strings.HasSuffix(op.Path, "p0000")
		if err != nil && (wal || folder) {
			d.die()
			select {}
		}
		return err
	})
}

// An I/O error at every operation of open, append, read and close, one at a time, until a run meets none: in a new
// folder, and in one that a crash left with tables and a WAL.
func TestErrorAtEveryOperation(t *testing.T) {
	for _, c := range []struct {
		name  string
		older int
	}{{"new", 0}, {"recovered", 1200}} {
		t.Run(c.name, func(t *testing.T) { errorAtEveryOperation(t, c.older) })
	}
}

func errorAtEveryOperation(t *testing.T, older int) {
	base := vfs.NewCrashableMem()
	o := testOptions(base)
	o.Partitions = 1
	before := newHistory(t, 1)
	l := mustOpen(t, o)
	for n := 0; n < older; n += 100 {
		if err := before.append(l, AckDisk, numberedRange(n, 100)...); err != nil {
			t.Fatal(err)
		}
		if n == older/2 {
			flushAll(t, l)
		}
	}
	surfaced, crashes := 0, 0
	for index := int32(0); ; index++ {
		mem := vfs.NewCrashableMem()
		if older > 0 {
			mem = base.CrashClone(vfs.CrashCloneCfg{})
		}
		o, bed, h := o, newDeathbed(), before.clone(t)
		counting := &errorfs.Counter{Injector: errorfs.OnIndex(index)}
		o.FS, o.Fatal = errorfs.Wrap(mem, bed.stopOnPanic(counting)), bed.fatal
		err := bed.run(func() error { return lifetime(o, h, older) })
		h = h.clone(t) // before the disk is looked at: what comes later does not count
		fired := counting.Load() > 0
		if err != nil && !fired {
			t.Fatalf("index %d: error without cause: %v", index, err)
		}
		if err != nil {
			surfaced++
		}
		if bed.dead() {
			crashes++
		}
		after := testOptions(mem.CrashClone(vfs.CrashCloneCfg{}))
		after.Partitions = 1
		h.verify(t, after, fmt.Sprintf("error at operation %d (%v)", index, err))
		if !fired {
			break
		}
	}
	mustClose(t, l)
	if surfaced == 0 || crashes == 0 {
		t.Fatalf("%d errors surfaced, %d crashes; want some of both", surfaced, crashes)
	}
	t.Logf("%d errors surfaced, of them %d as crashes", surfaced, crashes)
}

func (h *history) clone(t testing.TB) *history {
	h.mu.Lock()
	defer h.mu.Unlock()
	sent := newOracle(len(h.acked))
	for i := range sent.partitions {
		sent.partitions[i] = slices.Clone(h.sent.partitions[i])
	}
	return &history{t: t, sent: sent, acked: slices.Clone(h.acked)}
}

func numberedRange(from, n int) []sample {
	samples := make([]sample, n)
	for i := range samples {
		samples[i] = numbered(from + i)
	}
	return samples
}

// lifetime opens, appends 600 events numbered first and up, flushes, reads everything and closes.
func lifetime(o Options, h *history, first int) (err error) {
	l, err := Open(o)
	if err != nil {
		return err
	}
	for n := 0; n < 600 && err == nil; n += 60 {
		err = h.append(l, AckDisk, numberedRange(first+n, 60)...)
		if n == 300 && err == nil {
			err = l.Partition(0).db.Flush()
		}
	}
	if err != nil {
		return errors.Join(err, l.Close(context.Background()))
	}
	r := l.Partition(0).NewScan(0, ScanOptions{})
	for err == nil {
		var ok bool
		if _, ok, err = r.Next(int64(first) + 600); !ok {
			break
		}
	}
	if err == nil && r.Offset() != int64(first)+600 {
		err = fmt.Errorf("read up to %d; want %d", r.Offset(), first+600)
	}
	return errors.Join(err, r.Close(), l.Close(context.Background()))
}
