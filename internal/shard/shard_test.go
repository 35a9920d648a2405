package shard

import (
	"math/rand/v2"
	"testing"
)

// The hashes that Kafka's own UtilsTest.testMurmur2 expects.
func TestMurmur2AsKafka(t *testing.T) {
	for _, c := range []struct {
		key  string
		want int32
	}{
		{"21", -973932308},
		{"foobar", -790332482},
		{"a-little-bit-long-string", -985981536},
		{"a-little-bit-longer-string", -1486304829},
		{"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
		{"abc", 479470107},
	} {
		if got := int32(murmur2([]byte(c.key))); got != c.want {
			t.Errorf("murmur2(%q) = %d; want %d", c.key, got, c.want)
		}
		positive := int64(c.want) & 0x7fffffff
		for _, count := range []int{1, 2, 4, 7, 128} {
			if got, want := Of([]byte(c.key), count), int(positive%int64(count)); got != want {
				t.Errorf("Of(%q, %d) = %d; want %d", c.key, count, got, want)
			}
		}
	}
}

func TestOfSpreadsAndStays(t *testing.T) {
	const count, segments = 8, 80_000
	rng := rand.New(rand.NewPCG(1, 2))
	var hits [count]int
	key := make([]byte, 12)
	for range segments {
		for i := range key {
			key[i] = byte(rng.Uint32())
		}
		p := Of(key[:rng.IntN(len(key)+1)], count)
		if p < 0 || p >= count {
			t.Fatalf("partition %d of %d", p, count)
		}
		hits[Of(key, count)]++
	}
	for p, n := range hits {
		if n < segments/count*9/10 || n > segments/count*11/10 {
			t.Errorf("partition %d got %d of %d segments", p, n, segments)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add([]byte(nil), 1)
	f.Add([]byte("abc"), 4)
	f.Fuzz(func(t *testing.T, key []byte, count int) {
		if count < 1 {
			return
		}
		if p := Of(key, count); p < 0 || p >= count || p != Of(append([]byte{}, key...), count) {
			t.Fatalf("partition %d of %d", p, count)
		}
	})
}
