package slide

import (
	"bytes"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirstream/weir/internal/oracle"
)

// Windows of the property tests, shortest first.
var windows = []Window{{"1m", minute}, {"1h", hour}, {"1d", day}, {"7d", 7 * day}}

const lateness = day

func widths() (ms []int64) {
	for _, w := range windows {
		ms = append(ms, w.Millis)
	}
	return ms
}

type arrival struct {
	id string
	ts int64
	fp uint64
}

// fingerprint stands for the hash of an id. Tests must not fail for a collision, so the low 32 bits differ.
func fingerprint(n int) uint64 {
	low := uint64(uint32(n) * 2654435761) // odd: a permutation of the 32 bits
	return low | (low*0x9e3779b97f4a7c15)&^narrowMask
}

// history draws arrivals: ids that come again, with the same ts or another one, up to 8 days late, around base.
func history(t *rapid.T, most int) []arrival {
	n := rapid.IntRange(1, most).Draw(t, "events")
	base := rapid.SampledFrom([]int64{
		0, 1_750_000_000_000, -5 * day, setEpoch + 1, math.MinInt64 + 9*day, math.MaxInt64 - 60*day,
	}).Draw(t, "base")
	span := rapid.SampledFrom([]int64{minute, 3 * hour, 9 * day, 40 * day}).Draw(t, "span")
	seed := rapid.Int64().Draw(t, "history seed")
	r := rand.New(rand.NewSource(seed))
	var out []arrival
	for i := range n {
		a := arrival{id: fmt.Sprint(i), fp: fingerprint(i)}
		a.ts = base + span*int64(i)/int64(n)
		switch r.Intn(10) {
		case 0:
			a.ts -= r.Int63n(8 * day)
		case 1:
			a.ts -= r.Int63n(hour)
		case 2:
			a.ts = a.ts / 1000 * 1000 // coarse clocks
		}
		if len(out) > 0 && r.Intn(5) == 0 {
			old := out[r.Intn(len(out))]
			a.id, a.fp = old.id, old.fp
			if r.Intn(3) > 0 {
				a.ts = old.ts
			}
		}
		out = append(out, a)
	}
	return out
}

func drawLimits(t *rapid.T) Limits {
	return Limits{
		SparseMax:  rapid.SampledFrom([]int{1, 2, 4, 16, 64}).Draw(t, "sparse max"),
		SliceMax:   rapid.SampledFrom([]int{1, 2, 3, 8, 32}).Draw(t, "slice max"),
		PendingMin: rapid.IntRange(1, 8).Draw(t, "pending min"),
		PendingMax: rapid.IntRange(8, 32).Draw(t, "pending max"),
	}
}

// asOfs returns instants at which something interesting may happen.
func asOfs(r *rand.Rand, events []arrival) int64 {
	at := events[r.Intn(len(events))].ts
	switch r.Intn(4) {
	case 0:
		at += windows[r.Intn(len(windows))].Millis
	case 1:
		at += windows[r.Intn(len(windows))].Millis - 1
	case 2:
		at += r.Int63n(2*day) - day
	}
	return at
}

// ask answers by the store and by the oracle, and compares.
func ask(t *rapid.T, s *store, o *oracle.Counter, asOf int64, mayForget bool) Answer {
	since := o.CompleteSince(NoHorizon)
	q := Query{Windows: windows, AsOf: asOf, Horizon: o.H(), CompleteSince: since}
	var a Answer
	if err := s.answer(&q, &a); err != nil {
		t.Fatalf("answer: %v", err)
	}
	exact := true
	last := int64(0)
	for i, w := range windows {
		got := a.Windows[i]
		seen := o.CountAbove("k", w.Millis, asOf, o.H())
		if got.Count > seen || seen > got.Max || !mayForget && got.Count != got.Max {
			t.Fatalf("%s at %d: %+v; want %d (H %d)", w.Name, asOf, got, seen, o.H())
		}
		if complete := oracle.Complete(w.Millis, asOf, since); got.Complete != complete || got.Exact != (complete && got.Count == got.Max) {
			t.Fatalf("%s at %d: %+v; complete is %t", w.Name, asOf, got, complete)
		}
		if truth := o.Count("k", w.Millis, asOf); got.Exact && got.Count != truth {
			t.Fatalf("%s at %d: %+v says it is exact; want %d", w.Name, asOf, got, truth)
		}
		if got.Count < last {
			t.Fatalf("%s at %d: %d, but a shorter window has %d", w.Name, asOf, got.Count, last)
		}
		last, exact = got.Count, exact && got.Count == got.Max
	}
	if want := o.NextExpiry("k", widths(), asOf, o.H()); !mayForget && a.NextExpiry != want || a.NextExpiry <= asOf {
		t.Fatalf("next expiry at %d is %d; want %d", asOf, a.NextExpiry, want)
	}
	return a
}

