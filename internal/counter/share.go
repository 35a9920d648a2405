package counter

import (
	"bytes"
	"math"
	"sync/atomic"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/path"
	"github.com/weirstream/weir/internal/predicate"
	"github.com/weirstream/weir/internal/slide"
	"github.com/weirstream/weir/internal/state"
)

// share is one counter's part in one partition.
type share struct {
	plan   *plan
	entry  state.Entry
	state  *state.Counter
	where  *predicate.Predicate // this goroutine's own
	finder *path.Finder         // of the key's parts; likewise

	live  atomic.Bool
	start int64        // where building began
	built atomic.Int64 // offset that building has reached

	counted      atomic.Int64
	late         atomic.Int64
	skippedWhere atomic.Int64
	skippedKey   atomic.Int64
	whereErrors  atomic.Int64
}

// progress returns how much of the log below end has been built, 0..1.
func (s *share) progress(end int64) float64 {
	if s.live.Load() || end <= s.start {
		return 1
	}
	return math.Min(1, float64(s.built.Load()-s.start)/float64(end-s.start))
}

// arrival is an event that a share counts unless it is late.
type arrival struct {
	share  *share
	offset int64
	hash   uint64
	keyEnd int   // of its key in batch.keys
	latest int64 // the largest ts that H follows
	entry  slide.Entry
}

// accepted takes the arrival's time in and says whether its counter counts it. The caller holds the lane.
func (a *arrival) accepted() bool {
	if a.entry.TS > a.latest {
		return a.share.state.AcceptAhead(a.entry.TS, a.latest)
	}
	return a.share.state.Accept(a.entry.TS)
}

// Bounds of one batch: how long the lane is locked at a time.
const (
	batchEventsMax = 512
	batchBytesMax  = 16 << 10
)

// batch is what the loop takes to the lane in one go. Everything that needs only the event itself is done before.
type batch struct {
	event    event.Event
	part     []byte // scratch
	keys     []byte
	arrivals []arrival
}

func (b *batch) reset() { b.keys, b.arrivals = b.keys[:0], b.arrivals[:0] }

func (b *batch) full() bool { return len(b.keys) >= batchBytesMax }

// add works out under which keys shares count the event that was decoded into b.event. Horizons follow its time up to
// latest.
func (b *batch) add(shares []*share, offset, latest int64) {
	hashed := false
	var fp uint64
	for _, s := range shares {
		start := len(b.keys)
		if !s.matches(&b.event) || !b.appendKey(s) {
			b.keys = b.keys[:start]
			continue
		}
		if !hashed {
			fp, hashed = b.event.Hash().Lo, true
		}
		b.arrivals = append(b.arrivals, arrival{
			share:  s,
			offset: offset,
			hash:   state.HashKey(b.keys[start:]),
			keyEnd: len(b.keys),
			latest: latest,
			entry:  slide.Entry{TS: b.event.Time, FP: fp},
		})
	}
}

// matches says whether the share counts this kind of event.
func (s *share) matches(e *event.Event) bool {
	if s.where == nil {
		return true
	}
	match, err := s.where.Match(e)
	switch {
	case err != nil:
		s.whereErrors.Add(1)
	case !match:
		s.skippedWhere.Add(1)
	}
	return match && err == nil
}

// appendKey appends the event's key for a share to b.keys. false: the event has none.
func (b *batch) appendKey(s *share) bool {
	b.keys = state.AppendCounterID(b.keys, s.entry.ID)
	s.finder.Find(&b.event)
	for i := range s.plan.key {
		ok := false
		b.part, ok = s.finder.AppendKeyPart(b.part[:0], i, &b.event)
		// A local key that is not what the event was routed by would be looked for in another partition.
		lost := i == 0 && s.plan.local && !bytes.Equal(b.part, b.event.Segment)
		if !ok || lost || len(b.part) > state.KeyPartBytesMax {
			s.skippedKey.Add(1)
			return false
		}
		b.keys = state.AppendKeyPart(b.keys, b.part)
	}
	return true
}
