package eventlog

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// retain removes what has expired, now and then, until the log closes.
func (l *Log) retain() {
	defer l.loops.Done()
	ticker := time.NewTicker(min(max(l.opts.Retention/retentionTicks, retentionTickMin), retentionTickMax))
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
		}
		if err := l.Trim(l.opts.Clock.NowMS()); err != nil {
			l.opts.Logger.Error("event log: retention failed, will be tried again", "stream", l.opts.Stream, "err", err)
		}
	}
}

// Trim removes the events that arrived longer than the retention before nowMS, in whole frames, oldest first, as far
// as they are warm and not held; what is not warm becomes so for the next time. The log calls it by itself.
func (l *Log) Trim(nowMS int64) error {
	if l.opts.Retention <= 0 {
		return nil
	}
	var errs []error
	for _, p := range l.partitions {
		errs = append(errs, p.trimBefore(nowMS-l.opts.Retention.Milliseconds()))
	}
	return errors.Join(errs...)
}

// trimBefore removes the frames whose HighArrival lies before cutoffMS.
func (p *Partition) trimBefore(cutoffMS int64) error {
	p.trimming.Lock()
	defer p.trimming.Unlock()
	if failure := p.failure.Load(); failure != nil {
		return *failure
	}
	first := p.first()
	warm, hold := p.warm.Load(), p.hold.Load()
	mark, err := p.expired(first, min(warm, hold), cutoffMS)
	if err != nil {
		return err
	}
	if mark.First == warm && warm < hold {
		if err := p.flushExpired(mark, min(p.durable.load(), hold), cutoffMS); err != nil {
			return err
		}
	}
	if mark.First <= first {
		return nil
	}
	batch := p.db.NewBatch()
	defer batch.Close()
	err = errors.Join(
		batch.DeleteRange(frameKey(nil, first), frameKey(nil, mark.First), nil),
		batch.Set(trimKey, mark.append(nil), nil))
	if err != nil {
		return fmt.Errorf("cannot trim: %w", err)
	}
	// Before the frames go: a reader that finds one gone must find the reason too.
	p.trimmed.Store(&mark)
	if err := batch.Commit(pebble.Sync); err != nil {
		return p.fail(fmt.Errorf("cannot trim: %w", err))
	}
	p.count.trims.Add(1)
	if p.log.opts.Events.Trimmed != nil {
		p.log.opts.Events.Trimmed(p.index, mark.First)
	}
	return nil
}

// flushExpired makes what has expired beyond warm, where mark ends, warm for the next trim: a stream with few events would
// keep them until a write buffer is full.
func (p *Partition) flushExpired(mark trimMark, end, cutoffMS int64) error {
	beyond, err := p.expired(mark.First, end, cutoffMS)
	if err != nil || beyond.First <= mark.First {
		return err
	}
	if _, err := p.db.AsyncFlush(); err != nil {
		return fmt.Errorf("cannot flush what has expired: %w", err)
	}
	return nil
}

// expired searches [first, end) for the last frame that lies in it as a whole and has expired, and returns the mark
// that removing everything up to it leaves. HighArrival is sorted but for frames of a clock that was ahead and was set
// back: what lies before an expired frame was accepted before it and goes with it, and a search that stopped in front
// of such frames is repeated behind what it found.
func (p *Partition) expired(first, end, cutoffMS int64) (mark trimMark, err error) {
	mark = trimMark{First: first}
	it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: framesBegin, UpperBound: framesEnd})
	if err != nil {
		return mark, p.readError(first, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for {
		next, err := p.expiredPrefix(it, mark, end, cutoffMS)
		if err != nil || next == mark {
			return mark, err
		}
		mark = next
	}
}

// expiredPrefix is one binary search of expired, in [mark.First, end).
func (p *Partition) expiredPrefix(it *pebble.Iterator, mark trimMark, end, cutoffMS int64) (trimMark, error) {
	var key []byte
	for low, high := mark.First, end; low < high; {
		middle := low + (high-low)/2
		key = frameKey(key, middle+1)
		if !it.SeekLT(key) {
			if err := it.Error(); err != nil {
				return mark, p.readError(middle, err)
			}
			return mark, p.corruption(middle, fmt.Errorf("%w: no frame holds the offset", errFrame))
		}
		_, h, err := p.frameAt(it)
		if err != nil {
			return mark, err
		}
		if h.HighArrival < cutoffMS && h.end() <= end {
			mark = trimMark{First: h.end(), MaxTime: h.HighTime}
			low = h.end()
		} else {
			high = h.First
		}
	}
	return mark, nil
}