// TestAnswersEqualOracle drives a store through arrivals, epochs, compactions, folds, sweeps and replays in any order
// and compares every answer on the way.
func TestAnswersEqualOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := history(t, 200)
		s := newStore(drawLimits(t))
		o := oracle.New(7*day, lateness)
		h := NewHorizon(7*day, lateness)
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "steps seed")))
		for _, e := range events {
			accepted := h.Accept(e.ts)
			if o.Add("k", e.id, e.ts) != accepted || h.H() != o.H() || h.CompleteSince(NoHorizon) != o.CompleteSince(NoHorizon) {
				t.Fatalf("event at %d: horizon %+v, H %d; oracle has H %d", e.ts, h, h.H(), o.H())
			}
			if accepted {
				s.extra = append(s.extra, Entry{TS: e.ts, FP: e.fp})
			}
			for r.Intn(2) == 0 {
				if err := s.step(r, h.H()); err != nil {
					t.Fatal(err)
				}
			}
			if r.Intn(4) == 0 {
				ask(t, s, o, asOfs(r, events), false)
			}
		}
		for range 20 {
			ask(t, s, o, asOfs(r, events), false)
		}
	})
}

// TestOrderDoesNotMatter gives one accepted set of events to two stores, shuffled, doubled, in other batches and with
// other limits: every answer is the same.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := history(t, 120)
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "order seed")))
		shuffled := append(slices.Clone(events), events[:r.Intn(len(events))]...)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		a, b := newStore(drawLimits(t)), newStore(drawLimits(t))
		feed := func(s *store, events []arrival) {
			for _, e := range events {
				s.extra = append(s.extra, Entry{TS: e.ts, FP: e.fp})
				if r.Intn(3) == 0 {
					if err := s.step(r, NoHorizon); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		feed(a, events)
		feed(b, shuffled)
		for range 20 {
			q := Query{Windows: windows, AsOf: asOfs(r, events), Horizon: NoHorizon, CompleteSince: CompleteAlways}
			var x, y Answer
			if err := a.answer(&q, &x); err != nil {
				t.Fatal(err)
			}
			if err := b.answer(&q, &y); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(x.Windows, y.Windows) || x.NextExpiry != y.NextExpiry {
				t.Fatalf("at %d: %+v and, in another order, %+v", q.AsOf, x, y)
			}
		}
	})
}

// TestQuietCountFallsOnlyAtExpiry walks a key that gets nothing more from one next expiry to the next: between them
// nothing changes, and with no stored event ahead the count only falls.
func TestQuietCountFallsOnlyAtExpiry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := history(t, 60)
		s := newStore(drawLimits(t))
		o := oracle.New(7*day, lateness)
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "steps seed")))
		newest := events[0].ts
		for _, e := range events {
			if o.Add("k", e.id, e.ts) {
				s.extra = append(s.extra, Entry{TS: e.ts, FP: e.fp})
				newest = max(newest, e.ts)
			}
			if err := s.step(r, o.H()); err != nil {
				t.Fatal(err)
			}
		}
		at, a := newest, ask(t, s, o, newest, false)
		for steps := 0; a.NextExpiry != NoExpiry; steps++ {
			if steps > 5*len(events) {
				t.Fatalf("still changing at %d", at)
			}
			before, next := ask(t, s, o, a.NextExpiry-1, false), ask(t, s, o, a.NextExpiry, false)
			if !slices.Equal(before.Windows, a.Windows) {
				t.Fatalf("changed between %d and %d: %+v, %+v", at, a.NextExpiry-1, a, before)
			}
			fell := false
			for i := range windows {
				if next.Windows[i].Count > a.Windows[i].Count {
					t.Fatalf("rose at %d: %+v, %+v", a.NextExpiry, a, next)
				}
				fell = fell || next.Windows[i].Count < a.Windows[i].Count
			}
			if !fell {
				t.Fatalf("nothing changed at %d: %+v", a.NextExpiry, next)
			}
			at, a = a.NextExpiry, next
		}
	})
}

