package e2e

import (
	"fmt"
	"testing"
)

// TestJudge holds the judge's binary searches against a loop over the accepted events.
func TestJudge(t *testing.T) {
	random := randomFor(t)
	for range 100 {
		windows := []window{{"a", 1 + random.Int64N(30)}, {"b", 1 + random.Int64N(60)}}
		tr := newTruth(windows, random.Int64N(40))
		type event struct {
			id string
			ts int64
		}
		var log []event
		newest, best := int64(-1<<62), map[string]int64{}
		for range random.IntN(60) {
			e := event{fmt.Sprint(random.IntN(40)), random.Int64N(300) - 100}
			log = append(log, e)
			tr.add(0, "k", "s", e.id, e.ts)
			if e.ts <= newest-tr.span {
				continue
			}
			newest = max(newest, e.ts)
			if old, ok := best[e.id]; !ok || e.ts > old {
				best[e.id] = e.ts
			}
		}
		for range 20 {
			asOf := random.Int64N(400) - 100
			for _, w := range windows {
				want := int64(0)
				for _, ts := range best {
					if asOf-w.length < ts && ts <= asOf {
						want++
					}
				}
				if got := between(tr.of("k"), asOf-w.length, asOf); got != want {
					t.Fatalf("%d in (%d, %d] of %v; want %d", got, asOf-w.length, asOf, log, want)
				}
			}
			// The next change is the first instant at which some window counts another number.
			next := tr.nextChange(tr.of("k"), asOf)
			for step := asOf + 1; step <= asOf+700; step++ {
				changed := false
				for _, w := range windows {
					for _, ts := range best {
						changed = changed || ts == step || ts+w.length == step
					}
				}
				if changed != (next != nil && *next == step) && (next == nil || step <= *next) {
					t.Fatalf("next change after %d is %s; at %d: %v", asOf, show(next), step, changed)
				}
			}
		}
	}
}
