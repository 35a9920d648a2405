package slide

import (
	"slices"
)

// Answerer answers queries. The zero value is ready; reuse keeps its memory, and then nothing is allocated. Not for
// concurrent use: pool it.
type Answerer struct {
	tally    tally
	entries  set
	joiner   joiner
	arrivals arrivals
	index    index
	times    []int64
	panes    []pane
}

// Answer fills a with what value (nil: an unknown key) says to q. extra are arrivals that may not be in value yet; it
// is not modified. slices may be nil where value is sparse. The error wraps ErrCorrupt, or is the reader's.
//
// A dense value with arrivals, pending or extra, makes it read every slice of the key above the horizon: a copy with
// another ts may lie in any of them.
func (s *Answerer) Answer(value []byte, from SliceReader, extra []Entry, q *Query, a *Answer) error {
	s.tally.start(q, a)
	var err error
	switch {
	case Dense(value):
		err = s.dense(value, from, extra, q.Horizon)
	case len(extra) == 0 && (len(value) == 0 || value[0]&^narrowCountMask == kindNarrow || value[0] == kindWide):
		err = s.single(value, q.Horizon)
	default:
		err = s.sparse(value, extra, q.Horizon)
	}
	if err != nil {
		return err
	}
	s.tally.finish(q, a)
	return nil
}

// single counts a set of one section without looking at its fingerprints: they differ.
func (s *Answerer) single(value []byte, horizon int64) error {
	narrow, wide, src, err := cutSetHeader(value)
	if err != nil || narrow+wide == 0 {
		return err
	}
	n, size := narrow+wide, narrow*narrowBytes+wide*wideBytes
	ts, src, ok := cutBase(src)
	for i := 0; ok && i < n; i++ {
		if i > 0 {
			if ts, src, ok = cutOlder(ts, src); !ok {
				break
			}
		}
		if ts > horizon {
			s.tally.point(ts, 1)
		}
	}
	if !ok || len(src) != size {
		return corruptSet(value, narrow, wide)
	}
	return nil
}

// gather fills arrivals with the distinct events of value (a set) and extra above horizon.
func (s *Answerer) gather(value []byte, extra []Entry, horizon int64) error {
	s.entries.reset()
	if err := s.entries.appendTo(value, horizon); err != nil {
		return err
	}
	if len(extra) > 0 {
		for _, e := range extra {
			if e.TS > horizon {
				s.entries.wide = append(s.entries.wide, e)
			}
		}
		s.entries.wide, _, _ = s.joiner.join(s.entries.wide)
	}
	s.arrivals.reset()
	s.arrivals.resolve(&s.entries)
	return nil
}

func (s *Answerer) sparse(value []byte, extra []Entry, horizon int64) error {
	if err := s.gather(value, extra, horizon); err != nil {
		return err
	}
	for i := range s.arrivals.entries {
		s.tally.point(s.arrivals.entries[i].ts, 1)
	}
	return nil
}

func (s *Answerer) dense(value []byte, from SliceReader, extra []Entry, horizon int64) error {
	pending, err := s.index.decode(value)
	if err != nil {
		return err
	}
	if err := s.gather(pending, extra, horizon); err != nil {
		return err
	}
	if err := s.arrivals.match(&s.index, from, horizon); err != nil {
		return err
	}
	for i := range s.arrivals.entries {
		e := &s.arrivals.entries[i]
		s.tally.point(e.ts, e.counts())
	}
	removed := s.arrivals.removed
	for i := range s.index.raw {
		here := 0
		for here < len(removed) && removed[here].slice == i {
			here++
		}
		if err := s.rawSlice(&s.index.raw[i], removed[:here], from, horizon); err != nil {
			return err
		}
		removed = removed[here:]
	}
	for i := range s.index.panes {
		if err := s.paneSlice(&s.index.panes[i], from); err != nil {
			return err
		}
	}
	return nil
}

// rawSlice counts the slice that d describes, without reading it where no edge of a window falls into it.
func (s *Answerer) rawSlice(d *desc, removed []removal, from SliceReader, horizon int64) error {
	if d.max <= horizon {
		return nil
	}
	if len(removed) == 0 && s.tally.whole(d.min, d.max) {
		s.tally.block(d.min, d.max, d.count, d.top)
		return nil
	}
	raw, err := readRaw(from, d)
	if err != nil {
		return err
	}
	if s.times, err = raw.appendTimes(s.times[:0]); err != nil {
		return err
	}
	if len(removed) == 0 && raw.doubt == nil {
		s.tally.sorted(s.times)
		return nil
	}
	for i, ts := range s.times {
		if len(removed) > 0 && removed[0].entry == i {
			removed = removed[1:]
			continue
		}
		if ts > horizon {
			s.tally.point(ts, 1-int64(b2i(bit(raw.doubt, i))))
		}
	}
	return nil
}

