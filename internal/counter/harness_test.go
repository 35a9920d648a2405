package counter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/clock"
	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/oracle"
	"github.com/weirstream/weir/internal/shard"
	"github.com/weirstream/weir/internal/slide"
)

const testStart = 1_700_000_000_000

// sample is an event as the tests make it.
type sample struct {
	user, ad, id, kind string
	ts                 int64
}

// node is a log and the counters over it, on one file system that can lose power.
type node struct {
	t      testing.TB
	fs     *vfs.MemFS
	limits slide.Limits
	epoch  time.Duration
	delta  int // bytes of a delta table
	clock  *clock.Manual
	defs   []Definition
	log    *eventlog.Log
	set    *Set
	stored [][]sample // what each partition of the log holds
}

const testPartitions = 2

func newNode(t testing.TB, defs ...Definition) *node {
	n := &node{t: t, fs: vfs.NewCrashableMem(), defs: defs, epoch: time.Millisecond, delta: 64 << 10, clock: &clock.Manual{}}
	n.clock.Set(testStart)
	n.stored = make([][]sample, testPartitions)
	return n
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) openLog() {
	n.t.Helper()
	var err error
	n.log, err = eventlog.Open(eventlog.Options{
		FS: n.fs, Dir: "log", Stream: "s", Partitions: testPartitions, Segment: "data.user", RingBytes: 2 << 20,
		MemtableBytes: 256 << 10, EventBytesMax: 128 << 10, DiskReserve: -1, BallastBytes: -1, DedupMaxIDs: 1, Clock: n.clock,
		Retention: time.Hour, Fatal: func(err error) { panic(err) },
	})
	n.must(err)
}

func (n *node) options() Options {
	return Options{
		FS: n.fs, Dir: "counters", Streams: []Stream{{Name: "s", Log: n.log, Segment: "data.user"}}, Definitions: n.defs,
		MemtableBytes: 256 << 10, DeltaBytes: n.delta, LookupBytes: 1 << 16, Epoch: n.epoch, Limits: n.limits, Clock: n.clock,
		Fatal: func(err error) { panic(err) },
	}
}

func (n *node) openSet() {
	n.t.Helper()
	var err error
	n.set, err = Open(n.options())
	n.must(err)
}

func (n *node) open() {
	n.t.Helper()
	n.openLog()
	n.openSet()
}

func (n *node) close() {
	n.t.Helper()
	n.must(n.set.Close())
	n.must(n.log.Close(context.Background()))
}

// crash goes on with what the disk would hold after a power cut at this moment.
func (n *node) crash(r *rand.Rand) {
	n.t.Helper()
	clone := n.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
	n.close()
	n.fs = clone
	n.openLog()
	for i := range n.stored {
		end := n.log.Partition(i).Frontiers().Durable
		if end > int64(len(n.stored[i])) {
			n.t.Fatalf("partition %d: durable end %d; want at most %d", i, end, len(n.stored[i]))
		}
		n.stored[i] = n.stored[i][:end]
	}
	n.openSet()
}

func (n *node) batches(samples []sample) []event.Batch {
	batches := make([]event.Batch, testPartitions)
	var scratch []byte
	var hash event.Hash
	for i, s := range samples {
		e := event.Event{
			Segment: []byte(s.user), ID: []byte(s.id), Type: []byte(s.kind), Kind: event.DataJSON, Time: s.ts, Arrival: n.clock.NowMS(),
			Data: fmt.Appendf(nil, `{"user":%q,"ad":%q}`, s.user, s.ad),
		}
		if s.ad == "" {
			e.Data = fmt.Appendf(nil, `{"user":%q}`, s.user)
		}
		hash, scratch = event.HashOf(scratch, e.Segment, e.ID)
		batches[shard.Of(e.Segment, testPartitions)].Add(&e, hash, i)
	}
	return batches
}

func (n *node) append(ack eventlog.Ack, samples ...sample) {
	n.t.Helper()
	batches := n.batches(samples)
	n.must(n.log.Append(context.Background(), batches, ack))
	for i := range batches {
		for _, item := range batches[i].Items {
			if !item.Duplicate {
				n.stored[i] = append(n.stored[i], samples[item.Index])
			}
		}
	}
}

