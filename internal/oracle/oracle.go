// Package oracle is the brute-force reference for sliding counters: a list of events per key in the order of arrival,
// and loops over it.
//
// It is for tests only, and shares no code with the engine: what the definition says, in the fewest words, however slow.
package oracle

import "math"

// NoExpiry says that an answer never changes by itself.
const NoExpiry int64 = math.MaxInt64

// Counter is one counter in one partition.
type Counter struct {
	// Limits of time in ms: the longest window, and how much later than that an event may come.
	longest, lateness int64

	keys   map[string][]accepted
	any    bool
	newest int64 // accepted
	oldest int64 // accepted or late
	late   int
}

type accepted struct {
	id string
	ts int64
}

// New returns a counter that has seen nothing. Both in ms.
func New(longestWindow, lateness int64) *Counter {
	return &Counter{longest: longestWindow, lateness: lateness, keys: map[string][]accepted{}}
}

// Add takes an event in the order of arrival. It returns false if the event is late: then it is not counted.
func (c *Counter) Add(key, id string, ts int64) bool {
	if !c.any || ts < c.oldest {
		c.oldest = ts
	}
	if ts <= c.H() {
		c.late++
		return false
	}
	if !c.any || ts > c.newest {
		c.newest = ts
	}
	c.any = true
	c.keys[key] = append(c.keys[key], accepted{id, ts})
	return true
}

// H is the lateness horizon: the newest accepted ts less the longest window and the lateness; the smallest int64 before
// the first event. Saturating.
func (c *Counter) H() int64 {
	if !c.any {
		return math.MinInt64
	}
	return less(less(c.newest, c.longest), c.lateness)
}

// Late is the number of events that Add refused.
func (c *Counter) Late() int { return c.late }

// Keys returns the keys that have accepted events, in no order.
func (c *Counter) Keys() []string {
	keys := make([]string, 0, len(c.keys))
	for k := range c.keys {
		keys = append(keys, k)
	}
	return keys
}

// Count is the truth: the number of ids of key whose largest ts lies in (asOf-window, asOf].
func (c *Counter) Count(key string, window, asOf int64) int64 {
	return c.CountAbove(key, window, asOf, math.MinInt64)
}

// CountAbove is Count without what lies at or below horizon: what an engine can still know.
func (c *Counter) CountAbove(key string, window, asOf, horizon int64) int64 {
	n := int64(0)
	for _, ts := range c.latest(key) {
		if ts > horizon && ts <= asOf && ts > less(asOf, window) {
			n++
		}
	}
	return n
}

// Conflicts is the number of arrivals of key that had the id of an earlier one and another ts than it had by then.
func (c *Counter) Conflicts(key string) int {
	n := 0
	seen := map[string]int64{}
	for _, e := range c.keys[key] {
		if ts, ok := seen[e.id]; ok && ts != e.ts {
			n++
		}
		if ts, ok := seen[e.id]; !ok || e.ts > ts {
			seen[e.id] = e.ts
		}
	}
	return n
}

// CompleteSince is the instant since which the counter holds everything, the smallest int64 if it always did. trimmed
// is the largest ts that was gone before it could be read, the smallest int64 if none was.
func (c *Counter) CompleteSince(trimmed int64) int64 {
	lost := trimmed
	switch {
	case !c.any:
	case c.oldest <= c.H() || trimmed != math.MinInt64:
		if h := c.H(); h > lost {
			lost = h
		}
	}
	switch lost {
	case math.MinInt64:
		return math.MinInt64
	case math.MaxInt64:
		return math.MaxInt64
	}
	return lost + 1
}

// Complete says whether a window at asOf holds nothing older than since.
func Complete(window, asOf, since int64) bool {
	first := less(asOf, window)
	return first == math.MaxInt64 || first+1 >= since
}

// NextExpiry is the smallest instant after asOf at which the count of one of windows changes if nothing arrives, as far
// as events above horizon go.
func (c *Counter) NextExpiry(key string, windows []int64, asOf, horizon int64) int64 {
	next := NoExpiry
	note := func(at int64) {
		if at > asOf && at < next {
			next = at
		}
	}
	for _, ts := range c.latest(key) {
		if ts <= horizon {
			continue
		}
		note(ts)
		for _, w := range windows {
			if ts <= asOf && ts <= math.MaxInt64-w {
				note(ts + w)
			}
		}
	}
	return next
}

// latest returns the ts that counts for each id of key.
func (c *Counter) latest(key string) map[string]int64 {
	latest := map[string]int64{}
	for _, e := range c.keys[key] {
		if ts, ok := latest[e.id]; !ok || e.ts > ts {
			latest[e.id] = e.ts
		}
	}
	return latest
}

// less returns a-b for b >= 0, no less than the smallest int64.
func less(a, b int64) int64 {
	if a < math.MinInt64+b {
		return math.MinInt64
	}
	return a - b
}