func (s *Answerer) paneSlice(d *desc, from SliceReader) error {
	if d.max <= s.tally.floor {
		return nil
	}
	if s.tally.whole(d.min, d.max) {
		s.tally.block(d.min, d.max, d.count, d.top)
		return nil
	}
	var err error
	if s.panes, err = readPanes(s.panes[:0], from, d); err != nil {
		return err
	}
	for i := range s.panes {
		p := &s.panes[i]
		s.tally.block(p.min, p.max, p.count, p.top)
	}
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tally sums one answer up.
type tally struct {
	asOf    int64
	floor   int64   // the horizon: nothing at or below it is seen
	lows    []int64 // by window: the newest ts that is too old, floor included
	windows []Window
	out     []WindowAnswer
	next    int64
}

func (t *tally) start(q *Query, a *Answer) {
	t.asOf, t.floor, t.windows, t.next = q.AsOf, q.Horizon, q.Windows, NoExpiry
	t.lows = slices.Grow(t.lows[:0], len(q.Windows))[:len(q.Windows)]
	a.Windows = slices.Grow(a.Windows[:0], len(q.Windows))[:len(q.Windows)]
	for i := range q.Windows {
		t.lows[i] = max(subSaturating(q.AsOf, q.Windows[i].Millis), q.Horizon)
		a.Windows[i] = WindowAnswer{}
	}
	t.out = a.Windows
}

func (t *tally) finish(q *Query, a *Answer) {
	for i := range a.Windows {
		w := &a.Windows[i]
		// a-W+1 is the first instant that the window holds.
		w.Complete = subSaturating(q.AsOf, q.Windows[i].Millis)+1 >= q.CompleteSince
		w.Exact = w.Complete && w.Count == w.Max
	}
	a.NextExpiry = t.next
	t.windows, t.out = nil, nil
}

// soon notes that an answer changes at ts.
func (t *tally) soon(ts int64) { t.next = min(t.next, ts) }

// point counts one event above the horizon; count is 0 where it is doubtful.
func (t *tally) point(ts, count int64) {
	if ts > t.asOf {
		t.soon(ts)
		return
	}
	for i, low := range t.lows {
		if ts > low {
			t.out[i].Count += count
			t.out[i].Max++
			t.soon(addSaturating(ts, t.windows[i].Millis))
		}
	}
}

// whole says that no edge of a window falls between lo and hi. The horizon needs no look of its own: where it falls
// between them, so does a window's lower edge, or all of it is too old for every window.
func (t *tally) whole(lo, hi int64) bool {
	if lo <= t.asOf && hi > t.asOf {
		return false
	}
	for _, low := range t.lows {
		if lo <= low && hi > low {
			return false
		}
	}
	return true
}

// block counts events of which only the oldest and newest ts are known. One that an edge cuts raises Max alone, until
// the edge has passed it.
func (t *tally) block(lo, hi, count, top int64) {
	if hi <= t.floor {
		return
	}
	if lo > t.asOf {
		t.soon(lo)
		return
	}
	cut := hi > t.asOf
	if cut {
		t.soon(hi)
	}
	for i, low := range t.lows {
		if hi <= low {
			continue
		}
		out, width := &t.out[i], t.windows[i].Millis
		out.Max += top
		switch {
		case lo > low:
			if !cut {
				out.Count += count
			}
			t.soon(addSaturating(lo, width))
		default:
			t.soon(addSaturating(hi, width))
		}
	}
}

// sorted counts events in order of time.
func (t *tally) sorted(times []int64) {
	end := firstAbove(times, t.asOf)
	if enters := firstAbove(times, max(t.asOf, t.floor)); enters < len(times) {
		t.soon(times[enters])
	}
	for i, low := range t.lows {
		begin := firstAbove(times[:end], low)
		n := int64(end - begin)
		if n == 0 {
			continue
		}
		t.out[i].Count += n
		t.out[i].Max += n
		t.soon(addSaturating(times[begin], t.windows[i].Millis))
	}
}

// firstAbove returns the index of the first of times that is > ts.
func firstAbove(times []int64, ts int64) int {
	lo, hi := 0, len(times)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); times[mid] <= ts {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
