package slide

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
)

func TestFloorDiv(t *testing.T) {
	for _, c := range []struct{ a, b, want int64 }{
		{0, 1000, 0}, {999, 1000, 0}, {1000, 1000, 1}, {-1, 1000, -1}, {-1000, 1000, -1}, {-1001, 1000, -2},
		{math.MinInt64, 1000, -9223372036854776}, {math.MaxInt64, 1000, 9223372036854775},
	} {
		if got := floorDiv(c.a, c.b); got != c.want {
			t.Errorf("floorDiv(%d, %d) = %d; want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestPaneEnd(t *testing.T) {
	for _, c := range []struct{ ts, want int64 }{
		{0, 1000}, {-1, 0}, {-1000, 0}, {-1001, -1000}, {999, 1000}, {math.MaxInt64, math.MaxInt64},
		{math.MaxInt64 - 999, math.MaxInt64 - 807}, {math.MinInt64, -9223372036854775000},
	} {
		if got := paneEnd(c.ts, second); got != c.want {
			t.Errorf("paneEnd(%d) = %d; want %d", c.ts, got, c.want)
		}
	}
}

// TestLevels: a pane is made coarser when the coarser one is old enough as a whole.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		ts, newest int64
		want       uint8
	}{
		{0, 0, 0}, {0, hour + minute - 1, 0}, {0, hour + minute, 1}, {minute - 1, hour + minute, 1}, {-1, hour, 1},
		{0, day + 5*minute - 1, 1}, {0, day + 5*minute, 2}, {0, 7*day + 15*minute - 1, 2}, {0, 7*day + 15*minute, 3},
		{0, 500 * day, 3}, {math.MaxInt64, math.MaxInt64, 0}, {math.MinInt64, math.MinInt64, 0}, {math.MinInt64, 0, 3},
	} {
		if got := levelOf(c.ts, c.newest); got != c.want {
			t.Errorf("levelOf(%d) at %d = %d; want %d", c.ts, c.newest, got, c.want)
		}
	}
}

func TestJoinPanes(t *testing.T) {
	one := func(ts int64) pane { return pane{min: ts, max: ts, count: 1, top: 1} }
	for _, c := range []struct {
		name            string
		a, b, want      []pane
		newest, horizon int64
	}{
		{"one second", []pane{one(1000)}, []pane{one(1999), one(2000)}, []pane{{1000, 1999, 2, 2}, one(2000)}, 3000, NoHorizon},
		{"around 1970", []pane{one(-1)}, []pane{one(0)}, []pane{one(-1), one(0)}, 3000, NoHorizon},
		{"an hour later", []pane{one(1000), one(59_000)}, []pane{one(30_000)}, []pane{{1000, 59_000, 3, 3}}, 2 * hour, NoHorizon},
		{"doubtful", []pane{{min: 5, max: 5, top: 1}}, []pane{one(6)}, []pane{{5, 6, 1, 2}}, 10, NoHorizon},
		{"dead", []pane{one(1000), one(5000)}, []pane{one(3000)}, []pane{one(5000)}, 6000, 3000},
	} {
		if got := joinPanes(nil, c.a, c.b, c.newest, c.horizon); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v; want %v", c.name, got, c.want)
		}
	}
}

// TestBlock: what a pane of 3 events and a doubtful one, the oldest at 100 and the newest at 200, does to a window of
// 1,000 and to its next expiry.
func TestBlock(t *testing.T) {
	for _, c := range []struct {
		asOf, horizon    int64
		count, top, next int64
	}{
		{99, NoHorizon, 0, 0, 100}, {100, NoHorizon, 0, 4, 200}, {199, NoHorizon, 0, 4, 200}, {200, NoHorizon, 3, 4, 1100},
		{1099, NoHorizon, 3, 4, 1100}, {1100, NoHorizon, 0, 4, 1200}, {1199, NoHorizon, 0, 4, 1200},
		{1200, NoHorizon, 0, 0, NoExpiry}, {500, 99, 3, 4, 1100}, {500, 100, 0, 4, 1200}, {500, 200, 0, 0, NoExpiry},
		{50, 200, 0, 0, NoExpiry}, {150, 300, 0, 0, NoExpiry},
	} {
		var tally tally
		var a Answer
		q := Query{Windows: []Window{{"w", 1000}}, AsOf: c.asOf, Horizon: c.horizon, CompleteSince: CompleteAlways}
		tally.start(&q, &a)
		tally.block(100, 200, 3, 4)
		tally.finish(&q, &a)
		if w := a.Windows[0]; w.Count != c.count || w.Max != c.top || a.NextExpiry != c.next {
			t.Errorf("at %d, H %d: %+v; want %d, %d, next %d", c.asOf, c.horizon, a, c.count, c.top, c.next)
		}
	}
}

