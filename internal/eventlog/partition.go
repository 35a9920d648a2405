package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/ring"
)

// Frontiers are a partition's offsets. First is the first one that retention left; the others are exclusive ends.
// First ≤ Warm ≤ Durable ≤ Appended.
type Frontiers struct{ First, Appended, Durable, Warm int64 }

// Partition is one partition of a Log. Its methods may be called by any goroutine.
type Partition struct {
	log   *Log
	index int
	db    *pebble.DB
	ring  *ring.Ring
	queue queue
	loop  sync.WaitGroup // the appender

	flushed chan struct{} // holds one: a write buffer has become a table
	abandon atomic.Bool   // closing without draining

	appended frontier
	durable  frontier
	warm     atomic.Int64
	acked    atomic.Int64
	hold     atomic.Int64
	failure  atomic.Pointer[error]

	trimming sync.Mutex // one retention at a time
	trimmed  atomic.Pointer[trimMark]

	count  counters
	writer appender // of the appender alone
}

// openPartition opens and recovers partition index, which it makes only if the stream is fresh. The appender does not run
// yet.
func openPartition(l *Log, index int, fs vfs.FS, fresh bool) (p *Partition, err error) {
	p = &Partition{log: l, index: index, flushed: make(chan struct{}, 1)}
	p.queue.wake = make(chan struct{}, 1)
	p.queue.bytesMax = max(l.opts.QueueBytesMax/int64(l.opts.Partitions), 1)
	p.hold.Store(math.MaxInt64)
	dir := l.opts.FS.PathJoin(l.opts.Dir, fmt.Sprintf("p%0*d", partitionDirWidth, index))
	db, err := openStore(&l.opts, fs, dir, fresh, p.noteFlush, p.fatal)
	if err != nil {
		if errors.Is(err, pebble.ErrDBDoesNotExist) {
			return nil, fmt.Errorf("%w: folder %s is missing or lost its marker files: the stream has stored events there", ErrCorrupt, dir)
		}
		if pebble.IsCorruptionError(err) {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	p.db = db
	if err := p.identify(); err != nil {
		return nil, err
	}
	last, err := p.recoverFrontiers()
	if err != nil {
		return nil, err
	}
	p.ring, err = ring.New(ring.Options{
		BytesMax: l.opts.RingBytes / int64(l.opts.Partitions),
		AgeMS:    l.opts.RingAge.Milliseconds(),
		End:      last.end(),
	})
	if err != nil {
		return nil, err
	}
	if err := p.writer.init(p, last); err != nil {
		return nil, err
	}
	return p, nil
}

// identify refuses a store that belongs to another partition, and marks a new one.
func (p *Partition) identify() error {
	want := identity{Partition: p.index, Partitions: p.log.opts.Partitions}
	value, err := get(p.db, identityKey)
	if err != nil {
		return p.readError(0, err)
	}
	if value == nil {
		return p.db.Set(identityKey, want.append(nil), pebble.Sync)
	}
	got, err := parseIdentity(value)
	if err != nil {
		return p.corruption(0, err)
	}
	if got != want {
		return p.corruption(0, fmt.Errorf("got the folder of partition %d of %d; want %d of %d",
			got.Partition, got.Partitions, want.Partition, want.Partitions))
	}
	return nil
}

// recoverFrontiers reads from the store where the log begins and ends, and returns the header of the last frame.
func (p *Partition) recoverFrontiers() (last frameHeader, err error) {
	mark := trimMark{First: untrimmedFirst, MaxTime: noTime}
	value, err := get(p.db, trimKey)
	if err != nil {
		return last, p.readError(0, err)
	}
	if value != nil {
		if mark, err = parseTrimMark(value); err != nil {
			return last, p.corruption(0, err)
		}
	}
	last, found, err := p.lastFrame(false)
	if err != nil {
		return last, err
	}
	if !found {
		// An empty log, or one that retention emptied: it goes on where it was.
		last = frameHeader{First: mark.First, HighTime: mark.MaxTime, HighArrival: noTime}
	}
	if last.end() < mark.First {
		return last, p.corruption(last.end(), fmt.Errorf("got a last frame that ends at %d; retention removed all below %d", last.end(), mark.First))
	}
	p.trimmed.Store(&mark)
	p.warm.Store(mark.First)
	p.appended.value.Store(last.end())
	p.durable.value.Store(last.end())
	p.acked.Store(last.end())
	return last, p.refreshWarm()
}

// lastFrame returns the header of the newest frame; with tablesOnly, of the newest one in the warm tier's tables.
func (p *Partition) lastFrame(tablesOnly bool) (h frameHeader, found bool, err error) {
	it, err := p.db.NewIter(&pebble.IterOptions{
		LowerBound: framesBegin, UpperBound: framesEnd, OnlyReadGuaranteedDurable: tablesOnly,
	})
	if err != nil {
		return h, false, p.readError(0, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Last() {
		if err := it.Error(); err != nil {
			return h, false, p.readError(0, err)
		}
		return h, false, nil
	}
	_, h, err = p.frameAt(it)
	return h, err == nil, err
}

// frameAt verifies the frame under a positioned iterator. frame aliases the iterator's memory.
func (p *Partition) frameAt(it *pebble.Iterator) (records []byte, h frameHeader, err error) {
	offset, ok := frameKeyOffset(it.Key())
	if !ok {
		return nil, h, p.corruption(0, fmt.Errorf("got key %x among the frames", it.Key()))
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return nil, h, p.readError(offset, err)
	}
	records, err = h.parse(value)
	if err == nil && h.First != offset {
		err = fmt.Errorf("%w: got first offset %d under key %d", errFrame, h.First, offset)
	}
	if err != nil {
		return nil, h, p.corruption(offset, err)
	}
	return records, h, nil
}

// corruption names the place of stored bytes that are not what was written.
func (p *Partition) corruption(offset int64, err error) error {
	return &Corruption{Stream: p.log.opts.Stream, Partition: p.index, Offset: offset, Err: err}
}

// readError tells corruption that the store found from other failures to read.
func (p *Partition) readError(offset int64, err error) error {
	if pebble.IsCorruptionError(err) {
		return p.corruption(offset, err)
	}
	return fmt.Errorf("cannot read stream %s, partition %d, offset %d: %w", p.log.opts.Stream, p.index, offset, err)
}

// refreshWarm looks how far the tables of the warm tier reach. Any goroutine may call it.
func (p *Partition) refreshWarm() error {
	last, found, err := p.lastFrame(true)
	if err != nil || !found {
		return err
	}
	for {
		warm := p.warm.Load()
		if last.end() <= warm || p.warm.CompareAndSwap(warm, last.end()) {
			return nil
		}
	}
}

// noteFlush is called by Pebble, which must not wait.
func (p *Partition) noteFlush() {
	select {
	case p.flushed <- struct{}{}:
	default:
	}
}

// Index returns the partition's number.
func (p *Partition) Index() int { return p.index }

// Frontiers returns the partition's frontiers, which hold together.
func (p *Partition) Frontiers() Frontiers {
	// From the slowest to the fastest, so that a frontier that moves meanwhile does not overtake.
	f := Frontiers{First: p.first(), Warm: p.warm.Load()}
	f.Durable = p.durable.load()
	f.Appended = p.appended.load()
	f.Warm = max(f.Warm, f.First)
	return f
}

func (p *Partition) first() int64 { return p.trimmed.Load().First }

// Acked returns the exclusive end of what any client was told is stored.
func (p *Partition) Acked() int64 { return p.acked.Load() }

// WaitDurable returns nil when Durable > offset, ctx's error when that ends first, and ErrClosed or an error that wraps
// ErrFailed when it will not come.
func (p *Partition) WaitDurable(ctx context.Context, offset int64) error {
	return p.durable.wait(ctx, offset)
}

// WaitAppended is WaitDurable for Appended.
func (p *Partition) WaitAppended(ctx context.Context, offset int64) error {
	return p.appended.wait(ctx, offset)
}

// Hold keeps retention from removing offset and what is above it: what a state has not counted yet. Each call replaces
// the last; before the first, nothing is held.
func (p *Partition) Hold(offset int64) { p.hold.Store(offset) }

// Trimmed returns the first offset that retention left, and the highest source_ts in ms among the events it removed:
// math.MinInt64 where it removed none.
func (p *Partition) Trimmed() (first, maxTime int64) {
	mark := p.trimmed.Load()
	return mark.First, mark.MaxTime
}

// fatal ends the partition and the log: the store below cannot go on.
func (p *Partition) fatal(err error) { p.log.fatal(p.fail(err)) }

func (p *Partition) fail(err error) error {
	if !errors.Is(err, ErrFailed) {
		err = fmt.Errorf("%w: stream %s, partition %d: %w", ErrFailed, p.log.opts.Stream, p.index, err)
	}
	p.failure.CompareAndSwap(nil, &err)
	err = *p.failure.Load()
	p.appended.finish(err)
	p.durable.finish(err)
	return err
}

// close stops the appender, which drains its queue first, and closes the store.
func (p *Partition) close() error {
	p.queue.close()
	p.loop.Wait()
	p.appended.finish(ErrClosed)
	p.durable.finish(ErrClosed)
	p.ring.Close()
	return errors.Join(p.writer.close(), p.db.Close())
}

// counters are written by the appender and read by Stats.
type counters struct {
	events, bytes, duplicates, commits, frames, overloads, trims atomic.Int64
}

// Stats is a snapshot of what a partition holds and has done since it was opened.
type Stats struct {
	Frontiers Frontiers
	Acked     int64

	RingBytes    int64 // mapped
	RingBytesMax int64
	RingChunks   int
	RingFirst    int64 // the ring holds RingFirst..Frontiers.Appended
	WarmBytes    int64 // files on disk, the WAL included
	DedupIDs     int64
	DedupBytes   int64
	QueueBytes   int64
	QueueMax     int64

	Requests      int64 // parts of appends that were admitted
	Events, Bytes int64 // appended; bytes are those of records
	Duplicates    int64
	Commits       int64 // fsyncs
	Frames        int64
	Spills        int64 // chunks that left the ring before their age
	Overloads     int64 // appends refused
	Trims         int64 // times that retention removed something
}

// Stats returns the partition's statistics.
func (p *Partition) Stats() Stats {
	r := p.ring.Stats()
	return Stats{
		Frontiers: p.Frontiers(), Acked: p.Acked(),
		RingBytes: r.Bytes, RingBytesMax: p.log.opts.RingBytes / int64(p.log.opts.Partitions), RingChunks: r.Chunks,
		RingFirst: r.First, WarmBytes: int64(p.db.Metrics().DiskSpaceUsage()),
		DedupIDs: p.writer.seen.ids.Load(), DedupBytes: p.writer.seen.bytes.Load(),
		QueueBytes: p.queue.bytes.Load(), QueueMax: p.queue.bytesMax,
		Requests: p.queue.admitted.Load(),
		Events:   p.count.events.Load(), Bytes: p.count.bytes.Load(), Duplicates: p.count.duplicates.Load(),
		Commits: p.count.commits.Load(), Frames: p.count.frames.Load(), Spills: r.Spills,
		Overloads: p.count.overloads.Load(), Trims: p.count.trims.Load(),
	}
}
