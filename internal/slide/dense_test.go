package slide

import (
	"errors"
	"math/rand"
	"slices"
	"testing"
)

// grow feeds s events in order of arrival, an epoch after every epochSize, folding where it is needed.
func grow(t *testing.T, s *store, events []Entry, epochSize int, horizon int64) {
	t.Helper()
	for len(events) > 0 {
		n := min(epochSize, len(events))
		s.extra = append(s.extra, events[:n]...)
		s.epoch(true)
		events = events[n:]
		value, err := s.value(NoHorizon)
		if err != nil {
			t.Fatal(err)
		}
		s.base, s.layers = value, nil
		if NeedsFold(value, s.limits) {
			if _, err := s.fold(horizon); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// steady returns n events at even distances.
func steady(n int, from, step int64) []Entry {
	out := make([]Entry, n)
	for i := range out {
		out[i] = Entry{TS: from + int64(i)*step, FP: fingerprint(i)}
	}
	return out
}

// TestHotKey counts a key of many events with the limits of production, its events out of order by up to a minute and
// every tenth of them twice.
func TestHotKey(t *testing.T) {
	const n = 100_000
	r := rand.New(rand.NewSource(1))
	events := steady(n, 1_750_000_000_000, 100)
	truth := slices.Clone(events)
	for i := range events {
		if i%10 == 0 && i > 0 {
			events = append(events, events[r.Intn(i)])
		}
	}
	r.Shuffle(600, func(i, j int) { events[i], events[j] = events[j], events[i] })
	s := newStore(Limits{})
	grow(t, s, events, 200, NoHorizon)
	newest := truth[n-1].TS
	for range 50 {
		asOf := newest - r.Int63n(3*hour)
		q := Query{Windows: windows, AsOf: asOf, Horizon: NoHorizon, CompleteSince: CompleteAlways}
		var a Answer
		if err := s.answer(&q, &a); err != nil {
			t.Fatal(err)
		}
		for i, w := range windows {
			want := int64(0)
			for _, e := range truth {
				if e.TS > asOf-w.Millis && e.TS <= asOf {
					want++
				}
			}
			if got := a.Windows[i]; got.Count != want || !got.Exact {
				t.Fatalf("%s at %d: %+v; want %d", w.Name, asOf, got, want)
			}
		}
	}
}

// TestForgettingIsNarrow lets a key that gets its events in order forget most of their ids. Then max-count is at most
// the events in the one pane at each edge, of the size that is kept at that age.
func TestForgettingIsNarrow(t *testing.T) {
	const step = 7001
	events := steady(130_000, -3*day, step) // about 10 days, across 1970
	s := newStore(Limits{DedupIDs: 2000, SliceMax: 64})
	grow(t, s, events, 97, NoHorizon)
	newest := events[len(events)-1].TS
	paneAt := func(ts int64) int64 { // the widest pane that may hold ts
		switch age := newest - ts; {
		case age < hour:
			return second
		case age < day+minute:
			return minute
		case age < 7*day+5*minute:
			return 5 * minute
		}
		return 15 * minute
	}
	r := rand.New(rand.NewSource(2))
	inexact := 0
	for range 150 {
		asOf := newest - r.Int63n(9*day)
		q := Query{Windows: windows, AsOf: asOf, Horizon: NoHorizon, CompleteSince: CompleteAlways}
		var a Answer
		if err := s.answer(&q, &a); err != nil {
			t.Fatal(err)
		}
		for i, w := range windows {
			truth := between(events, asOf-w.Millis, asOf)
			wide := paneAt(asOf)/step + 1 + paneAt(asOf-w.Millis)/step + 1
			got := a.Windows[i]
			if got.Count > truth || got.Max < truth || got.Max-got.Count > wide {
				t.Fatalf("%s at newest-%d: %+v; want %d, no wider than %d", w.Name, newest-asOf, got, truth, wide)
			}
			if !got.Exact {
				inexact++
			}
		}
	}
	if inexact == 0 {
		t.Error("no answer was inexact: nothing was tested")
	}
	value, err := s.value(NoHorizon)
	if err != nil {
		t.Fatal(err)
	}
	var x index
	if _, err := x.decode(value); err != nil {
		t.Fatal(err)
	}
	panes := 0
	for _, d := range x.panes {
		panes += d.n
	}
	if x.ids > 2000 || panes > 9000 {
		t.Errorf("%d ids and %d panes are kept", x.ids, panes)
	}
}

func between(events []Entry, after, upTo int64) (n int64) {
	for _, e := range events {
		if e.TS > after && e.TS <= upTo {
			n++
		}
	}
	return n
}

// TestDoubtful: once ids are forgotten, what may be a copy of them raises Max alone.
func TestDoubtful(t *testing.T) {
	events := steady(100, 0, minute)
	for _, c := range []struct {
		name       string
		entry      Entry
		count, top int64
	}{
		{"copy of a forgotten event", events[3], 100, 101},
		{"copy of a remembered event", events[99], 100, 100},
		{"new, but old", Entry{TS: 3*minute + 1, FP: 12345}, 100, 101},
		{"new, older than 10 minutes, among remembered ones", Entry{TS: 85 * minute, FP: 12345}, 100, 101},
		{"new, 10 minutes old", Entry{TS: 89 * minute, FP: 12345}, 101, 101},
		{"new and newest", Entry{TS: 100 * minute, FP: 12345}, 101, 101},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(Limits{SparseMax: 4, SliceMax: 8, DedupIDs: 50})
			grow(t, s, events, 10, NoHorizon)
			if _, err := s.fold(NoHorizon); err != nil {
				t.Fatal(err)
			}
			s.layers = append(s.layers, AppendOperand(nil, []Entry{c.entry}, true))
			for _, when := range []string{"pending", "pending and in RAM", "folded"} {
				switch when {
				case "pending and in RAM":
					s.extra = append(s.extra, c.entry)
				case "folded":
					s.epoch(true)
					if _, err := s.fold(NoHorizon); err != nil {
						t.Fatal(err)
					}
				}
				q := Query{Windows: windows[2:], AsOf: 2 * hour, Horizon: NoHorizon, CompleteSince: CompleteAlways}
				var a Answer
				if err := s.answer(&q, &a); err != nil {
					t.Fatal(err)
				}
				if w := a.Windows[0]; w.Count != c.count || w.Max != c.top || w.Exact != (c.count == c.top) {
					t.Errorf("%s: %+v; want %d..%d", when, w, c.count, c.top)
				}
			}
		})
	}
}

// TestLifeOfAKey follows one key from its first event to its last.
func TestLifeOfAKey(t *testing.T) {
	s := newStore(Limits{})
	expect := func(what string, outcome, want Outcome, dense bool, slices int) {
		t.Helper()
		value, err := s.value(NoHorizon)
		if err != nil {
			t.Fatal(err)
		}
		if outcome != want || Dense(value) != dense || len(s.slices) != slices {
			t.Fatalf("%s: outcome %d, dense %t, %d slices; want %d, %t, %d", what, outcome, Dense(value), len(s.slices), want, dense, slices)
		}
	}
	fold := func(horizon int64) Outcome {
		t.Helper()
		outcome, err := s.fold(horizon)
		if err != nil {
			t.Fatal(err)
		}
		return outcome
	}
	expect("nothing", fold(NoHorizon), Delete, false, 0)
	s.layers = append(s.layers, AppendOperand(nil, steady(64, 1000, 10), false))
	expect("64 events are sparse", fold(NoHorizon), Unchanged, false, 0)
	s.layers = append(s.layers, AppendOperand(nil, steady(1200, 1000, 10), true))
	expect("1,200 are dense", fold(NoHorizon), Rewrite, true, 3)
	expect("nothing new", fold(NoHorizon), Unchanged, true, 3)
	expect("the horizon passes slices", fold(1000+1140*10), Rewrite, true, 1)
	expect("few are left", fold(1000+1170*10), Rewrite, false, 0)
	expect("some are dropped", fold(1000+1190*10), Rewrite, false, 0)
	value, err := s.value(NoHorizon)
	if err != nil {
		t.Fatal(err)
	}
	if live, dead, err := LiveAfter(value, 1000+1195*10); live != 4 || dead != 5 || err != nil {
		t.Fatalf("LiveAfter: %d, %d, %v; want 4, 5", live, dead, err)
	}
	expect("none is left", fold(1000+1199*10), Delete, false, 0)
}

// TestNeedsFold: what may stay pending grows with the key, within bounds.
func TestNeedsFold(t *testing.T) {
	for _, c := range []struct {
		ids, pending int
		want         bool
	}{
		{0, 64, false}, {0, 65, true}, {100, 63, false}, {100, 64, true}, {8000, 999, false}, {8000, 1000, true},
		{60_000, 4095, false}, {60_000, 4096, true},
	} {
		events := steady(c.ids+c.pending, 0, 1)
		s := newStore(Limits{})
		if c.ids > 0 {
			s.base = AppendOperand(nil, events[:c.ids], true)
			if _, err := s.fold(NoHorizon); err != nil {
				t.Fatal(err)
			}
		}
		s.layers = append(s.layers, AppendOperand(nil, events[c.ids:], true))
		value, err := s.value(NoHorizon)
		if err != nil {
			t.Fatal(err)
		}
		if got := NeedsFold(value, s.limits); got != c.want {
			t.Errorf("%d ids, %d pending: %t", c.ids, c.pending, got)
		}
	}
}

// TestBrokenKeys: what is missing or does not fit is an error, never a count.
func TestBrokenKeys(t *testing.T) {
	s := newStore(Limits{SparseMax: 4, SliceMax: 8})
	s.base = AppendOperand(nil, steady(40, 0, minute), true)
	if _, err := s.fold(NoHorizon); err != nil {
		t.Fatal(err)
	}
	q := Query{Windows: windows, AsOf: 30*minute + 1, Horizon: NoHorizon, CompleteSince: CompleteAlways}
	var a Answer
	if err := s.answers.Answer(s.base, nil, nil, &q, &a); !errors.Is(err, ErrSliceMissing) {
		t.Errorf("no reader: %v", err)
	}
	var m Merger
	m.Reset(NoHorizon)
	if err := m.Add(s.base); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(s.base); !errors.Is(err, ErrTwoDense) {
		t.Errorf("two roots: %v", err)
	}
	for id := range s.slices {
		s.slices[id] = appendRaw(nil, []rawEntry{{ts: 1}})
	}
	if err := s.answer(&q, &a); !errors.Is(err, ErrCorrupt) {
		t.Errorf("another slice: %v", err)
	}
	if _, err := s.folder.Fold(s.base, s, 35*minute, s.limits); !errors.Is(err, ErrCorrupt) {
		t.Errorf("fold of another slice: %v", err)
	}
	clear(s.slices)
	if err := s.answer(&q, &a); !errors.Is(err, ErrSliceMissing) {
		t.Errorf("no slice: %v", err)
	}
}
