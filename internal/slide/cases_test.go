package slide

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// forms are the ways in which a key can hold the same events. Every case is asked of each.
var forms = []struct {
	name   string
	limits Limits
	load   func(*store, []Entry) error
}{
	{"in RAM", Limits{}, func(s *store, e []Entry) error { s.extra = e; return nil }},
	{"operand each", Limits{}, func(s *store, e []Entry) error {
		for i := range e {
			s.layers = append(s.layers, AppendOperand(nil, e[i:i+1], i%2 == 1))
		}
		return nil
	}},
	{"sparse", Limits{}, func(s *store, e []Entry) error { s.base = AppendOperand(nil, e, false); return nil }},
	{"wide", Limits{}, func(s *store, e []Entry) error { s.base = AppendOperand(nil, e, true); return nil }},
	{"dense", Limits{SparseMax: 1, SliceMax: 2}, func(s *store, e []Entry) error {
		s.base = AppendOperand(nil, e, true)
		_, err := s.fold(NoHorizon)
		return err
	}},
	{"dense, fold each", Limits{SparseMax: 1, SliceMax: 2}, func(s *store, e []Entry) error {
		for i := range e {
			s.layers = append(s.layers, AppendOperand(nil, e[i:i+1], i%2 == 1))
			if _, err := s.fold(NoHorizon); err != nil {
				return err
			}
		}
		return nil
	}},
	{"dense and pending", Limits{SparseMax: 1, SliceMax: 2}, func(s *store, e []Entry) error {
		s.base = AppendOperand(nil, e[:len(e)/2+len(e)%2], false)
		if _, err := s.fold(NoHorizon); err != nil {
			return err
		}
		s.layers, s.extra = append(s.layers, AppendOperand(nil, e[len(e)/2:], true)), e[:len(e)/3]
		return nil
	}},
}

// TestCases is the table of small cases: events as id@ts in order of arrival, queries as asOf=count.
func TestCases(t *testing.T) {
	trickle := ""
	for ts := 0; ts <= 60_000; ts += 2000 {
		trickle += fmt.Sprintf("t%d@%d ", ts, ts)
	}
	for _, c := range []struct {
		name, events string
		window       int64
		queries      string
	}{
		{"unknown key", "", 60_000, "0=0 60000=0"},
		{"boundary", "e@0", 60_000, "59999=1 60000=0"},
		{"at the query", "e@1000", 60_000, "999=0 1000=1"},
		{"same ts", "a@5 b@5 c@5", 60_000, "4=0 5=3"},
		{"same id twice", "x@5 x@5", 60_000, "5=1"},
		{"same id, other ts", "x@5 x@9", 60_000, "5=0 9=1 60005=1 60008=1 60009=0"},
		{"same id, other ts first", "x@9 x@5", 60_000, "5=0 9=1 60005=1 60008=1 60009=0"},
		{"out of order", "a@50000 b@10000 c@30000", 60_000, "60000=3 70000=2 90000=1 110000=0"},
		{"future within skew", "e@1000", 60_000, "0=0 1000=1"},
		{"zero and negative ts", "a@0 b@-1 c@-60000", 60_000, "0=2 -1=2 -60000=1 -60001=0 59998=2 59999=1"},
		{"largest ts", "e@9223372036854775807", 1 << 62, "0=0 9223372036854775807=1"},
		{"smallest ts but one", "e@-9223372036854775807", 1 << 62, "-9223372036854775807=1 0=0 9223372036854775807=0"},
		{"window longer than time", "a@-9223372036854775807 b@-5", math.MaxInt64, "-6=1 -1=2 0=1 9223372036854775807=0"},
		{"checks never count", "a@0 b@100", 3000, "200=2 200=2 3000=1 3100=0"},
		{"steady trickle", trickle, 5000, "4000=3 4999=3 5000=2 6000=3 30000=3 60000=3 65000=0"},
		{"rolling over a switch", "e@0", 18_000_000, "17999999=1 18000000=0"},
		{"idle", "a@0 b@1", 60_000, "120000=0"},
	} {
		for _, form := range forms {
			t.Run(c.name+"/"+form.name, func(t *testing.T) {
				s := newStore(form.limits)
				if err := form.load(s, parseEvents(t, c.events)); err != nil {
					t.Fatal(err)
				}
				for _, query := range strings.Fields(c.queries) {
					var asOf, want int64
					if _, err := fmt.Sscanf(query, "%d=%d", &asOf, &want); err != nil {
						t.Fatal(err)
					}
					q := Query{
						Windows: []Window{{"w", c.window}}, AsOf: asOf, Horizon: NoHorizon, CompleteSince: CompleteAlways,
					}
					var a Answer
					if err := s.answer(&q, &a); err != nil {
						t.Fatal(err)
					}
					if w := a.Windows[0]; w.Count != want || w.Max != want || !w.Exact {
						t.Errorf("at %d: %+v; want %d", asOf, w, want)
					}
				}
			})
		}
	}
}

