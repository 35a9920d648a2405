package state

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/slide"
)

// TestExperiment is the experiment of docs/design/0003-counter-state.md: uniform keys, ten million of them, in bounded
// memory on a real disk, with look-ups of random keys beside. WEIR_EXPERIMENT is the number of seconds to run.
func TestExperiment(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv("WEIR_EXPERIMENT"))
	if err != nil {
		t.Skip("runs for as many seconds as WEIR_EXPERIMENT says")
	}
	const memory = 512 << 20
	debug.SetMemoryLimit(memory * 3 / 4) // the tables and the look-up cache are beside the heap
	cache := NewCache(96 << 20)
	defer cache.Unref()
	b := newBench(t, Options{Dir: t.TempDir(), Cache: cache, MemtableBytes: 32 << 20, DeltaBytes: 24 << 20, LookupBytes: 32 << 20})
	r := rand.New(rand.NewPCG(1, 2))
	full := time.Duration(seconds) * time.Second
	b.phase(t, r, "as fast as it goes", full, 0)
	b.phase(t, r, "100,000 events/s", full/3, 100_000)
	m := b.store.db.Metrics()
	total := m.Total()
	t.Logf("%d events; %d MB on disk, read amplification %d, write amplification %.1f, RSS at most %s",
		b.next, m.DiskSpaceUsage()>>20, m.ReadAmp(), total.WriteAmp(), residentSet(t))
	runtime.KeepAlive(cache)
}

const experimentUsers = 10_000_000

// phase adds events of random users, rate a second (0: without pause), while a thousand look-ups a second are asked for.
func (b *bench) phase(t *testing.T, r *rand.Rand, name string, takes time.Duration, rate int) {
	ctx, cancel := context.WithTimeout(t.Context(), takes)
	defer cancel()
	var wg sync.WaitGroup
	var times []time.Duration
	wg.Go(func() { commitEvery(ctx, t, b.lane, 50*time.Millisecond) })
	wg.Go(func() { times = lookupEvery(ctx, t, b, time.Millisecond, experimentUsers) })
	const batch = 500
	pace := make(<-chan time.Time)
	if rate > 0 {
		ticker := time.NewTicker(time.Second * batch / time.Duration(rate))
		defer ticker.Stop()
		pace = ticker.C
	}
	start, first, last, lastNext := time.Now(), b.next, time.Now(), b.next
	for ctx.Err() == nil {
		if rate > 0 {
			<-pace
		}
		b.batch(ctx, r, batch)
		if took := time.Since(last); took > 10*time.Second {
			t.Logf("%s: %3.0f s: %.0f events/s", name, time.Since(start).Seconds(), float64(b.next-lastNext)/took.Seconds())
			last, lastNext = time.Now(), b.next
		}
	}
	took := time.Since(start)
	wg.Wait()
	slices.Sort(times)
	t.Logf("%s: %.0f events/s over %v; %d look-ups: p50 %v, p99 %v, max %v", name, float64(b.next-first)/took.Seconds(),
		took.Round(time.Second), len(times), times[len(times)/2], times[len(times)*99/100], times[len(times)-1])
}

// batch adds n events, waiting for room as the loop does.
func (b *bench) batch(ctx context.Context, r *rand.Rand, n int) {
	b.lane.Lock()
	defer b.lane.Unlock()
	for range n {
		user := r.Uint64N(experimentUsers) * 0x9e3779b97f4a7c15
		e := slide.Entry{TS: 1_700_000_000_000 + b.next/400, FP: r.Uint64()}
		for !b.add(user, uint32(user), e) {
			b.lane.Unlock()
			err := b.lane.WaitRoom(ctx)
			b.lane.Lock()
			if err != nil {
				return
			}
		}
	}
}

func be64(v uint64) []byte {
	return []byte{byte(v >> 56), byte(v >> 48), byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}

func commitEvery(ctx context.Context, t *testing.T, l *Lane, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ticker.C:
		case <-l.Full():
		case <-ctx.Done():
			return
		}
		if _, err := l.Commit(); err != nil {
			t.Error(err)
			return
		}
	}
}

func lookupEvery(ctx context.Context, t *testing.T, b *bench, every time.Duration, users uint64) (times []time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	r := rand.New(rand.NewPCG(3, 4))
	var s Scratch
	var a slide.Answer
	q := slide.Query{Windows: b.windows, AsOf: 1_700_000_000_000 + 3_600_000}
	for ctx.Err() == nil {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return times
		}
		user := r.Uint64N(users) * 0x9e3779b97f4a7c15
		key := AppendKey(nil, b.counter.ID, be64(user), be64(user)[4:])
		begin := time.Now()
		if _, err := b.lane.Lookup(b.counter, key, &q, &s, &a); err != nil {
			t.Error(err)
			return times
		}
		times = append(times, time.Since(begin))
	}
	return times
}

func residentSet(t *testing.T) string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "VmHWM:") {
			return strings.TrimSpace(strings.TrimPrefix(line, "VmHWM:"))
		}
	}
	t.Log("no VmHWM in /proc/self/status")
	return "unknown"
}
