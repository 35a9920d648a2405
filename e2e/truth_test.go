package e2e

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"
	"time"
)

// This file is the judge: what a counter must say, from the events alone. It is written to be plainly right, and
// shares no code with the engine.

// window is one window of a counter: its name in the configuration and its length in ms.
type window struct {
	name   string
	length int64
}

func windowsOf(names ...string) []window {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	all := make([]window, len(names))
	for i, name := range names {
		var n int64
		if _, err := fmt.Sscanf(name, "%d", &n); err != nil {
			panic(err)
		}
		all[i] = window{name, n * units[name[len(name)-1]].Milliseconds()}
	}
	return all
}

// truth holds the events that one counter accepted.
type truth struct {
	windows []window
	span    int64 // longest window + lateness
	horizon map[int]int64
	keys    map[string]*series
	seen    map[string]int64 // by key, segment and id: the ts that stands; nil: the caller leaves copies out
	loose   bool             // the counter forgets ids and its events come out of order: a bracket may have any width
}

// series holds the times of one key's events.
type series struct {
	times  []int64
	sorted bool
}

func newTruth(windows []window, lateness int64) *truth {
	tr := &truth{windows: windows, horizon: map[int]int64{}, keys: map[string]*series{}, seen: map[string]int64{}}
	for _, w := range windows {
		tr.span = max(tr.span, w.length+lateness)
	}
	return tr
}

// late says that the partition's counter does not take an event at ts, and otherwise moves its horizon.
func (tr *truth) late(partition int, ts int64) bool {
	h, ok := tr.horizon[partition]
	if ok && ts <= h {
		return true
	}
	if moved := minus(ts, tr.span); !ok || moved > h {
		tr.horizon[partition] = moved
	}
	return false
}

// add takes one event of the log, in the order of its partition.
func (tr *truth) add(partition int, key, segment, id string, ts int64) {
	if tr.late(partition, ts) {
		return
	}
	s := tr.keys[key]
	if s == nil {
		s = &series{}
		tr.keys[key] = s
	}
	if tr.seen != nil {
		name := key + "\x00" + segment + "\x00" + id
		old, copied := tr.seen[name]
		if copied && old >= ts {
			return
		}
		tr.seen[name] = ts
		if copied { // of copies that differ, the newest stands
			i := slices.Index(s.times, old)
			s.times = slices.Delete(s.times, i, i+1)
		}
	}
	s.times = append(s.times, ts)
	s.sorted = false
}

// of returns the sorted times of key.
func (tr *truth) of(key string) []int64 {
	s := tr.keys[key]
	if s == nil {
		return nil
	}
	if !s.sorted {
		slices.Sort(s.times)
		s.sorted = true
	}
	return s.times
}

// between counts the times in (from, to].
func between(times []int64, from, to int64) int64 {
	return int64(upTo(times, to) - upTo(times, from))
}

// upTo counts the times <= ts.
func upTo(times []int64, ts int64) int {
	return sort.Search(len(times), func(i int) bool { return times[i] > ts })
}

// newest is the largest horizon of all partitions plus the span: the newest event that was accepted.
func (tr *truth) newest() int64 {
	newest := int64(math.MinInt64)
	for _, h := range tr.horizon {
		newest = max(newest, h+tr.span)
	}
	return newest
}

// completeSinceMax is the latest instant that complete_since may name: just above the largest horizon.
func (tr *truth) completeSinceMax() int64 {
	latest := int64(math.MinInt64)
	for _, h := range tr.horizon {
		latest = max(latest, h+1)
	}
	return latest
}

// paneAt is the length of the pane that holds an event of this age, in ms.
func paneAt(age int64) int64 {
	switch {
	case age <= time.Hour.Milliseconds():
		return time.Second.Milliseconds()
	case age <= 24*time.Hour.Milliseconds():
		return time.Minute.Milliseconds()
	case age <= 7*24*time.Hour.Milliseconds():
		return 5 * time.Minute.Milliseconds()
	}
	return 15 * time.Minute.Milliseconds()
}

// widest is how far count and max of a window may lie apart: the events in the pane at each of its edges.
func widest(times []int64, newest, from, to int64) int64 {
	total := int64(0)
	for _, edge := range []int64{from, to} {
		pane := paneAt(newest - edge)
		start := edge - ((edge%pane)+pane)%pane
		total += between(times, start-1, start+pane-1)
	}
	return total
}

