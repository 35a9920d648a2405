package eventlog

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/invariant"
	"github.com/weirstream/weir/internal/ring"
)

const (
	groupBytesMax = 4 << 20 // of frames in one commit, and at most a quarter of a write buffer

	idleTick  = time.Second      // how often the ring is looked at while nothing comes; less with a shorter RingAge
	stallTick = time.Millisecond // how often a stalled appender looks whether readers have let go of the ring

	// arrivalSlackMS is how far arrivals may fall back before the clock counts as set back.
	arrivalSlackMS = 10 * 60 * 1000
)

// appender is what the one goroutine owns that writes a partition.
type appender struct {
	p        *Partition
	next     int64 // offset of the next event
	written  int64 // exclusive end of the frames in batch or committed
	highTime int64 // see frameHeader
	highSeen int64
	seen     *dedup
	batch    *pebble.Batch // of frames in the ring that are not committed yet
	frame    frameDraft
	key      []byte
	usual    int // bytes of a frame that neither ring nor target is too small for
	groupMax int

	parts   []*part // taken from the queue
	waiting []*part // those of the group whose ack is disk, and every one that is not answered yet
	commit  Commit  // of the group under way
}

// frameDraft is a frame that takes more events: slices of the requests' records, copied when it is written.
type frameDraft struct {
	header frameHeader
	bytes  int
	runs   [][]byte
}

// init makes a the appender behind the last frame, and reads the ids that duplicates may refer to.
func (a *appender) init(p *Partition, last frameHeader) error {
	o := &p.log.opts
	*a = appender{
		p: p, next: last.end(), written: last.end(), highTime: last.HighTime, highSeen: last.HighArrival,
		usual:    min(frameBytesMax, p.ring.EntryBytesUsual()-frameHeaderBytes),
		groupMax: int(min(groupBytesMax, o.MemtableBytes/4)),
	}
	a.seen = newDedup(o.DedupWindow.Milliseconds(), o.DedupMaxIDs, a.next)
	if err := a.rebuildDedup(); err != nil {
		return err
	}
	a.batch = p.db.NewBatch(pebble.WithMaxRetainedSizeBytes(2 * groupBytesMax))
	return nil
}

func (a *appender) close() error { return a.batch.Close() }

// run is the appender's loop: it ends when the queue is closed and empty.
func (p *Partition) run() {
	defer p.loop.Done()
	a := &p.writer
	ticker := time.NewTicker(min(idleTick, max(p.log.opts.RingAge/2, stallTick)))
	defer ticker.Stop()
	for {
		select {
		case <-p.queue.wake:
		case <-p.flushed:
			a.noteFlushed()
		case <-ticker.C:
			p.ring.Retire(p.warm.Load(), p.log.opts.Clock.NowMS())
		}
		closed := false
		a.parts, closed = p.queue.take(a.parts[:0])
		a.process()
		if closed && len(a.parts) == 0 {
			return
		}
		if closed {
			p.queue.close() // look again
		}
	}
}

func (a *appender) noteFlushed() {
	if err := a.p.refreshWarm(); err != nil {
		// The frontier stays: the ring keeps what the tables may not have.
		a.p.log.opts.Logger.Warn("event log: cannot read the warm frontier", "stream", a.p.log.opts.Stream,
			"partition", a.p.index, "err", err)
	}
}

// process stores the parts that were taken, in groups of about groupMax bytes, each behind one fsync.
func (a *appender) process() {
	start := a.p.log.opts.Clock.NowMS()
	taken := int64(0)
	for begin := 0; begin < len(a.parts); {
		end, bytes := begin, 0
		for end < len(a.parts) && (end == begin || bytes < a.groupMax) {
			bytes += len(a.parts[end].batch.Records)
			end++
		}
		a.group(a.parts[begin:end], start)
		begin, taken = end, taken+int64(bytes)
	}
	if elapsed := a.p.log.opts.Clock.NowMS() - start; taken > 0 && elapsed > 0 {
		a.p.queue.rate.Store(taken * 1000 / elapsed)
	}
	clear(a.parts)
}