// parseEvents reads id@ts …; equal ids have equal fingerprints.
func parseEvents(t *testing.T, script string) (entries []Entry) {
	ids := map[string]int{}
	for _, field := range strings.Fields(script) {
		id, at, _ := strings.Cut(field, "@")
		if _, ok := ids[id]; !ok {
			ids[id] = len(ids) + 1
		}
		var ts int64
		if _, err := fmt.Sscan(at, &ts); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, Entry{TS: ts, FP: fingerprint(ids[id])})
	}
	return entries
}

// TestConflict counts copies that differ, wherever they meet.
func TestConflict(t *testing.T) {
	for _, events := range []string{"x@5 x@9", "x@9 x@5"} {
		e := parseEvents(t, events)
		var m Merger
		m.Reset(NoHorizon)
		for i := range e {
			if err := m.Add(AppendOperand(nil, e[i:i+1], false)); err != nil {
				t.Fatal(err)
			}
		}
		m.Finish(nil)
		s := newStore(Limits{SparseMax: 1})
		s.base = AppendOperand(nil, parseEvents(t, "a@1 b@2 "+events[:3]), true)
		if _, err := s.fold(NoHorizon); err != nil {
			t.Fatal(err)
		}
		s.layers = append(s.layers, AppendOperand(nil, parseEvents(t, "a@1 b@2 "+events)[3:], true))
		if _, err := s.fold(NoHorizon); err != nil {
			t.Fatal(err)
		}
		if m.Conflicts != 1 || s.conflicts != 1 {
			t.Errorf("%s: %d conflicts in a merge, %d in a fold; want 1 each", events, m.Conflicts, s.conflicts)
		}
	}
}

// TestHorizonCases is the table of what is late: longest window + lateness = 100 s.
func TestHorizonCases(t *testing.T) {
	type step struct {
		ts     int64
		accept bool
		h      int64
		since  int64
	}
	for name, steps := range map[string][]step{
		"late":             {{200_000, true, 100_000, CompleteAlways}, {100_000, false, 100_000, 100_001}, {100_001, true, 100_000, 100_001}},
		"expired":          {{0, true, -100_000, CompleteAlways}, {99_999, true, -1, CompleteAlways}, {100_000, true, 0, 1}, {100_001, true, 1, 2}},
		"never falls":      {{500_000, true, 400_000, CompleteAlways}, {450_000, true, 400_000, CompleteAlways}},
		"smallest is late": {{math.MinInt64, false, NoHorizon, CompleteAlways}, {math.MinInt64 + 1, true, NoHorizon, CompleteAlways}},
		"largest":          {{math.MaxInt64, true, math.MaxInt64 - 100_000, CompleteAlways}, {0, false, math.MaxInt64 - 100_000, math.MaxInt64 - 99_999}},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHorizon(60_000, 40_000)
			for _, s := range steps {
				if got := h.Accept(s.ts); got != s.accept || h.H() != s.h || h.CompleteSince(NoHorizon) != s.since {
					t.Errorf("Accept(%d) = %t, H %d, complete since %d; want %+v", s.ts, got, h.H(), h.CompleteSince(NoHorizon), s)
				}
			}
		})
	}
	h := NewHorizon(60_000, 40_000)
	if got := h.CompleteSince(7); got != 8 {
		t.Errorf("trimmed up to 7, nothing seen: complete since %d; want 8", got)
	}
	h.Accept(1_000_000)
	if got := h.CompleteSince(7); got != 900_001 {
		t.Errorf("trimmed up to 7, H 900000: complete since %d; want 900001", got)
	}
	if got := h.CompleteSince(950_000); got != 950_001 {
		t.Errorf("trimmed up to 950000: complete since %d; want 950001", got)
	}
	if wide := NewHorizon(math.MaxInt64, math.MaxInt64); wide.Span != math.MaxInt64 {
		t.Errorf("span %d; want it saturated", wide.Span)
	}
}

