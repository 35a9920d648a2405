package eventlog

import (
	"math/rand/v2"
	"testing"

	"github.com/weirstream/weir/internal/event"
)

// BenchmarkDedupFull is four partitions that take turns, as on a node, each with as many ids as it may remember.
func BenchmarkDedupFull(b *testing.B) {
	const partitions, ids, batch = 4, 250_000, 128
	r := rand.New(rand.NewPCG(1, 2))
	var all [partitions]*dedup
	var next [partitions]int64
	items := make([]event.Item, batch)
	run := func(p int, prefetch bool) {
		for i := range items {
			items[i].Hash = event.Hash{Hi: r.Uint64(), Lo: r.Uint64()}
		}
		if prefetch {
			all[p].prefetch(items)
		}
		for i := range items {
			if _, ok := all[p].lookup(items[i].Hash, 1000); ok {
				b.Fatal("a random hash was seen before")
			}
			all[p].push(items[i].Hash, 1000, next[p])
			next[p]++
		}
	}
	for name, prefetch := range map[string]bool{"alone": false, "prefetched": true} {
		b.Run(name, func(b *testing.B) {
			for p := range all {
				all[p], next[p] = newDedup(600_000, ids, 0), 0
				for next[p] < ids+batch {
					run(p, false)
				}
			}
			b.ResetTimer()
			for i := range b.N {
				run(i%partitions, prefetch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/event")
		})
	}
}