// nextChange is the next instant after asOf at which a window's count changes if nothing arrives: an event enters at its
// time, or leaves a window's length later.
func (tr *truth) nextChange(times []int64, asOf int64) *int64 {
	next := int64(math.MaxInt64)
	end := upTo(times, asOf)
	if end < len(times) {
		next = times[end]
	}
	for _, w := range tr.windows {
		if oldest := upTo(times, asOf-w.length); oldest < end {
			next = min(next, times[oldest]+w.length)
		}
	}
	if next == math.MaxInt64 {
		return nil
	}
	return &next
}

// verdict sums up what judge found in one answer.
type verdict struct{ exact, bracket, incomplete int }

func (v *verdict) add(other verdict) {
	v.exact += other.exact
	v.bracket += other.bracket
	v.incomplete += other.incomplete
}

// judge holds an answer against the truth.
func (tr *truth) judge(t testing.TB, key string, a *answer) (v verdict) {
	t.Helper()
	times := tr.of(key)
	newest := tr.newest()
	if a.CompleteSince != nil && *a.CompleteSince > tr.completeSinceMax() {
		t.Errorf("%s %q: complete_since is %d, but the horizon is at %d", a.Counter, key, *a.CompleteSince, tr.completeSinceMax()-1)
	}
	if len(a.Windows) != len(tr.windows) {
		t.Errorf("%s %q: %d windows in the answer; want %d", a.Counter, key, len(a.Windows), len(tr.windows))
	}
	for _, w := range tr.windows {
		got, from := a.Windows[w.name], minus(a.AsOf, w.length)
		want := between(times, from, a.AsOf)
		complete := a.CompleteSince == nil || from+1 >= *a.CompleteSince
		switch {
		case got.Count > want || got.Count < 0:
			t.Errorf("%s %q at %d, %s: count %d; the truth is %d", a.Counter, key, a.AsOf, w.name, got.Count, want)
		case complete != (got.Max != nil):
			t.Errorf("%s %q at %d, %s: max is %s with complete_since %s", a.Counter, key, a.AsOf, w.name, show(got.Max), show(a.CompleteSince))
		case !complete:
			if v.incomplete++; got.Exact {
				t.Errorf("%s %q at %d, %s: exact before complete_since", a.Counter, key, a.AsOf, w.name)
			}
		case *got.Max < want || got.Exact != (got.Count == *got.Max):
			t.Errorf("%s %q at %d, %s: %d..%d, exact %v; the truth is %d", a.Counter, key, a.AsOf, w.name, got.Count, *got.Max, got.Exact, want)
		case got.Exact:
			v.exact++
		default:
			v.bracket++
			if allowed := widest(times, newest, from, a.AsOf) + a.Behind; *got.Max-got.Count > allowed && !tr.loose {
				t.Errorf("%s %q at %d, %s: %d..%d is wider than the %d events at its edges; the truth is %d",
					a.Counter, key, a.AsOf, w.name, got.Count, *got.Max, allowed, want)
			}
		}
	}
	tr.judgeExpiry(t, key, a, v)
	return v
}

// judgeExpiry checks next_expiry: exactly the next change of the truth where all windows are exact. Where one is not, it is
// the next change of the answer, which moves by whole panes: asking again tells whether that is so.
func (tr *truth) judgeExpiry(t testing.TB, key string, a *answer, v verdict) {
	t.Helper()
	if v.incomplete > 0 || a.Behind > 0 {
		return // events that the counter has dropped or not seen yet change the truth, not its answers
	}
	want, got := tr.nextChange(tr.of(key), a.AsOf), a.NextExpiry
	if v.bracket == 0 && show(got) != show(want) || got != nil && *got <= a.AsOf {
		t.Errorf("%s %q at %d: next_expiry %s; the count changes at %s", a.Counter, key, a.AsOf, show(got), show(want))
	}
}

// minus subtracts without wrapping.
func minus(a, b int64) int64 {
	if b > 0 && a < math.MinInt64+b {
		return math.MinInt64
	}
	return a - b
}
