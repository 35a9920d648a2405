package counter

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/state"
)

// feeder takes events out of a partition's log and into a lane. The loop has one, and every builder.
type feeder struct {
	log    *eventlog.Partition
	lane   *state.Lane
	shares []*share
	ahead  int64 // Stream.AheadMS
	reader *eventlog.Reader
	batch  batch

	waitRoom func(context.Context) error // makes room in the lane
	applied  func(next int64)            // every event below next can be looked up
}

// step feeds what is there below limit, at most one frame, and says whether there was anything.
func (f *feeder) step(ctx context.Context, next, limit int64) (bool, error) {
	if len(f.shares) == 0 {
		f.skip(limit)
		return true, nil
	}
	if f.reader == nil || f.reader.Offset() != next {
		if err := f.seek(next); err != nil {
			return false, err
		}
	}
	frame, ok, err := f.reader.Next(limit)
	if errors.Is(err, eventlog.ErrTrimmed) {
		return true, f.lose()
	}
	if err != nil || !ok {
		return false, err
	}
	return true, f.feed(ctx, frame)
}

func (f *feeder) seek(next int64) error {
	if err := f.close(); err != nil {
		return err
	}
	f.reader = f.log.NewReader(next)
	return nil
}

// rest lets go of the ring's memory, before a wait: there is nothing to read below next.
func (f *feeder) rest(next int64) error {
	if f.reader == nil {
		return nil
	}
	_, _, err := f.reader.Next(next)
	return err
}

func (f *feeder) close() error {
	if f.reader == nil {
		return nil
	}
	err := f.reader.Close()
	f.reader = nil
	return err
}

// skip moves a lane without counters.
func (f *feeder) skip(next int64) {
	f.lane.Lock()
	f.lane.Advance(next)
	f.lane.Unlock()
	f.applied(next)
}

// lose goes on where retention left the log. It does not come to that while the log keeps what Hold asked for.
func (f *feeder) lose() error {
	first, maxTime := f.log.Trimmed()
	f.lane.Lock()
	for _, s := range f.shares {
		s.state.Lose(first, maxTime)
	}
	f.lane.Advance(first)
	f.lane.Unlock()
	f.applied(first)
	return f.close()
}

// feed takes a frame in, a batch at a time.
func (f *feeder) feed(ctx context.Context, frame eventlog.Frame) error {
	records, offset, end := frame.Records, frame.First, frame.First+int64(frame.Count)
	for offset < end {
		b := &f.batch
		b.reset()
		for n := 0; offset < end && n < batchEventsMax && !b.full(); n++ {
			var err error
			if records, err = b.event.Decode(records); err != nil {
				return fmt.Errorf("cannot count the event at offset %d: %w", offset, err)
			}
			b.add(f.shares, offset, f.latest(&b.event))
			offset++
		}
		if err := f.apply(ctx, offset); err != nil {
			return err
		}
	}
	return nil
}

// latest returns the largest time of e that horizons follow.
func (f *feeder) latest(e *event.Event) int64 {
	if latest := e.Arrival + f.ahead; f.ahead > 0 && latest > e.Arrival {
		return latest
	}
	return math.MaxInt64
}

// apply adds the batch, whose events end at offset next, to the lane.
func (f *feeder) apply(ctx context.Context, next int64) error {
	b := &f.batch
	f.lane.Lock()
	for !f.lane.Room(len(b.arrivals), len(b.keys)) {
		f.lane.Unlock()
		if err := f.waitRoom(ctx); err != nil {
			return err
		}
		f.lane.Lock()
	}
	start := 0
	for i := range b.arrivals {
		a := &b.arrivals[i]
		key := b.keys[start:a.keyEnd]
		start = a.keyEnd
		if a.offset < a.share.state.Next() {
			continue // counted before a restart; the others of the lane are behind
		}
		if a.accepted() {
			f.lane.Add(a.hash, key, a.entry)
			a.share.counted.Add(1)
		} else {
			a.share.late.Add(1)
		}
	}
	f.lane.Advance(next)
	f.lane.Unlock()
	f.applied(next)
	return nil
}
