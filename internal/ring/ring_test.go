package ring

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// fill makes an entry whose every byte follows from its first offset, so that a reader can check it alone.
func fill(dst []byte, first int64) {
	for i := range dst {
		dst[i] = byte(first*31 + int64(i))
	}
}

func filled(src []byte, first int64) bool {
	for i := range src {
		if src[i] != byte(first*31+int64(i)) {
			return false
		}
	}
	return true
}

func mustNew(t testing.TB, o Options) *Ring {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// write appends an entry of count offsets; warm says how far the writer may retire when the ring is full.
func write(t testing.TB, r *Ring, count, size int, warm, nowMS int64) bool {
	t.Helper()
	first := r.End()
	for {
		mem, err := r.Reserve(size)
		if err == nil {
			if len(mem) != size {
				t.Fatalf("reserved %d bytes; want %d", len(mem), size)
			}
			fill(mem, first)
			r.Publish(first, count, nowMS)
			return true
		}
		if !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		if !r.Spill(warm, nowMS) {
			return false
		}
	}
}

func TestWriteRead(t *testing.T) {
	r := mustNew(t, Options{BytesMax: 1 << 20, AgeMS: 1000, End: 7})
	defer r.Close()
	reader := r.NewReader()
	if _, where := reader.Find(7); where != Ahead {
		t.Fatalf("empty ring: %v; want Ahead", where)
	}
	if _, where := reader.Find(6); where != Behind {
		t.Fatalf("below an empty ring: %v; want Behind", where)
	}
	for i := range 1000 {
		if !write(t, r, 1+i%3, 10+i, 0, 0) {
			t.Fatalf("full after %d entries", i)
		}
	}
	seen := 0
	for offset := int64(7); offset < r.End(); {
		e, where := reader.Find(offset)
		if where != Here || e.First > offset || offset >= e.First+int64(e.Count) || !filled(e.Bytes, e.First) {
			t.Fatalf("offset %d: %v, entry %d+%d", offset, where, e.First, e.Count)
		}
		if offset == e.First {
			seen++
		}
		offset++
		if offset%5 == 0 {
			reader.Release()
		}
	}
	if seen != 1000 {
		t.Fatalf("%d entries; want 1000", seen)
	}
	for _, offset := range []int64{7, r.End() - 1, 500, 8} { // also backwards
		if e, where := reader.Find(offset); where != Here || e.First > offset || offset >= e.First+int64(e.Count) {
			t.Fatalf("seek %d: %v, entry %d+%d", offset, where, e.First, e.Count)
		}
	}
}

func TestRetireByAgeAndFrontier(t *testing.T) {
	r := mustNew(t, Options{BytesMax: 1 << 20, AgeMS: 1000})
	defer r.Close()
	for i := range 10 {
		write(t, r, 1, 40<<10, 0, int64(i)*100) // one in each chunk of 64 KiB
	}
	for _, c := range []struct {
		warm, now int64
		first     int64
	}{
		{10, 999, 0},  // warm, but young
		{0, 5000, 0},  // old, but not warm
		{3, 1050, 1},  // one is old
		{3, 5000, 3},  // three are warm
		{10, 1500, 6}, // a clock that was set back
		{10, 5000, 10},
	} {
		if r.Retire(c.warm, c.now); r.Stats().First != c.first {
			t.Fatalf("warm %d at %d: first %d; want %d", c.warm, c.now, r.Stats().First, c.first)
		}
	}
	if s := r.Stats(); s.Chunks != 0 || s.Spills != 0 || s.Bytes == 0 {
		t.Fatalf("stats %+v; want no chunks, no spills, memory kept for reuse", s)
	}
	if r.Retire(10, 10_000); r.Stats().Bytes != 0 {
		t.Fatalf("idle memory was kept: %+v", r.Stats())
	}
	if write(t, r, 1, 10, 10, 0); r.End() != 11 {
		t.Fatalf("end %d; want 11", r.End())
	}
}

func TestFullPinsAndSpills(t *testing.T) {
	r := mustNew(t, Options{BytesMax: 256 << 10, AgeMS: 1000})
	defer r.Close()
	for write(t, r, 1, 60<<10, 0, 0) {
	}
	if r.Stats().Bytes != 256<<10 || r.End() != 4 {
		t.Fatalf("full at %+v", r.Stats())
	}
	readers := make([]*Reader, 4)
	for i := range readers {
		readers[i] = r.NewReader()
		readers[i].Find(int64(i))
	}
	if write(t, r, 1, 60<<10, 4, 0) {
		t.Fatal("memory that a reader pins was used again")
	}
	if s := r.Stats(); s.Spills != 4 || s.First != 4 || s.Chunks != 0 {
		t.Fatalf("stats %+v; want 4 spills and an empty chain", s)
	}
	e, where := readers[2].Find(2) // pinned: still there
	if where != Here || !filled(e.Bytes, 2) {
		t.Fatalf("pinned entry: %v", where)
	}
	readers[2].Release()
	if !write(t, r, 1, 60<<10, 4, 0) {
		t.Fatal("full, with a chunk that nobody pins")
	}
	if _, where := readers[2].Find(2); where != Behind {
		t.Fatalf("retired entry: %v; want Behind", where)
	}
	if e, where := readers[2].Find(4); where != Here || !filled(e.Bytes, 4) {
		t.Fatalf("new entry: %v", where)
	}
}

func TestLargeEntries(t *testing.T) {
	const large = 300 << 10
	r := mustNew(t, Options{BytesMax: BytesMin(large), AgeMS: 1000})
	defer r.Close()
	reader := r.NewReader()
	for i := range 200 {
		size := []int{10, large, 60 << 10, large - 7, 200}[i%5]
		if !write(t, r, 2, size, r.End(), 0) {
			t.Fatalf("entry %d of %d bytes does not fit: %+v", i, size, r.Stats())
		}
		e, where := reader.Find(r.End() - 1)
		if where != Here || len(e.Bytes) != size || !filled(e.Bytes, e.First) {
			t.Fatalf("entry %d: %v, %d bytes", i, where, len(e.Bytes))
		}
		if s := r.Stats(); s.Bytes > BytesMin(large) {
			t.Fatalf("entry %d: %d bytes mapped; cap %d", i, s.Bytes, BytesMin(large))
		}
		reader.Release()
	}
}

func TestCapTooSmall(t *testing.T) {
	if _, err := New(Options{BytesMax: 1000}); err == nil {
		t.Fatal("a ring without room for chunks was made")
	}
}

// One writer that spills all the time and many readers of all habits; every byte that a reader sees is checked. The
// race detector sees the memory too, because it is the heap's in race builds.
func TestStress(t *testing.T) {
	entries := 4_000
	if !OffHeap { // the race detector makes each byte costly
		entries = 1_500
	}
	if os.Getenv("WEIR_SOAK") != "" {
		entries = 2_000_000
	}
	seed := seedOf(t)
	r := mustNew(t, Options{BytesMax: 8 * chunkBytesMin, AgeMS: 1 << 40})
	var done atomic.Bool
	var readers sync.WaitGroup
	var found, missed atomic.Int64
	for i := range 6 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			hits, misses, err := wander(r, rand.New(rand.NewPCG(seed, uint64(i))), &done, i)
			found.Add(hits)
			missed.Add(misses)
			if err != nil {
				t.Error(err)
			}
		}()
	}
	rng := rand.New(rand.NewPCG(seed, 99))
	for range entries {
		size := 16 + rng.IntN(3000)
		if rng.IntN(50) == 0 {
			size = 40_000 + rng.IntN(60_000)
		}
		for !write(t, r, 1+rng.IntN(4), size, r.End(), 0) {
			runtime.Gosched() // every chunk is pinned: readers move on
		}
		if rng.IntN(64) == 0 {
			runtime.Gosched()
		}
	}
	done.Store(true)
	readers.Wait()
	r.Close()
	if s := r.Stats(); s.Bytes != 0 || s.Spills == 0 {
		t.Fatalf("after close: %+v", s)
	}
	if found.Load() == 0 {
		t.Fatal("no reader found anything")
	}
	t.Logf("%d entries read, %d times behind", found.Load(), missed.Load())
}