// TestDeadEntriesDoNotExpire: what lies at or below the horizon has no next expiry, although its slice is still there.
func TestDeadEntriesDoNotExpire(t *testing.T) {
	s := newStore(Limits{SparseMax: 4, SliceMax: 8})
	s.base = AppendOperand(nil, steady(8, 100, 10), true)
	if _, err := s.fold(NoHorizon); err != nil {
		t.Fatal(err)
	}
	q := Query{Windows: []Window{{"w", 1000}}, AsOf: 50, Horizon: 120, CompleteSince: CompleteAlways}
	var a Answer
	if err := s.answer(&q, &a); err != nil {
		t.Fatal(err)
	}
	if a.NextExpiry != 130 {
		t.Errorf("next expiry %d; want 130", a.NextExpiry)
	}
}

func TestDoubts(t *testing.T) {
	x := index{forgot: true, forgotTS: 1000, newest: 2_000_000}
	for _, c := range []struct {
		ts, horizon int64
		want        bool
	}{
		{1000, NoHorizon, true}, {1001, NoHorizon, true}, {1_399_999, NoHorizon, true}, {1_400_000, NoHorizon, false},
		{1_399_999, 999, true}, {1_399_999, 1000, false},
	} {
		if got := x.doubts(c.ts, c.horizon); got != c.want {
			t.Errorf("doubts(%d), H %d: %t", c.ts, c.horizon, got)
		}
	}
	x.forgot = false
	if x.doubts(0, NoHorizon) {
		t.Error("nothing is forgotten, and yet it doubts")
	}
}

// TestDoubtStays: a doubtful event that comes again, newer, is still the one that may have been counted before.
func TestDoubtStays(t *testing.T) {
	s := newStore(Limits{SparseMax: 4, SliceMax: 8, DedupIDs: 50})
	grow(t, s, steady(100, 0, minute), 10, NoHorizon)
	for _, ts := range []int64{85 * minute, 101 * minute} {
		if _, err := s.fold(NoHorizon); err != nil {
			t.Fatal(err)
		}
		s.layers = append(s.layers, AppendOperand(nil, []Entry{{TS: ts, FP: 12345}}, true))
	}
	for range 2 {
		q := Query{Windows: windows[2:], AsOf: 2 * hour, Horizon: NoHorizon, CompleteSince: CompleteAlways}
		var a Answer
		if err := s.answer(&q, &a); err != nil {
			t.Fatal(err)
		}
		if w := a.Windows[0]; w.Count != 100 || w.Max != 101 {
			t.Errorf("%+v; want 100..101", w)
		}
		if _, err := s.fold(NoHorizon); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWidthsMeet: copies of both widths are one event, and the wide fingerprint stays; wide ones that differ in the
// high bits alone are two.
func TestWidthsMeet(t *testing.T) {
	const fp = 0x1234567800000077
	for _, c := range []struct {
		name         string
		first, then  Entry
		narrowFirst  bool
		narrowSecond bool
		count        int64
		conflicts    int
	}{
		{"narrow meets wide", Entry{5000, fp}, Entry{6000, fp}, true, false, 11, 1},
		{"wide meets narrow", Entry{5000, fp}, Entry{6000, fp}, false, true, 11, 1},
		{"wide meets older narrow", Entry{5000, fp}, Entry{4000, fp}, false, true, 11, 1},
		{"equal", Entry{5000, fp}, Entry{5000, fp}, false, true, 11, 0},
		{"two wide ones", Entry{5000, fp}, Entry{6000, fp ^ 1<<63}, false, false, 12, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(Limits{SparseMax: 4, SliceMax: 8})
			s.layers = [][]byte{AppendOperand(nil, steady(10, 0, second), true), AppendOperand(nil, []Entry{c.first}, c.narrowFirst == false)}
			if _, err := s.fold(NoHorizon); err != nil {
				t.Fatal(err)
			}
			s.layers = append(s.layers, AppendOperand(nil, []Entry{c.then}, c.narrowSecond == false))
			for _, when := range []string{"pending", "folded"} {
				q := Query{Windows: windows[1:2], AsOf: minute, Horizon: NoHorizon, CompleteSince: CompleteAlways}
				var a Answer
				if err := s.answer(&q, &a); err != nil {
					t.Fatal(err)
				}
				if w := a.Windows[0]; w.Count != c.count || !w.Exact {
					t.Errorf("%s: %+v; want %d", when, w, c.count)
				}
				if when == "folded" {
					break
				}
				if _, err := s.fold(NoHorizon); err != nil {
					t.Fatal(err)
				}
			}
			for id, slice := range s.slices {
				if slice[1]&flagNarrow != 0 {
					t.Errorf("slice %d still has a narrow entry", id)
				}
			}
			if s.conflicts != c.conflicts {
				t.Errorf("%d conflicts; want %d", s.conflicts, c.conflicts)
			}
		})
	}
}

// TestNarrowOperandJoins: what 32 bits cannot tell apart is one entry of a narrow operand.
func TestNarrowOperandJoins(t *testing.T) {
	value := AppendOperand(nil, []Entry{{TS: 1, FP: 7}, {TS: 2, FP: 1<<40 | 7}}, false)
	if live, _, err := LiveAfter(value, NoHorizon); live != 1 || err != nil {
		t.Errorf("%d entries, %v; want 1", live, err)
	}
}

// TestDeadEntriesGo: a slice that the horizon cuts is rewritten for a quarter of dead entries; and what is dead is no
// copy of anything.
func TestDeadEntriesGo(t *testing.T) {
	s := newStore(Limits{SparseMax: 4, SliceMax: 100})
	s.base = AppendOperand(nil, steady(100, 0, second), true)
	if _, err := s.fold(NoHorizon); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		horizon int64
		want    Outcome
		kept    int
	}{{23 * second, Unchanged, 100}, {24 * second, Rewrite, 75}} {
		outcome, err := s.fold(c.horizon)
		if err != nil {
			t.Fatal(err)
		}
		if live, _, _ := LiveAfter(s.base, c.horizon); outcome != c.want || live != c.kept {
			t.Errorf("H %d: outcome %d, %d kept; want %d, %d", c.horizon, outcome, live, c.want, c.kept)
		}
	}
	s.layers = append(s.layers, AppendOperand(nil, []Entry{{TS: 200 * second, FP: fingerprint(30)}}, true))
	if _, err := s.fold(40 * second); err != nil {
		t.Fatal(err)
	}
	if s.conflicts != 0 {
		t.Errorf("%d conflicts with a dead entry", s.conflicts)
	}
}