// TestForgottenIDsKeepTheBracket lets keys forget ids: count <= truth <= max at every moment, no wider than the panes
// at the edges of the window and the doubtful arrivals allow. Copies agree here: a copy of a forgotten id with another
// ts cannot be told from a new event.
func TestForgottenIDsKeepTheBracket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := history(t, 300)
		first := map[string]int64{}
		for i, e := range events {
			if ts, ok := first[e.id]; ok {
				events[i].ts = ts
			}
			first[e.id] = events[i].ts
		}
		limits := drawLimits(t)
		limits.DedupIDs = rapid.IntRange(1, 60).Draw(t, "dedup ids")
		s := newStore(limits)
		o := oracle.New(7*day, lateness)
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "steps seed")))
		for _, e := range events {
			if o.Add("k", e.id, e.ts) {
				s.extra = append(s.extra, Entry{TS: e.ts, FP: e.fp})
			}
			if err := s.step(r, o.H()); err != nil {
				t.Fatal(err)
			}
			if r.Intn(4) == 0 {
				ask(t, s, o, asOfs(r, events), true)
			}
		}
		for range 20 {
			ask(t, s, o, asOfs(r, events), true)
		}
	})
}

// drawValue draws a sparse value. Fingerprints come from a small space, so that values share many of them.
func drawValue(t *rapid.T, label string) []byte {
	n := rapid.IntRange(0, 70).Draw(t, label+" entries")
	entries := make([]Entry, n)
	ts := rapid.OneOf(rapid.Int64Range(-50, 50), rapid.Int64(), rapid.Int64Range(setEpoch-5, setEpoch+5))
	for i := range entries {
		entries[i] = Entry{TS: ts.Draw(t, label+" ts"), FP: rapid.Uint64Range(0, 99).Draw(t, label+" fp") << 30}
	}
	return AppendOperand(nil, entries, rapid.Bool().Draw(t, label+" wide"))
}

// TestMergeIsAJoin checks the laws byte for byte.
func TestMergeIsAJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawValue(t, "a"), drawValue(t, "b"), drawValue(t, "c")
		h := rapid.OneOf(rapid.Int64Range(-50, 50), rapid.Just(NoHorizon)).Draw(t, "horizon")
		merge := func(x, y []byte, h int64) []byte {
			out, err := Merge(nil, x, y, h)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		same := func(law string, x, y []byte) {
			if !bytes.Equal(x, y) {
				t.Fatalf("%s: %x and %x", law, x, y)
			}
		}
		same("associative", merge(merge(a, b, NoHorizon), c, NoHorizon), merge(a, merge(b, c, NoHorizon), NoHorizon))
		same("commutative", merge(a, b, NoHorizon), merge(b, a, NoHorizon))
		same("idempotent", merge(a, a, NoHorizon), merge(a, nil, NoHorizon))
		same("neutral", merge(a, nil, NoHorizon), merge([]byte{kindEmpty}, a, NoHorizon))
		same("drop distributes", merge(merge(a, b, NoHorizon), nil, h), merge(merge(a, nil, h), merge(b, nil, h), NoHorizon))
		var m Merger
		m.Reset(h)
		for _, v := range [][]byte{c, a, b, a} {
			if err := m.Add(v); err != nil {
				t.Fatal(err)
			}
		}
		same("all at once", m.Finish(nil), merge(merge(a, b, h), c, h))
	})
}

// TestJoinersAgree: the three ways to join, and the merge of runs, do the same.
func TestJoinersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := make([]Entry, rapid.IntRange(1, 200).Draw(t, "entries"))
		for i := range entries {
			entries[i] = Entry{TS: rapid.Int64Range(0, 9).Draw(t, "ts"), FP: rapid.Uint64Range(0, 150).Draw(t, "fp")}
		}
		var j joiner
		a, conflicts, duplicates := j.join(slices.Clone(entries))
		j.sort(a)
		b, _, _ := join(slices.Clone(entries))
		slices.SortFunc(b, newestFirst)
		c, c2, d2 := joinPairs(slices.Clone(entries))
		slices.SortFunc(c, newestFirst)
		if !slices.Equal(a, b) || !slices.Equal(a, c) || conflicts != c2 || duplicates != d2 {
			t.Fatalf("got %v, %v, %v", a, b, c)
		}
	})
}
