package counter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/slide"
)

func windows(millis ...int64) (list []slide.Window) {
	for _, m := range millis {
		list = append(list, slide.Window{Name: fmt.Sprint(m), Millis: m})
	}
	return list
}

func testDefinitions() []Definition {
	return []Definition{
		{Name: "pair", Stream: "s", Key: []string{"data.user", "data.ad"}, Windows: windows(1000, 60_000, 3_600_000)},
		{Name: "ads", Stream: "s", Key: []string{"data.ad"}, Windows: windows(1000, 600_000), LatenessMS: 60_000},
		{Name: "views", Stream: "s", Key: []string{"data.user"}, Where: `type == "view"`, Windows: windows(3_600_000, 10_000)},
	}
}

// traffic makes random events: few keys, some events twice, some late, time in steps.
type traffic struct {
	r    *rand.Rand
	now  int64
	made []sample
}

func (t *traffic) some(n int) []sample {
	samples := make([]sample, n)
	for i := range samples {
		if t.r.IntN(10) == 0 {
			t.now += int64(t.r.IntN(100_000))
		}
		if t.r.IntN(500) == 0 {
			t.now += int64(t.r.IntN(8_000_000))
		}
		s := sample{
			user: fmt.Sprint("u", int(t.r.ExpFloat64()*3)), ad: fmt.Sprint("a", t.r.IntN(3)), kind: []string{"view", "click"}[t.r.IntN(2)],
			id: fmt.Sprint(len(t.made)), ts: t.now - int64(t.r.ExpFloat64()*20_000),
		}
		switch {
		case t.r.IntN(20) == 0:
			s.ad = ""
		case len(t.made) > 0 && t.r.IntN(6) == 0:
			ts := s.ts
			s = t.made[len(t.made)-1-t.r.IntN(min(len(t.made), 300))]
			if t.r.IntN(3) == 0 {
				s.ts = ts
			}
		}
		t.made = append(t.made, s)
		samples[i] = s
	}
	return samples
}

// step does one random thing to the node.
func step(n *node, tr *traffic) {
	n.t.Helper()
	r := tr.r
	switch k := r.IntN(20); {
	case k < 12:
		ack := eventlog.AckDisk
		if r.IntN(3) == 0 {
			ack = eventlog.AckMemory
		}
		n.append(ack, tr.some(1+r.IntN(100))...)
	case k < 14:
		n.must(n.set.Flush())
	case k < 15:
		for _, p := range n.set.parts {
			n.must(p.store.Compact(context.Background()))
		}
	case k < 17:
		n.close()
		n.open()
	case k < 18:
		change(n, r)
	default:
		n.crash(r)
	}
}

// change reopens the counters with other definitions.
func change(n *node, r *rand.Rand) {
	n.t.Helper()
	n.must(n.set.Close())
	defs := testDefinitions()
	i := r.IntN(len(defs))
	switch r.IntN(4) {
	case 0:
		defs = append(defs[:i], defs[i+1:]...)
	case 1:
		defs[i].Where = `type == "view"`
	case 2:
		defs[i].Windows = append(defs[i].Windows, windows(7_200_000)...)
	}
	n.defs = defs
	n.openSet()
}

func TestModel(t *testing.T) {
	eachSeed(t, 6, func(t *testing.T, r *rand.Rand) {
		n := newNode(t, testDefinitions()...)
		n.limits = slide.Limits{SparseMax: 4 + r.IntN(8), SliceMax: 4 + r.IntN(8), PendingMin: 2 + r.IntN(6), PendingMax: 8 + r.IntN(20)}
		tr := &traffic{r: r, now: testStart}
		n.open()
		for range 60 {
			step(n, tr)
			for i := range n.defs {
				truths := n.truths(&n.defs[i])
				for range 4 {
					s := sample{user: fmt.Sprint("u", r.IntN(8)), ad: fmt.Sprint("a", r.IntN(4)), kind: "view"}
					n.check(&n.defs[i], truths, s, tr.now-int64(r.ExpFloat64()*100_000)+int64(r.IntN(1000)))
				}
			}
		}
		n.close()
	})
}