// group stores some parts: into the ring, then with one fsync into the warm tier.
func (a *appender) group(parts []*part, nowMS int64) {
	p := a.p
	p.ring.Retire(p.warm.Load(), nowMS)
	a.commit = Commit{Partition: p.index, Requests: len(parts)}
	a.waiting = append(a.waiting[:0], parts...)
	err := a.ready()
	for i := 0; i < len(parts) && err == nil; i++ {
		err = a.store(parts[i].batch, nowMS)
	}
	if err == nil {
		err = a.flushFrame(nowMS)
	}
	if err == nil {
		a.answer(AckMemory)
		err = a.sync()
	}
	if err != nil {
		if !errors.Is(err, ErrClosed) {
			err = p.fail(err)
		}
		a.answerAll(err)
		return
	}
	a.answer(AckDisk)
	p.count.duplicates.Add(int64(a.commit.Duplicates))
	if p.log.opts.Events.Committed != nil {
		p.log.opts.Events.Committed(a.commit)
	}
}

// ready says whether the partition may store anything.
func (a *appender) ready() error {
	if failure := a.p.failure.Load(); failure != nil {
		return *failure
	}
	if a.p.abandon.Load() {
		return ErrClosed
	}
	return nil
}

// answer ends the waiting parts that want ack.
func (a *appender) answer(ack Ack) {
	// Before the client hears of it: a look-up that the client makes next must wait for these.
	a.p.acked.Store(max(a.p.acked.Load(), a.ackedBy(ack)))
	kept := a.waiting[:0]
	for _, part := range a.waiting {
		if part.ack == ack {
			a.finish(part, nil)
		} else {
			kept = append(kept, part)
		}
	}
	a.waiting = kept
}

// ackedBy returns the exclusive end of what answering the parts that want ack tells their clients of.
func (a *appender) ackedBy(ack Ack) int64 {
	for _, part := range a.waiting {
		if part.ack == ack {
			return a.written
		}
	}
	return 0
}

func (a *appender) answerAll(err error) {
	for _, part := range a.waiting {
		a.finish(part, err)
	}
	a.waiting = a.waiting[:0]
}

func (a *appender) finish(part *part, err error) {
	a.p.queue.bytes.Add(-int64(len(part.batch.Records)))
	part.answer(err)
}

// store gives the events of a batch their offsets and puts those that are new into frames.
func (a *appender) store(b *event.Batch, nowMS int64) error {
	begin, start := 0, 0 // of the run of new records, and of the record
	for i := range b.Items {
		if i%prefetchItems == 0 {
			a.seen.prefetch(b.Items[i:min(i+prefetchItems, len(b.Items))])
		}
		item := &b.Items[i]
		record := b.Records[start:item.End]
		arrival, ok := recordArrival(record)
		if !ok {
			return fmt.Errorf("cannot append event %d of a batch: %w", i, event.ErrCorrupt)
		}
		item.Offset, item.Duplicate = a.seen.lookup(item.Hash, arrival)
		if item.Duplicate {
			a.frame.take(b.Records[begin:start])
			a.commit.Duplicates++
			begin = int(item.End)
		} else {
			if a.frame.header.Count == frameEventsMax || a.frame.bytes+len(record) > a.usual && a.frame.header.Count > 0 {
				a.frame.take(b.Records[begin:start])
				begin = start
				if err := a.flushFrame(nowMS); err != nil {
					return err
				}
			}
			item.Offset = a.next
			a.seen.push(item.Hash, arrival, a.next)
			a.next++
			a.frame.note(item, arrival, len(record))
		}
		start = int(item.End)
	}
	a.frame.take(b.Records[begin:start])
	return nil
}

// note counts an event in whose record take will bring.
func (f *frameDraft) note(item *event.Item, arrival int64, bytes int) {
	h := &f.header
	if h.Count == 0 {
		*h = frameHeader{First: item.Offset, MinTime: item.Time, MaxTime: item.Time, MinArrival: arrival, MaxArrival: arrival}
	}
	h.Count++
	h.MinTime, h.MaxTime = min(h.MinTime, item.Time), max(h.MaxTime, item.Time)
	h.MinArrival, h.MaxArrival = min(h.MinArrival, arrival), max(h.MaxArrival, arrival)
	f.bytes += bytes
}

func (f *frameDraft) take(records []byte) {
	if len(records) > 0 {
		f.runs = append(f.runs, records)
	}
}

