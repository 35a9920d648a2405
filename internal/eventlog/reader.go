package eventlog

import (
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/weirstream/weir/internal/ring"
)

// Frame is a run of consecutive events. It is valid until its reader's next Next or Close.
type Frame struct {
	First            int64  // offset of the first event
	Count            int    // events; at least 1
	Records          []byte // event.Event records, one behind the other
	MinTime, MaxTime int64  // bounds of the events' source_ts in ms; not tight where the frame was cut
}

// ScanOptions configures NewScan.
type ScanOptions struct {
	// Frames without an event whose source_ts lies in TimeFrom <= ts < TimeTo, in ms, may be left out; the reader's
	// offset passes over them. Both 0: none are.
	TimeFrom, TimeTo int64
}

// Reader reads a partition in offset order, from the ring where it holds the offset and from the warm tier where it
// does not. One goroutine at a time may use it.
type Reader struct {
	p    *Partition
	next int64
	ring *ring.Reader
	warm *pebble.Iterator // nil where none is open

	patient bool   // holds neither ring memory nor an iterator between calls
	copied  []byte // the frame of a patient reader
	filter  bool
	times   ScanOptions
	filters [2]pebble.BlockPropertyFilter // one, and the room Pebble asks for
	bounds  sstable.BlockIntervalFilter
	key     []byte
	frames  int   // read from warm since it was opened
	warmEnd int64 // warm holds every frame below
}

// warmFramesMax is how many frames an iterator of the warm tier reads before it is opened anew, so that it does not
// hold on to files that compactions have replaced for as long as the reader lives.
const warmFramesMax = 1024

// NewReader returns a reader that begins at offset from, for a caller that calls Next again soon: between calls it may
// pin memory of the ring, which the appender then cannot use. It reads without copying.
func (p *Partition) NewReader(from int64) *Reader {
	return &Reader{p: p, next: from, ring: p.ring.NewReader()}
}

// NewScan returns a reader that begins at offset from, for a caller that may take its time between calls, such as one
// that writes to a client: it holds nothing meanwhile, and copies each frame for that.
func (p *Partition) NewScan(from int64, o ScanOptions) *Reader {
	r := p.NewReader(from)
	r.patient, r.times, r.filter = true, o, o != ScanOptions{}
	return r
}

// Offset returns the offset that Next goes on at.
func (r *Reader) Offset() int64 { return r.next }

// Next returns the frame with the next events, none of which has an offset of limit or above, and moves behind it. ok
// is false when there is none yet. A reader that keeps state passes the durable frontier as its limit.
//
// The error is ErrTrimmed where retention has removed the offset, *Corruption where stored bytes are not what was
// written, ErrClosed after Close, or what the storage reported; the reader stays where it is.
func (r *Reader) Next(limit int64) (frame Frame, ok bool, err error) {
	if r.ring == nil {
		return Frame{}, false, ErrClosed
	}
	for r.next < limit {
		at := r.next
		header, records, found, err := r.find(limit)
		if err != nil || !found && r.next == at {
			return Frame{}, false, err
		}
		if !found {
			continue // the filter passed over something
		}
		if r.filter && (header.MaxTime < r.times.TimeFrom || header.MinTime >= r.times.TimeTo) {
			r.next = min(header.end(), limit)
			continue
		}
		frame, err = r.cut(&header, records, limit)
		if err != nil {
			return Frame{}, false, r.p.corruption(r.next, err)
		}
		r.next = frame.First + int64(frame.Count)
		return frame, true, nil
	}
	r.rest()
	return Frame{}, false, nil
}

// find returns the frame that holds the next offset; with a time filter, that one or a later one.
func (r *Reader) find(limit int64) (h frameHeader, records []byte, found bool, err error) {
	if r.next < r.p.first() {
		return h, nil, false, r.trimmedError()
	}
	entry, where := r.ring.Find(r.next)
	switch where {
	case ring.Here:
		r.closeWarm()
		h.peek(entry.Bytes)
		return h, r.keep(entry.Bytes)[frameHeaderBytes:], true, nil
	case ring.Ahead:
		r.rest()
		return h, nil, false, nil
	default:
		r.ring.Release()
		return r.findWarm(limit)
	}
}

// findWarm looks in the warm tier for an offset that the ring has let go of. What the ring lets go of is in the tables
// already, so an iterator that was opened after the ring was asked must see it; an older one may not.
func (r *Reader) findWarm(limit int64) (h frameHeader, records []byte, found bool, err error) {
	for fresh := r.warm == nil; ; fresh = true {
		if fresh || r.frames >= warmFramesMax {
			if err := r.openWarm(); err != nil {
				return h, nil, false, err
			}
			fresh = true
		}
		h, records, found, err = r.readWarm()
		if found && h.First >= limit {
			r.next = limit // only a filter leaves that much out
			return h, nil, false, nil
		}
		if err != nil || found {
			return h, records, found, err
		}
		if fresh {
			break
		}
	}
	r.closeWarm()
	if r.next < r.p.first() {
		return h, nil, false, r.trimmedError()
	}
	if r.filter {
		r.next = min(max(r.warmEnd, r.next), limit) // nothing that passes the filter lies before
		return h, nil, false, nil
	}
	return h, nil, false, r.p.corruption(r.next, fmt.Errorf("%w: no frame holds the offset", errFrame))
}

