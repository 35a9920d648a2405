package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weirstream/weir/internal/slide"
)

// Counter is one counter in one partition: what it knows of time, and where it is in the log. Its lane guards it.
type Counter struct {
	ID     uint32
	Limits slide.Limits

	marker
	sweep sweep
}

func (m *marker) h() int64 { return max(m.horizon.H(), m.floor) }

// Accept takes an event's ts in and says whether the counter counts it. The caller holds the lane.
func (c *Counter) Accept(ts int64) bool { return !c.belowFloor(ts) && c.horizon.Accept(ts) }

// AcceptAhead is Accept for an event with ts > latest, the most that H believes.
func (c *Counter) AcceptAhead(ts, latest int64) bool {
	return !c.belowFloor(ts) && c.horizon.AcceptAhead(ts, latest)
}

// belowFloor says that ts lies below a floor that the horizon itself no longer knows of; it takes note of the time
// without taking the event.
func (c *Counter) belowFloor(ts int64) bool {
	if ts > c.floor || c.floor == slide.NoHorizon {
		return false
	}
	c.horizon.Late++
	c.horizon.Oldest = min(c.horizon.Oldest, ts)
	return true
}

// Next returns the offset of the first event that c has not taken. The caller holds the lane.
func (c *Counter) Next() int64 { return c.next }

// Standing is what a counter knows of time and log at one moment.
type Standing struct {
	Next          int64 // offset of the first event that is not in it
	H             int64 // lateness horizon; slide.NoHorizon before the first event
	Newest        int64 // largest accepted ts that H follows, if Seen
	Seen          bool
	Late          int64 // events that were too late
	CompleteSince int64 // slide.CompleteAlways if it holds everything
}

// Standing returns where one of the lane's counters stands.
func (l *Lane) Standing(c *Counter) Standing {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return Standing{
		Next: c.next, H: c.h(), Newest: c.horizon.Newest, Seen: c.horizon.Seen, Late: c.horizon.Late,
		CompleteSince: c.completeSince(),
	}
}

// Lose says that the log has lost the events from c's next offset up to next, the latest of them at ts lost. The caller
// holds the lane, or is the only one to know c.
func (c *Counter) Lose(next, lost int64) {
	if next > c.next {
		c.next, c.lost = next, max(c.lost, lost)
	}
}

func (m *marker) completeSince() int64 {
	since := m.horizon.CompleteSince(m.lost)
	if m.floor != slide.NoHorizon && m.horizon.Seen && m.horizon.Oldest <= m.floor {
		since = max(since, m.floor+1)
	}
	return since
}

// Catalog returns the counters that the store holds, by id.
func (s *Store) Catalog() []Entry {
	s.writer.Lock()
	defer s.writer.Unlock()
	entries := make([]Entry, 0, len(s.writer.catalog))
	for _, id := range slices.Sorted(maps.Keys(s.writer.catalog)) {
		entries = append(entries, *s.writer.catalog[id])
	}
	return entries
}

// Create adds a counter under a new id, which it sets in e. It has counted nothing and goes on at offset start; lost is
// the largest ts among events that retention removed before start (NoHorizon: none).
func (s *Store) Create(e Entry, parts int, start, lost int64) (Entry, error) {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.usable(); err != nil {
		return e, err
	}
	sequence := uint32(0)
	for id := range s.writer.catalog {
		sequence = max(sequence, KeySequence(id))
	}
	// Ids of dropped counters are not given out again while the store is open, and after that nothing of them is left.
	sequence = max(sequence, s.writer.sequence) + 1
	s.writer.sequence = sequence
	e.ID = CounterID(sequence, parts)
	m := marker{next: start, floor: slide.NoHorizon, lost: lost, horizon: slide.NewHorizon(e.LongestMS, e.LatenessMS)}
	err := s.change(func(b *pebble.Batch) error {
		lower, upper := counterBounds(e.ID)
		return cmp.Or(
			b.DeleteRange(lower, upper, nil),
			b.Set(metaKey(catalogLetter, e.ID), appendEntry(nil, &e), nil),
			b.Set(metaKey(markerLetter, e.ID), appendMarker(nil, &m), nil))
	})
	if err != nil {
		return e, err
	}
	s.writer.catalog[e.ID] = &e
	s.writer.persisted[e.ID] = m
	s.publishPersisted()
	return e, nil
}

// Update rewrites the catalog's entry of a counter that stays what it is.
func (s *Store) Update(e Entry) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if s.writer.catalog[e.ID] == nil {
		return fmt.Errorf("cannot update counter %d: %w", e.ID, ErrUnknownCounter)
	}
	s.writer.catalog[e.ID] = &e
	return s.change(func(b *pebble.Batch) error {
		return b.Set(metaKey(catalogLetter, e.ID), appendEntry(nil, &e), nil)
	})
}

// Drop removes a counter and everything it counted. No lane may hold it.
func (s *Store) Drop(id uint32) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	delete(s.writer.catalog, id)
	delete(s.writer.persisted, id)
	s.writer.sequence = max(s.writer.sequence, KeySequence(id))
	s.publishPersisted()
	return s.change(func(b *pebble.Batch) error {
		lower, upper := counterBounds(id)
		return cmp.Or(
			b.DeleteRange(lower, upper, nil),
			b.Delete(metaKey(catalogLetter, id), nil),
			b.Delete(metaKey(markerLetter, id), nil))
	})
}

// change writes one batch. The caller holds writer.
func (s *Store) change(fill func(*pebble.Batch) error) error {
	b := s.db.NewBatch()
	defer b.Close() //nolint:errcheck // a batch that was committed, or is thrown away
	if err := fill(b); err != nil {
		return fmt.Errorf("cannot change the catalog: %w", err)
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return s.fail(fmt.Errorf("cannot change the catalog: %w", err))
	}
	return nil
}

// Counter opens a counter of the catalog. A change of its longest window or lateness takes effect here: its horizon moves
// up at once, or stays where it is until newer events move it.
func (s *Store) Counter(e Entry, limits slide.Limits) (*Counter, error) {
	s.writer.Lock()
	defer s.writer.Unlock()
	if s.writer.catalog[e.ID] == nil {
		return nil, fmt.Errorf("cannot open counter %d: %w", e.ID, ErrUnknownCounter)
	}
	record, closer, err := s.db.Get(metaKey(markerLetter, e.ID))
	if err != nil {
		return nil, fmt.Errorf("cannot read the marker of counter %s: %w", e.Name, err)
	}
	m, err := decodeMarker(record)
	if err := cmp.Or(err, closer.Close()); err != nil {
		return nil, fmt.Errorf("counter %s: %w", e.Name, err)
	}
	before := m.h()
	m.horizon.Span = slide.NewHorizon(e.LongestMS, e.LatenessMS).Span
	if m.horizon.H() < before {
		m.floor = before
	}
	return &Counter{ID: e.ID, Limits: limits, marker: m}, nil
}