// TestHorizonAhead: an event from the future counts, H does not follow it, and what H passes later is known to be gone.
func TestHorizonAhead(t *testing.T) {
	const far = 10_000_000
	h := NewHorizon(60_000, 40_000)
	for _, s := range []struct {
		ts     int64
		ahead  bool
		accept bool
		h      int64
		since  int64
	}{
		{far, true, true, 100_000, CompleteAlways}, // the first of all: H follows latest, 200,000
		{150_000, false, true, 100_000, CompleteAlways},
		{far, true, true, 100_000, CompleteAlways},
		{far + 200_000, false, true, far + 100_000, far + 100_001},
		{far + 100_000, true, false, far + 100_000, far + 100_001}, // the node's clock is behind: late all the same
	} {
		got := false
		if s.ahead {
			got = h.AcceptAhead(s.ts, 200_000)
		} else {
			got = h.Accept(s.ts)
		}
		if got != s.accept || h.H() != s.h || h.CompleteSince(NoHorizon) != s.since {
			t.Errorf("ts %d = %t, H %d, complete since %d; want %+v", s.ts, got, h.H(), h.CompleteSince(NoHorizon), s)
		}
	}
}

// TestCompleteWindow: a window is complete as long as it holds no instant before complete-since.
func TestCompleteWindow(t *testing.T) {
	value := AppendOperand(nil, []Entry{{TS: 5000, FP: 1}}, false)
	for _, c := range []struct {
		asOf     int64
		complete bool
	}{{10_999, false}, {11_000, true}, {11_001, true}} {
		q := Query{Windows: []Window{{"10s", 10_000}}, AsOf: c.asOf, Horizon: 1000, CompleteSince: 1001}
		var s Answerer
		var a Answer
		if err := s.Answer(value, nil, nil, &q, &a); err != nil {
			t.Fatal(err)
		}
		if w := a.Windows[0]; w.Complete != c.complete || w.Exact != c.complete || w.Count != 1 {
			t.Errorf("at %d: %+v; want complete %t", c.asOf, w, c.complete)
		}
	}
}

func TestCombine(t *testing.T) {
	a := Answer{Windows: []WindowAnswer{{1, 1, true, true}, {5, 6, false, true}}, NextExpiry: 90}
	b := Answer{Windows: []WindowAnswer{{2, 2, true, true}, {1, 1, false, false}}, NextExpiry: 70}
	var sum Answer
	for _, other := range []*Answer{&a, &b} {
		Combine(&sum, other)
	}
	want := Answer{Windows: []WindowAnswer{{3, 3, true, true}, {6, 7, false, false}}, NextExpiry: 70}
	if fmt.Sprint(sum) != fmt.Sprint(want) {
		t.Errorf("got %+v; want %+v", sum, want)
	}
}
