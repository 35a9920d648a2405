// Package eventlog is a stream's durable, partitioned log of events, read by one iterator wherever an event lies.
//
// A partition is the unit of order. It has one appender, a goroutine that alone writes; a ring, which holds the newest
// frames in RAM; and a Pebble instance, the warm tier, which holds every frame that retention has left. Three frontiers
// say how far an event has come, each an exclusive end:
//
//	First ≤ … ≤ Warm ≤ Durable ≤ Appended
//
//	Appended   in the ring: readers can see it
//	Durable    in the warm tier's WAL, fsynced: it survives a power cut
//	Warm       in the warm tier's tables: the ring may let go of it
//
// An append is admitted by all of its partitions or by none. Each appender then takes whatever was queued while its
// last fsync ran, drops what it has seen before, writes the rest to the ring in frames, and commits those frames with
// one fsync. A reader asks the ring first and the warm tier next; as the ring lets go only of what the warm tier has,
// there is no gap, and as both hold the same frames under dense offsets, there is no repetition.
//
// Load beyond what the disk takes shows as slow acks: the queue grows, and when the tables are not written fast enough
// the ring fills and its appender waits. When a partition's share of the queue is full, appends are refused with
// *Overload. Nothing that was acknowledged depends on the ring.
//
// docs/design/0002-event-log.md argues for this; docs/format/frame.md has every byte of it on disk.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/event"
)

// Ack says when an append returns.
type Ack uint8

const (
	AckDisk   Ack = iota // when the events are fsynced
	AckMemory            // when readers can see them; a power cut may lose them
)

const (
	lockFile = "LOCK"

	retentionTicks    = 100 // checks in a retention
	retentionTickMin  = time.Second
	retentionTickMax  = time.Minute
	partitionDirWidth = 4

	closeFlushMax = 5 * time.Second // a flush that fails is tried again by Pebble, possibly for ever
)

// Log is one stream's log. Its methods may be called by any goroutine.
type Log struct {
	opts       Options
	ownCache   *pebble.Cache
	lock       io.Closer
	guard      *guard
	partitions []*Partition

	closing  atomic.Bool
	inflight atomic.Int64  // appends that are between admission and answer
	drained  chan struct{} // closed when the last of them has left a closing log
	drain    sync.Once

	crashed  chan struct{} // closed when the storage failed for good
	crash    sync.Once
	crashErr atomic.Pointer[error]

	stop    chan struct{} // ends the retention loop
	loops   sync.WaitGroup
	closed  sync.Once
	closure error
}

// Open opens the stream's log in o.Dir and recovers it. Its errors wrap ErrLocked, ErrStreamChanged, ErrUnknownFormat
// or ErrCorrupt where they are that.
func Open(o Options) (_ *Log, err error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	l := &Log{opts: o, drained: make(chan struct{}), crashed: make(chan struct{}), stop: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.release())
		}
	}()
	if err := l.occupy(); err != nil {
		return nil, err
	}
	fresh, err := checkStream(&o)
	if err != nil {
		return nil, err
	}
	if o.Cache == nil {
		l.ownCache = pebble.NewCache(cacheBytesDefault)
		l.opts.Cache = l.ownCache
	}
	l.guard = newGuard(&l.opts)
	fs := vfs.OnDiskFull(o.FS, l.guard.emergency)
	for i := range o.Partitions {
		p, err := openPartition(l, i, fs, fresh)
		if err != nil {
			return nil, fmt.Errorf("cannot open stream %s, partition %d: %w", o.Stream, i, err)
		}
		l.partitions = append(l.partitions, p)
	}
	if fresh {
		if err := storeStream(&o); err != nil {
			return nil, err
		}
	}
	l.start()
	return l, nil
}

// occupy makes the folder and locks it against a second Log.
func (l *Log) occupy() error {
	fs, dir := l.opts.FS, l.opts.Dir
	if err := makeDirs(fs, dir); err != nil {
		return err
	}
	lock, err := fs.Lock(fs.PathJoin(dir, lockFile))
	if isLocked(err) {
		return fmt.Errorf("cannot open stream %s: folder %s: %w", l.opts.Stream, dir, ErrLocked)
	}
	if err != nil {
		return fmt.Errorf("cannot lock folder %s: %w", dir, err)
	}
	l.lock = lock
	return nil
}

// isLocked tells "somebody has it" from other failures. Pebble's file system reports a lock of the same process by its
// text only.
func isLocked(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		err != nil && strings.Contains(err.Error(), "lock held by current process")
}

// start lets the appenders and the retention loop run.
func (l *Log) start() {
	for _, p := range l.partitions {
		p.loop.Add(1)
		go p.run()
	}
	if l.opts.Retention > 0 {
		l.loops.Add(1)
		go l.retain()
	}
}

// Append stores batches[i] in partition i, and sets each item's Offset and Duplicate. It returns when what ack says is
// so. A batch must hold one item per record, of one request, and belongs to the log until Append returns; ctx is looked
// at before the events are queued, not after.
//
// The error is *Overload, ErrDiskFull, ErrTooLarge or ErrClosed, and nothing is stored; or it wraps ErrFailed, and what
// is stored is unknown.
func (l *Log) Append(ctx context.Context, batches []event.Batch, ack Ack) error {
	l.inflight.Add(1)
	defer l.leave()
	if l.closing.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := l.admit(batches, ack)
	if err != nil || c == nil {
		return err
	}
	for i := range c.parts {
		if part := &c.parts[i]; part.batch != nil {
			l.partitions[i].enqueue(part)
		}
	}
	select {
	case <-c.done:
	case <-l.crashed:
		// The appender may be gone in the middle of this call, so that its memory is not used again.
		return l.crashError()
	}
	err = c.err()
	putCall(c)
	return err
}

