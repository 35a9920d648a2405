package eventlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/clock"
	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/shard"
)

const testNow = 1_700_000_000_000

// testOptions are small: a ring of a few chunks, and write buffers that flush often.
func testOptions(fs vfs.FS) Options {
	c := &clock.Manual{}
	c.Set(testNow)
	return Options{
		FS: fs, Dir: "data/stream", Stream: "test", Partitions: 2, Segment: "data.user",
		RingBytes: 2 << 20, MemtableBytes: 256 << 10, EventBytesMax: 128 << 10, DiskReserve: -1, BallastBytes: -1,
		Clock: c,
		Fatal: func(err error) { panic(err) },
	}
}

func (o Options) manual() *clock.Manual { return o.Clock.(*clock.Manual) }

func mustOpen(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustClose(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// sample is an event that a test wants in the log.
type sample struct {
	segment, id string
	data        string
	time        int64
	arrival     int64
}

func numbered(n int) sample {
	return sample{
		segment: fmt.Sprintf("user-%d", n%97), id: fmt.Sprintf("e-%d", n),
		data: fmt.Sprintf(`{"n":%d}`, n), time: testNow - int64(n%1000)*37, arrival: testNow,
	}
}

func (s sample) event() event.Event {
	return event.Event{
		Segment: []byte(s.segment), ID: []byte(s.id), Type: []byte("t"), Data: []byte(s.data), Kind: event.DataJSON,
		Time: s.time, Arrival: s.arrival,
	}
}

// batchesOf routes samples to batches by partition.
func batchesOf(partitions int, samples ...sample) []event.Batch {
	batches := make([]event.Batch, partitions)
	var scratch []byte
	var hash event.Hash
	for i, s := range samples {
		e := s.event()
		hash, scratch = event.HashOf(scratch, e.Segment, e.ID)
		batches[shard.Of(e.Segment, partitions)].Add(&e, hash, i)
	}
	return batches
}

// oracle is what the log should hold: per partition, the accepted samples at their offsets.
type oracle struct{ partitions [][]sample }

func newOracle(partitions int) *oracle { return &oracle{make([][]sample, partitions)} }

// note records what an append answered, and checks it: offsets are dense, duplicates point at an equal event.
func (o *oracle) note(t testing.TB, batches []event.Batch) {
	t.Helper()
	for i := range batches {
		for j, item := range batches[i].Items {
			s := decodeSample(t, batches[i].Record(j))
			switch {
			case item.Duplicate:
				if item.Offset < 0 || item.Offset >= int64(len(o.partitions[i])) {
					t.Fatalf("partition %d: duplicate of offset %d, which is not stored", i, item.Offset)
				}
				if first := o.partitions[i][item.Offset]; first.id != s.id || first.segment != s.segment {
					t.Fatalf("partition %d: %s/%s is a duplicate of %s/%s", i, s.segment, s.id, first.segment, first.id)
				}
			case item.Offset != int64(len(o.partitions[i])):
				t.Fatalf("partition %d: offset %d; want %d", i, item.Offset, len(o.partitions[i]))
			default:
				o.partitions[i] = append(o.partitions[i], s)
			}
		}
	}
}

func decodeSample(t testing.TB, record []byte) sample {
	t.Helper()
	var e event.Event
	if _, err := e.Decode(record); err != nil {
		t.Fatal(err)
	}
	return sampleOf(&e)
}

func sampleOf(e *event.Event) sample {
	return sample{segment: string(e.Segment), id: string(e.ID), data: string(e.Data), time: e.Time, arrival: e.Arrival}
}

func mustAppend(t testing.TB, l *Log, ack Ack, samples ...sample) []event.Batch {
	t.Helper()
	batches := batchesOf(l.Partitions(), samples...)
	if err := l.Append(context.Background(), batches, ack); err != nil {
		t.Fatal(err)
	}
	return batches
}

// readAll reads what a reader has up to limit, and checks that offsets are dense.
func readAll(t testing.TB, r *Reader, limit int64) []sample {
	t.Helper()
	var out []sample
	for {
		got, ok := readFrame(t, r, limit)
		if !ok {
			return out
		}
		out = append(out, got...)
	}
}

func readFrame(t testing.TB, r *Reader, limit int64) ([]sample, bool) {
	t.Helper()
	at := r.Offset()
	frame, ok, err := r.Next(limit)
	if err != nil {
		t.Fatalf("read at %d: %v", at, err)
	}
	if !ok {
		return nil, false
	}
	if frame.First != at || frame.Count < 1 || r.Offset() != at+int64(frame.Count) || r.Offset() > limit {
		t.Fatalf("read at %d, limit %d: frame %d+%d, next %d", at, limit, frame.First, frame.Count, r.Offset())
	}
	out := decodeFrame(t, frame)
	if len(out) != frame.Count {
		t.Fatalf("frame of %d events holds %d", frame.Count, len(out))
	}
	return out, true
}

func decodeFrame(t testing.TB, frame Frame) (out []sample) {
	t.Helper()
	var e event.Event
	for records := frame.Records; len(records) > 0; {
		var err error
		if records, err = e.Decode(records); err != nil {
			t.Fatal(err)
		}
		if e.Time < frame.MinTime || e.Time > frame.MaxTime {
			t.Fatalf("event at %d in a frame of %d..%d", e.Time, frame.MinTime, frame.MaxTime)
		}
		out = append(out, sampleOf(&e))
	}
	return out
}

// compare checks that every partition holds exactly what the oracle says, by both kinds of reader.
func (o *oracle) compare(t testing.TB, l *Log) {
	t.Helper()
	for i, want := range o.partitions {
		p := l.Partition(i)
		if f := p.Frontiers(); f.Appended != int64(len(want)) || f.Durable > f.Appended || f.Warm > f.Durable || f.First > f.Warm {
			t.Fatalf("partition %d: frontiers %+v; want appended %d", i, f, len(want))
		}
		for _, r := range []*Reader{p.NewReader(p.Frontiers().First), p.NewScan(p.Frontiers().First, ScanOptions{})} {
			first := r.Offset()
			equal(t, i, readAll(t, r, math.MaxInt64), want[first:])
			r.Close()
		}
	}
}

func equal(t testing.TB, partition int, got, want []sample) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("partition %d: %d events; want %d", partition, len(got), len(want))
	}
	for j := range got {
		if got[j] != want[j] {
			t.Fatalf("partition %d, event %d: %+v; want %+v", partition, j, got[j], want[j])
		}
	}
}

// rawRecords returns n records of about size bytes, for tests that count bytes and not contents.
func rawBatch(first, n, size int) event.Batch {
	var b event.Batch
	data := make([]byte, size)
	for i := range data {
		data[i] = 'a' + byte(i%26)
	}
	var id [8]byte
	for i := range n {
		binary.BigEndian.PutUint64(id[:], uint64(first+i))
		e := event.Event{Segment: id[4:], ID: id[:], Type: []byte("t"), Data: data, Kind: event.DataBinary, Time: testNow, Arrival: testNow}
		hash, _ := event.HashOf(nil, e.Segment, e.ID)
		b.Add(&e, hash, i)
	}
	return b
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // a bound for tests that hang
	t.Cleanup(cancel)
	return ctx
}

// seedOf returns the seed of a random test, WEIR_SEED or a new one, and logs the command that repeats the test with it.
func seedOf(t testing.TB) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("WEIR_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("repeat with: WEIR_SEED=%d go test -run '^%s$' ./internal/eventlog", seed, t.Name())
	return seed
}
