package oracle

import (
	"math"
	"testing"
)

func TestCounter(t *testing.T) {
	c := New(1000, 500)
	for _, e := range []struct {
		id   string
		ts   int64
		want bool
	}{
		{"a", 0, true}, {"b", 900, true}, {"a", 950, true}, {"b", 900, true}, {"c", 2500, true},
		{"d", 1000, false}, {"e", 1001, true},
	} {
		if got := c.Add("k", e.id, e.ts); got != e.want {
			t.Errorf("Add(%s, %d) = %t; want %t", e.id, e.ts, got, e.want)
		}
	}
	for _, q := range []struct{ window, asOf, want int64 }{
		{1000, 1000, 2}, {1000, 1949, 2}, {1000, 1950, 1}, {1000, 2001, 0}, {1500, 2500, 2}, {math.MaxInt64, 5000, 4},
	} {
		if got := c.Count("k", q.window, q.asOf); got != q.want {
			t.Errorf("Count(%d, %d) = %d; want %d", q.window, q.asOf, got, q.want)
		}
	}
	if got := c.Conflicts("k"); got != 1 {
		t.Errorf("Conflicts = %d; want 1", got)
	}
	if got := c.NextExpiry("k", []int64{1000}, 960, math.MinInt64); got != 1001 {
		t.Errorf("NextExpiry = %d; want 1001", got)
	}
	if c.H() != 1000 || c.Late() != 1 || c.CompleteSince(math.MinInt64) != 1001 {
		t.Errorf("H %d, late %d, complete since %d; want 1000, 1, 1001", c.H(), c.Late(), c.CompleteSince(math.MinInt64))
	}
	if !Complete(1000, 2000, 1001) || Complete(1000, 1999, 1001) {
		t.Error("Complete is off at the boundary")
	}
}