// wander reads until the writer is done: most readers follow, some look back, some stop with a pin.
func wander(r *Ring, rng *rand.Rand, done *atomic.Bool, habit int) (hits, misses int64, err error) {
	reader := r.NewReader()
	defer reader.Release()
	for offset := int64(0); !done.Load() || offset < r.End(); {
		e, where := reader.Find(offset)
		switch where {
		case Ahead:
			if offset < r.End() && done.Load() {
				return hits, misses, fmt.Errorf("offset %d is ahead of %d", offset, r.End())
			}
			runtime.Gosched()
		case Behind:
			misses++
			offset = max(offset+1, r.Stats().First)
		default:
			hits++
			if offset < e.First || offset >= e.First+int64(e.Count) {
				return hits, misses, fmt.Errorf("offset %d: got entry %d+%d", offset, e.First, e.Count)
			}
			if habit == 1 && rng.IntN(100) == 0 {
				runtime.Gosched() // asleep with a pin
			}
			if !filled(e.Bytes, e.First) {
				return hits, misses, fmt.Errorf("offset %d: entry %d changed under its reader", offset, e.First)
			}
			offset = e.First + int64(e.Count)
			if habit == 2 && rng.IntN(10) == 0 {
				offset = max(0, offset-rng.Int64N(500))
			}
			if habit == 3 {
				reader.Release()
			}
		}
	}
	return hits, misses, nil
}