// readWarm returns the frame under the iterator that holds the next offset.
func (r *Reader) readWarm() (h frameHeader, records []byte, found bool, err error) {
	it := r.warm
	if r.frames > 0 && it.Valid() {
		it.Next() // most reads go on
	}
	if offset, ok := r.at(); r.frames == 0 || !ok || offset != r.next {
		r.key = frameKey(r.key, r.next+1)
		if !it.SeekLT(r.key) {
			it.First()
		}
	}
	for ; it.Valid(); it.Next() {
		value, header, err := r.p.frameAt(it)
		if err != nil {
			return h, nil, false, err
		}
		r.frames++
		switch {
		case header.end() <= r.next:
			continue
		case header.First > r.next && !r.filter:
			return h, nil, false, nil
		}
		if r.patient {
			r.copied = append(r.copied[:0], value...)
			value = r.copied
			r.closeWarm()
		}
		return header, value, true, nil
	}
	if err := it.Error(); err != nil {
		r.closeWarm()
		return h, nil, false, r.p.readError(r.next, err)
	}
	return h, nil, false, nil
}

func (r *Reader) at() (offset int64, ok bool) {
	if !r.warm.Valid() {
		return 0, false
	}
	return frameKeyOffset(r.warm.Key())
}

// keep returns ring bytes that stay: a patient reader copies them and lets go of the ring.
func (r *Reader) keep(frame []byte) []byte {
	if !r.patient {
		return frame
	}
	r.copied = append(r.copied[:0], frame...)
	r.ring.Release()
	return r.copied
}

// cut leaves of a frame what lies in r.next <= offset < limit, which is at least one event.
func (r *Reader) cut(h *frameHeader, records []byte, limit int64) (Frame, error) {
	frame := Frame{First: h.First, Count: h.Count, Records: records, MinTime: h.MinTime, MaxTime: h.MaxTime}
	if skip := r.next - h.First; skip > 0 {
		rest, err := skipRecords(records, int(skip))
		if err != nil {
			return Frame{}, err
		}
		frame.First, frame.Count, frame.Records = r.next, h.Count-int(skip), rest
	}
	if limit < h.end() {
		frame.Count = int(limit - frame.First)
		rest, err := skipRecords(frame.Records, frame.Count)
		if err != nil {
			return Frame{}, err
		}
		frame.Records = frame.Records[:len(frame.Records)-len(rest)]
	}
	return frame, nil
}

func (r *Reader) openWarm() error {
	r.closeWarm()
	options := pebble.IterOptions{LowerBound: framesBegin, UpperBound: framesEnd}
	if r.filter {
		r.bounds.Init(timeProperty, orderedTime(r.times.TimeFrom), orderedTime(max(r.times.TimeTo, r.times.TimeFrom+1)), nil)
		r.filters[0] = &r.bounds
		options.PointKeyFilters = r.filters[:1]
	}
	r.warmEnd = r.p.durable.load() // before the iterator, which sees what was committed when it was opened
	it, err := r.p.db.NewIter(&options)
	if err != nil {
		return r.p.readError(r.next, err)
	}
	r.warm, r.frames = it, 0
	return nil
}

func (r *Reader) closeWarm() {
	if r.warm != nil {
		// Its error, if it has one, was reported when it was read.
		_ = r.warm.Close()
		r.warm = nil
	}
}

// rest lets go of everything that others may want while the reader has nothing to read.
func (r *Reader) rest() {
	r.ring.Release()
	r.closeWarm()
}

func (r *Reader) trimmedError() error {
	return fmt.Errorf("cannot read stream %s, partition %d, offset %d: got first offset %d: %w",
		r.p.log.opts.Stream, r.p.index, r.next, r.p.first(), ErrTrimmed)
}

// Close lets go of what the reader holds.
func (r *Reader) Close() error {
	if r.ring != nil {
		r.rest()
		r.ring = nil
	}
	return nil
}

// dedupStart returns the offset at or above lowest where the events begin that arrived at sinceMS or later, in ms.
func (p *Partition) dedupStart(lowest, sinceMS int64) (start int64, err error) {
	it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: frameKey(nil, 0), UpperBound: framesEnd})
	if err != nil {
		return 0, p.readError(lowest, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	start = int64(math.MaxInt64)
	for it.Last(); it.Valid(); it.Prev() {
		_, h, err := p.frameAt(it)
		if err != nil {
			return 0, err
		}
		start = h.First
		if h.First <= lowest || h.HighArrival < sinceMS {
			break
		}
	}
	if err := it.Error(); err != nil {
		return 0, p.readError(lowest, err)
	}
	return max(start, lowest), nil
}