// TestCorruptValues is the table of bytes that are wrong in ways of their own.
func TestCorruptValues(t *testing.T) {
	base := appendBase(nil, math.MinInt64+5)
	for name, value := range map[string][]byte{
		"below int64":      append(append([]byte{kindNarrow | 2}, append(base, 6)...), make([]byte, 8)...),
		"bytes left":       append(AppendOperand(nil, []Entry{{1, 1}}, false), 0),
		"cut":              AppendOperand(nil, []Entry{{1, 1}}, false)[:8],
		"count of zero":    {kindWide, 0},
		"count too large":  binary.AppendUvarint([]byte{kindWide}, math.MaxUint64),
		"short base":       {kindNarrow | 1, 1, 2},
		"root, no index":   {kindDense, 0, 0, 9},
		"root, no slices":  {kindDense, 0, 0, 1, 0, 0},
		"panes, no bytes":  {kindPanes, 0, 1},
		"raw, no bytes":    {kindRaw, 0, 1, 0},
		"raw, above int64": append(append(binary.AppendVarint([]byte{kindRaw, 0, 2}, math.MaxInt64), 1), make([]byte, 16)...),
		"horizon, late":    append([]byte{horizonVersion, 0}, binary.AppendUvarint(nil, math.MaxUint64)...),
	} {
		if err := decodeAny(value, NoHorizon); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOneNarrowManyWide: a narrow entry that two wide arrivals hit is replaced once, and later removals still happen.
func TestOneNarrowManyWide(t *testing.T) {
	s := newStore(Limits{SparseMax: 1, SliceMax: 8})
	old := []Entry{{TS: 1000, FP: 77}, {TS: 1500, FP: 88}, {TS: 1600, FP: 99}}
	s.layers = [][]byte{AppendOperand(nil, old, false)}
	if _, err := s.fold(NoHorizon); err != nil {
		t.Fatal(err)
	}
	s.layers = append(s.layers, AppendOperand(nil, []Entry{
		{TS: 2000, FP: 1<<40 | 77}, {TS: 3000, FP: 2<<40 | 77}, {TS: 4000, FP: 88}, {TS: 5000, FP: 99},
	}, true))
	for range 2 {
		q := Query{Windows: windows[1:2], AsOf: minute, Horizon: NoHorizon, CompleteSince: CompleteAlways}
		var a Answer
		if err := s.answer(&q, &a); err != nil {
			t.Fatal(err)
		}
		if a.Windows[0].Count != 4 || a.NextExpiry != 2000+hour {
			t.Errorf("%+v; want 4, next %d", a, 2000+hour)
		}
		if _, err := s.fold(NoHorizon); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMovedEntriesLeaveNoDust: events that come again with newer times leave their slices; what remains in those is
// brought together.
func TestMovedEntriesLeaveNoDust(t *testing.T) {
	s := newStore(Limits{SparseMax: 4, SliceMax: 8})
	events := steady(400, 0, second)
	grow(t, s, events, 40, NoHorizon)
	for i := range events {
		if i%8 != 0 {
			events[i].TS += hour
		}
	}
	grow(t, s, events, 40, NoHorizon)
	if _, err := s.fold(NoHorizon); err != nil {
		t.Fatal(err)
	}
	if n := len(s.slices); n > 90 {
		t.Errorf("%d slices for 400 events of which 8 fit into one", n)
	}
}
