package slide

import (
	"fmt"
	"slices"
	"testing"
)

// The table in docs/design/0001-counter-algebra.md comes from
//
//	go test -run '^$' -bench . -benchmem ./internal/slide

func BenchmarkOperand(b *testing.B) {
	for _, n := range []int{1, 3, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			entries := steady(n, 1_750_000_000_000, minute)
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = AppendOperand(buf[:0], entries, false)
			}
		})
	}
}

func BenchmarkMerge(b *testing.B) {
	for _, c := range []struct{ operands, each int }{{2, 1}, {2, 3}, {10, 1}, {100, 40}} {
		b.Run(fmt.Sprintf("%dx%d", c.operands, c.each), func(b *testing.B) {
			entries := steady(c.operands*c.each, 1_750_000_000_000, minute)
			var values [][]byte
			for chunk := range slices.Chunk(entries, c.each) {
				values = append(values, AppendOperand(nil, chunk, false))
			}
			var m Merger
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				m.Reset(NoHorizon)
				for _, v := range values {
					if err := m.Add(v); err != nil {
						b.Fatal(err)
					}
				}
				buf = m.Finish(buf[:0])
			}
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	q := Query{Windows: windows, AsOf: 1_750_000_000_000 + 2*day, Horizon: NoHorizon, CompleteSince: CompleteAlways}
	run := func(name string, value []byte, from SliceReader, extra []Entry) {
		b.Run(name, func(b *testing.B) {
			var s Answerer
			var a Answer
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Answer(value, from, extra, &q, &a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, n := range []int{1, 3, 64} {
		run(fmt.Sprintf("sparse/%d", n), AppendOperand(nil, steady(n, 1_750_000_000_000, hour), false), nil, nil)
	}
	run("sparse/3+1", AppendOperand(nil, steady(3, 1_750_000_000_000, hour), false), nil, steady(4, 1_750_000_000_000, hour)[3:])
	for _, n := range []int{1000, 100_000, 1_000_000} {
		s, pending := hot(b, n)
		run(fmt.Sprintf("dense/%d", n), s.base, mapReader(s.slices), nil)
		run(fmt.Sprintf("dense/%d+64", n), pending, mapReader(s.slices), nil)
	}
}

// hot returns a key of n events within two days, and its root with 64 more of them pending.
func hot(b *testing.B, n int) (s *store, pending []byte) {
	step := 2 * day / int64(n)
	events := steady(n+64, 1_750_000_000_000, step)
	s = newStore(Limits{})
	s.base = AppendOperand(nil, events[:n], true)
	if _, err := s.fold(NoHorizon); err != nil {
		b.Fatal(err)
	}
	pending, err := Merge(nil, s.base, AppendOperand(nil, events[n:], true), NoHorizon)
	if err != nil {
		b.Fatal(err)
	}
	return s, pending
}

// BenchmarkFold folds what a key of n ids lets wait, and reports the cost per arrival.
func BenchmarkFold(b *testing.B) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, _ := hot(b, n)
			wait := Limits{}.withDefaults().pending(int64(n))
			fresh := steady(n+wait, 1_750_000_000_000, 2*day/int64(n))[n:]
			value, err := Merge(nil, s.base, AppendOperand(nil, fresh, true), NoHorizon)
			if err != nil {
				b.Fatal(err)
			}
			var f Folder
			written := 0
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Fold(value, mapReader(s.slices), NoHorizon, Limits{DedupIDs: 2 * n}); err != nil {
					b.Fatal(err)
				}
				written = len(f.Root)
				for _, w := range f.Writes {
					written += len(w.Value)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(wait), "ns/arrival")
			b.ReportMetric(float64(written)/float64(wait), "B/arrival")
		})
	}
}