// admit checks the batches and reserves queue space in every partition that they go to, or in none. It returns nil for
// batches without events.
func (l *Log) admit(batches []event.Batch, ack Ack) (*call, error) {
	if len(batches) > len(l.partitions) {
		return nil, fmt.Errorf("cannot append to stream %s: got %d batches; want at most %d", l.opts.Stream, len(batches), len(l.partitions))
	}
	var total int64
	for i := range batches {
		if err := l.check(&batches[i]); err != nil {
			return nil, err
		}
		total += int64(len(batches[i].Records))
	}
	if total == 0 {
		return nil, nil
	}
	if err := l.guard.admit(total); err != nil {
		return nil, err
	}
	for i := range batches {
		if err := l.partitions[i].admit(int64(len(batches[i].Records))); err != nil {
			for j := range i {
				l.partitions[j].queue.bytes.Add(-int64(len(batches[j].Records)))
			}
			if l.opts.Events.Overloaded != nil {
				l.opts.Events.Overloaded(i)
			}
			return nil, err
		}
	}
	return newCall(l, batches, ack), nil
}

// check refuses what no frame and no ring could take.
func (l *Log) check(b *event.Batch) error {
	start := uint32(0)
	for i := range b.Items {
		end := b.Items[i].End
		if end <= start || uint64(end) > uint64(len(b.Records)) || int64(end-start) > int64(l.opts.EventBytesMax) {
			return fmt.Errorf("cannot append event %d of a batch to stream %s: got %d bytes; want 1..%d: %w",
				i, l.opts.Stream, int64(end)-int64(start), l.opts.EventBytesMax, ErrTooLarge)
		}
		start = end
	}
	if int(start) != len(b.Records) {
		return fmt.Errorf("cannot append to stream %s: got items for %d bytes of records; want %d", l.opts.Stream, start, len(b.Records))
	}
	return nil
}

func (l *Log) leave() {
	if l.inflight.Add(-1) == 0 && l.closing.Load() {
		l.drain.Do(func() { close(l.drained) })
	}
}

// Partitions returns the number of partitions.
func (l *Log) Partitions() int { return len(l.partitions) }

// Partition returns partition i.
func (l *Log) Partition(i int) *Partition { return l.partitions[i] }

// Stream returns the stream's name.
func (l *Log) Stream() string { return l.opts.Stream }

// DiskFull reports whether appends are refused because the disk is full.
func (l *Log) DiskFull() bool { return l.guard.full.Load() }

// fatal ends the log: the storage of a partition failed so that nothing more can be said of what it holds.
func (l *Log) fatal(err error) {
	l.crash.Do(func() {
		l.crashErr.Store(&err)
		close(l.crashed)
	})
	l.opts.Fatal(err)
}

func (l *Log) crashError() error { return *l.crashErr.Load() }

// Close takes no more appends, makes what is queued durable, and closes the log. When ctx ends first, what is still
// queued is answered with ErrClosed. Readers must be closed before.
func (l *Log) Close(ctx context.Context) error {
	l.closed.Do(func() { l.closure = l.close(ctx) })
	return l.closure
}

func (l *Log) close(ctx context.Context) error {
	l.closing.Store(true)
	if l.inflight.Load() == 0 {
		l.drain.Do(func() { close(l.drained) })
	}
	var late error
	select {
	case <-l.drained:
	case <-l.crashed:
	case <-ctx.Done():
		late = fmt.Errorf("cannot drain stream %s: %w", l.opts.Stream, ctx.Err())
		for _, p := range l.partitions {
			p.abandon.Store(true)
		}
	}
	close(l.stop)
	select {
	case <-l.crashed:
		return l.crashError() // what the failed storage still holds on to is left to the end of the process
	default:
	}
	l.loops.Wait()
	if late == nil && !l.guard.full.Load() {
		l.flush(ctx)
	}
	return errors.Join(late, l.release())
}

// flush leaves nothing in the WALs, as far as ctx allows. That makes the next open quick, and a flipped bit at the end
// of a WAL, which nobody can tell from a write that a crash has torn, cannot take an acknowledged event with it.
func (l *Log) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeFlushMax)
	defer cancel()
	for _, p := range l.partitions {
		done, err := p.db.AsyncFlush()
		if err != nil {
			l.opts.Logger.Warn("event log: cannot flush before closing", "stream", l.opts.Stream, "partition", p.index, "err", err)
			continue
		}
		select {
		case <-done:
		case <-ctx.Done():
			return
		case <-l.crashed:
			return
		}
	}
}

// release closes what is open, in the reverse order.
func (l *Log) release() error {
	var errs []error
	for _, p := range l.partitions {
		errs = append(errs, p.close())
	}
	if l.ownCache != nil {
		l.ownCache.Unref()
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
	}
	return errors.Join(errs...)
}

func newGuard(o *Options) *guard {
	g := &guard{fs: o.FS, dir: o.Dir, reserve: o.DiskReserve, ballast: o.BallastBytes, clock: o.Clock, changed: o.Events.DiskFull}
	if o.DiskReserve >= 0 {
		g.open()
	}
	return g
}