// flushFrame writes the draft, if it holds anything, to the ring and into the batch. It waits while the ring is full.
func (a *appender) flushFrame(nowMS int64) error {
	f := &a.frame
	if f.header.Count == 0 {
		return nil
	}
	size := frameHeaderBytes + f.bytes
	mem, err := a.reserve(size, nowMS)
	if err != nil {
		return err
	}
	at := frameHeaderBytes
	for _, run := range f.runs {
		at += copy(mem[at:], run)
	}
	invariant.Check(at == size, "frame of %d bytes got %d", size, at)
	a.high(&f.header)
	f.header.put(mem)
	a.key = frameKey(a.key, f.header.First)
	if err := a.batch.Set(a.key, mem, nil); err != nil {
		return err
	}
	a.p.ring.Publish(f.header.First, f.header.Count, nowMS)
	a.written = f.header.end()
	a.p.appended.advance(a.written)
	a.commit.Frames++
	a.commit.Events += f.header.Count
	a.commit.Bytes += int64(size)
	a.p.count.frames.Add(1)
	a.p.count.events.Add(int64(f.header.Count))
	a.p.count.bytes.Add(int64(f.bytes))
	clear(f.runs)
	f.runs, f.bytes, f.header = f.runs[:0], 0, frameHeader{}
	if a.batch.Len() >= a.groupMax {
		return a.sync()
	}
	return nil
}

// high fills in the running maxima.
func (a *appender) high(h *frameHeader) {
	a.highTime = max(a.highTime, h.MaxTime)
	if h.MaxArrival > a.highSeen || a.highSeen-h.MaxArrival > arrivalSlackMS {
		a.highSeen = h.MaxArrival
	}
	h.HighTime, h.HighArrival = a.highTime, a.highSeen
}

// sync makes the frames in the batch durable.
func (a *appender) sync() error {
	if a.batch.Empty() {
		return nil
	}
	if err := a.batch.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("cannot commit: %w", err)
	}
	if synced := a.p.log.opts.Events.Synced; synced != nil {
		synced(a.p.index, a.batch.CommitStats().TotalDuration)
	}
	a.batch.Reset()
	a.p.count.commits.Add(1)
	a.p.durable.advance(a.written)
	return nil
}

// reserve returns room in the ring. Where it is full the oldest chunk goes early, if the warm tier's tables have it;
// until they have, the appender waits for them, and its queue grows.
func (a *appender) reserve(size int, nowMS int64) ([]byte, error) {
	p := a.p
	for asked := false; ; {
		mem, err := p.ring.Reserve(size)
		if !errors.Is(err, ring.ErrFull) {
			return mem, err
		}
		if p.ring.Spill(p.warm.Load(), nowMS) {
			if p.log.opts.Events.Spilled != nil {
				p.log.opts.Events.Spilled(p.index, 1)
			}
			continue
		}
		// What waits for the ring must not wait for itself: the frames so far must be able to become warm.
		if err := a.sync(); err != nil {
			return nil, err
		}
		if !asked && p.warm.Load() < p.durable.load() {
			if _, err := p.db.AsyncFlush(); err != nil {
				return nil, fmt.Errorf("cannot flush: %w", err)
			}
			asked = true
		}
		if err := a.stall(); err != nil {
			return nil, err
		}
	}
}

// stall waits for a flush or, because readers do not say when they let go of the ring, for a moment.
func (a *appender) stall() error {
	timer := time.NewTimer(stallTick)
	defer timer.Stop()
	select {
	case <-a.p.flushed:
		a.noteFlushed()
	case <-timer.C:
	case <-a.p.log.crashed:
		return a.p.log.crashError()
	}
	if a.p.abandon.Load() {
		return a.p.fail(ErrClosed)
	}
	return nil
}

// rebuildDedup reads the tail of the log that duplicates may still refer to.
func (a *appender) rebuildDedup() error {
	d := a.seen
	if !d.enabled() || a.next == a.p.first() {
		return nil
	}
	from, err := a.p.dedupStart(max(a.p.first(), a.next-d.max), a.p.log.opts.Clock.NowMS()-d.window)
	if err != nil {
		return err
	}
	d.reset(from)
	r := a.p.NewScan(from, ScanOptions{})
	var e event.Event
	for {
		frame, ok, err := r.Next(math.MaxInt64)
		if err != nil || !ok {
			return errors.Join(err, r.Close())
		}
		for offset, records := frame.First, frame.Records; len(records) > 0; offset++ {
			if records, err = e.Decode(records); err != nil {
				return errors.Join(a.p.corruption(offset, err), r.Close())
			}
			d.push(e.Hash(), e.Arrival, offset)
		}
	}
}