// A full ring is nothing to the garbage collector: it adds no heap objects, and writing and reading allocate nothing.
func TestFullRingAddsNoHeapObjects(t *testing.T) {
	if !OffHeap {
		t.Skip("the ring is on the heap in this build, for the race detector")
	}
	const capBytes = 64 << 20
	r := mustNew(t, Options{BytesMax: capBytes, AgeMS: 1 << 40})
	defer r.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	entry := bytes.Repeat([]byte{7}, 20_000)
	for {
		mem, err := r.Reserve(len(entry))
		if err != nil {
			break
		}
		copy(mem, entry)
		r.Publish(r.End(), 100, 0)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if s := r.Stats(); s.Bytes < capBytes*9/10 {
		t.Fatalf("the ring is not full: %+v", s)
	}
	const noise = 50 // objects of the runtime's own
	if added := int64(after.HeapObjects) - int64(before.HeapObjects); added > noise {
		t.Errorf("a full ring of %d bytes added %d heap objects; want none", capBytes, added)
	}
	if added := int64(after.HeapInuse) - int64(before.HeapInuse); added > 1<<20 {
		t.Errorf("a full ring of %d bytes added %d bytes of heap; want none", capBytes, added)
	}
	reader, offset := r.NewReader(), r.End()
	if n := testing.AllocsPerRun(2000, func() {
		mem, err := r.Reserve(len(entry))
		for err != nil {
			r.Spill(r.End(), 0)
			mem, err = r.Reserve(len(entry))
		}
		binary.LittleEndian.PutUint64(mem, 1)
		r.Publish(r.End(), 100, 0)
		if _, where := reader.Find(offset); where != Here {
			t.Fatalf("offset %d: %v", offset, where)
		}
		offset += 100
	}); n != 0 {
		t.Errorf("write and read allocate %v times; want 0", n)
	}
}

func BenchmarkWriteRead(b *testing.B) {
	r := mustNew(b, Options{BytesMax: 64 << 20, AgeMS: 1 << 40})
	defer r.Close()
	entry := bytes.Repeat([]byte{7}, 100<<10)
	reader := r.NewReader()
	b.SetBytes(int64(len(entry)))
	for b.Loop() {
		mem, err := r.Reserve(len(entry))
		for err != nil {
			r.Spill(r.End(), 0)
			mem, err = r.Reserve(len(entry))
		}
		copy(mem, entry)
		first := r.End()
		r.Publish(first, 500, 0)
		if _, where := reader.Find(first); where != Here {
			b.Fatal(where)
		}
	}
}

// seedOf returns the seed of a random test, WEIR_SEED or a new one, and logs the command that repeats the test with it.
func seedOf(t testing.TB) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("WEIR_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("repeat with: WEIR_SEED=%d go test -run '^%s$' ./internal/ring", seed, t.Name())
	return seed
}
