package config

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func (b Budget) sum() int64 {
	return b.Rings + b.RecentIDs + b.Bodies + b.Commands + b.Queues + b.BlockCache + b.Memtables + b.DeltaTables + b.LookupCache + b.Heap
}

func TestDefaultFitsItsMemory(t *testing.T) {
	b, err := Default().Divide()
	if err != nil {
		t.Fatal(err)
	}
	want := Budget{
		Total: 1 << 30, Rings: 256 << 20, RecentIDs: 64_000_000, Bodies: 64 << 20, Commands: 32 << 20, Queues: 64 << 20,
		BlockCache: b.BlockCache, Memtables: b.Memtables, Instances: 4, Heap: 128 << 20,
	}
	if b != want || b.sum() != b.Total || b.BlockCache < 128<<20 || b.Memtables < 128<<20 {
		t.Errorf("got %+v; want %+v", b, want)
	}
}

func TestCountersTakeTheirPart(t *testing.T) {
	cfg := Default()
	cfg.Counters = []Counter{{Name: "c", Stream: "events"}}
	b, err := cfg.Divide()
	if err != nil || b.DeltaTables == 0 || b.LookupCache == 0 || b.Instances != 8 || b.sum() != b.Total {
		t.Errorf("got %+v, %v; want all parts, 8 instances", b, err)
	}
}

// TestBudget divides random configurations: either every part has at least its floor and the parts add up to memory, or
// the division fails and the memory that the message asks for is enough.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := baseConfig()
		cfg.MemoryBytes = rapid.Int64Range(memoryBytesMin, 8<<30).Draw(t, "memory")
		cfg.Limits.BodyBytes = rapid.Int64Range(1<<20, 128<<20).Draw(t, "body")
		for i := range rapid.IntRange(1, 5).Draw(t, "streams") {
			s := baseStream(fmt.Sprint("s", i))
			s.Partitions = rapid.IntRange(partitionsMin, 32).Draw(t, "partitions")
			if rapid.Bool().Draw(t, "own ring") {
				s.Ring = Ring{AgeMS: 1, Bytes: rapid.Int64Range(64<<20, 1<<30).Draw(t, "ring")}
			}
			if rapid.Bool().Draw(t, "own ids") {
				s.Dedup = Dedup{WindowMS: rapid.Int64Range(0, 1).Draw(t, "window"), MaxIDs: rapid.IntRange(0, 5_000_000).Draw(t, "ids")}
			}
			cfg.Streams = append(cfg.Streams, s)
		}
		if rapid.Bool().Draw(t, "counted") {
			cfg.Counters = []Counter{{Name: "c", Stream: "s0"}}
		}
		cfg.settle()
		b, err := cfg.Divide()
		if err != nil {
			if !errors.Is(err, ErrBudget) {
				t.Fatalf("got %v; want ErrBudget", err)
			}
			cfg.MemoryBytes = cfg.leastMemory()
			cfg.settle()
			if b, err = cfg.Divide(); err != nil {
				t.Fatalf("got %v with the memory that was asked for, %s", err, FormatSize(cfg.MemoryBytes))
			}
		}
		if b.sum() != b.Total || b.Total != cfg.MemoryBytes {
			t.Fatalf("the parts of %+v add up to %d", b, b.sum())
		}
		if b.BlockCache < blockCacheBytesMin || b.Memtables < int64(b.Instances)*memtableBytesMin || b.Heap < heapBytesMin ||
			b.Queues < cfg.Limits.BodyBytes*int64(len(cfg.Streams)) || (len(cfg.Counters) > 0) != (b.DeltaTables > 0) {
			t.Fatalf("a part of %+v is below its floor", b)
		}
	})
}