// keyOf is what the counters of the tests count by; kept apart from the engine's way of finding it.
func keyOf(d *Definition, s sample) (key string, ok bool) {
	if d.Where == `type == "view"` && s.kind != "view" {
		return "", false
	}
	for _, part := range d.Key {
		switch part {
		case "data.user":
			key += s.user + "\x00"
		case "data.ad":
			if s.ad == "" {
				return "", false
			}
			key += s.ad + "\x00"
		}
	}
	return key, true
}

// truths replays the log for one counter: one oracle a partition.
func (n *node) truths(d *Definition) []*oracle.Counter {
	var list []*oracle.Counter
	for _, stored := range n.stored {
		o := oracle.New(d.longest(), d.LatenessMS)
		for _, s := range stored {
			if key, ok := keyOf(d, s); ok {
				o.Add(key, s.user+"\x00"+s.id, s.ts)
			}
		}
		list = append(list, o)
	}
	return list
}

// lookup asks until the counter is built.
func (n *node) lookup(name string, key []string, asOf int64, a *Answer) {
	n.t.Helper()
	c, ok := n.set.Counter(name)
	if !ok {
		n.t.Fatalf("no counter %s", name)
	}
	parts := make([][]byte, len(key))
	for i := range key {
		parts[i] = []byte(key[i])
	}
	err := c.Lookup(context.Background(), parts, asOf, a)
	for errors.Is(err, ErrBuilding) {
		runtime.Gosched()
		err = c.Lookup(context.Background(), parts, asOf, a)
	}
	n.must(err)
}

// check compares one look-up with brute force.
func (n *node) check(d *Definition, truths []*oracle.Counter, s sample, asOf int64) {
	n.t.Helper()
	text, ok := keyOf(d, s)
	if !ok {
		return
	}
	var key []string
	for _, part := range d.Key {
		key = append(key, map[string]string{"data.user": s.user, "data.ad": s.ad}[part])
	}
	var a Answer
	n.lookup(d.Name, key, asOf, &a)
	since := int64(slide.CompleteAlways)
	if d.Key[0] == "data.user" {
		i := shard.Of([]byte(s.user), testPartitions)
		truths = truths[i : i+1]
	}
	for _, o := range truths {
		since = max(since, o.CompleteSince(slide.NoHorizon))
	}
	if a.CompleteSince != since && a.Behind == 0 {
		n.t.Fatalf("%s %q at %d: complete since %d; want %d", d.Name, key, asOf, a.CompleteSince, since)
	}
	for i, w := range d.Windows {
		got, want := a.Windows[i], int64(0)
		for _, o := range truths {
			want += o.Count(text, w.Millis, asOf)
		}
		complete := oracle.Complete(w.Millis, asOf, since)
		if a.Behind > 0 {
			// Events that are still to come may move H, and a later copy may take an event out of the window.
			if got.Complete && complete && (got.Exact || got.Count > want+a.Behind || got.Max < want) {
				n.t.Fatalf("%s %q at %d, window %s: got %+v, behind %d; want %d", d.Name, key, asOf, w.Name, got, a.Behind, want)
			}
			continue
		}
		if got.Complete != complete || (got.Exact && !complete) {
			n.t.Fatalf("%s %q at %d, window %s: got %+v; want complete %v", d.Name, key, asOf, w.Name, got, complete)
		}
		if !complete {
			continue
		}
		if got.Count != want || got.Max != want || !got.Exact {
			n.t.Fatalf("%s %q at %d, window %s: got %+v; want %d", d.Name, key, asOf, w.Name, got, want)
		}
	}
}

// seeds returns the seeds that a random test runs: WEIR_SEED=n replays one, WEIR_SOAK=1 runs many.
func seeds(t *testing.T, usual int) []uint64 {
	if text := os.Getenv("WEIR_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{seed}
	}
	if os.Getenv("WEIR_SOAK") != "" {
		usual *= 100
	}
	list := make([]uint64, usual)
	for i := range list {
		list[i] = rand.Uint64()
	}
	return list
}

func eachSeed(t *testing.T, usual int, f func(t *testing.T, r *rand.Rand)) {
	for _, seed := range seeds(t, usual) {
		ok := t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { f(t, rand.New(rand.NewPCG(seed, 1))) })
		if !ok {
			t.Fatalf("replay: WEIR_SEED=%d go test -run '%s' ./internal/counter", seed, t.Name())
		}
	}
}
