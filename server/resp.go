package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirstream/weir/internal/api"
	"github.com/weirstream/weir/internal/clock"
	"github.com/weirstream/weir/internal/cloudevents"
	"github.com/weirstream/weir/internal/counter"
	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/resp"
)

// respBackend is the node as the RESP server sees it.
type respBackend struct{ *node }

// newRESP returns the RESP server of n.
func newRESP(n *node, opts Options) (*resp.Server, error) {
	limits := opts.Config.Limits
	return resp.New(resp.Options{
		Backend: respBackend{n}, Logger: opts.Logger, Version: opts.Version,
		ConnectionsMax: limits.Connections, BulkBytesMax: int(limits.EventBytes), BufferBytesMax: n.budget.Commands,
	})
}

func (b respBackend) Stream(name []byte) (resp.Stream, bool) {
	e := b.opened.Load()
	if e == nil {
		return nil, false
	}
	s, ok := e.byName[string(name)]
	if !ok {
		return nil, false
	}
	return s.resp, true
}

func (b respBackend) Counter(name []byte) (resp.Counter, bool) {
	e := b.opened.Load()
	if e == nil {
		return nil, false
	}
	c, ok := e.respCounters[string(name)]
	return c, ok
}

func (b respBackend) Ready() (status string, ok bool) { return b.status() }

func (b respBackend) AppendInfo(dst []byte) []byte {
	e := b.opened.Load()
	if e == nil {
		return dst
	}
	for _, s := range e.streams {
		var events, bytes int64
		for p := range s.Log.Partitions() {
			f := s.Log.Partition(p).Frontiers()
			events += f.Durable - f.First
			bytes += s.Log.Partition(p).Stats().WarmBytes
		}
		dst = fmt.Appendf(dst, "stream_%s:partitions=%d,events=%d,warm_bytes=%d\r\n", s.Name, s.Log.Partitions(), events, bytes)
	}
	return dst
}

// respStream takes the events of XADD.
type respStream struct {
	stream     *api.Stream
	clock      clock.Clock
	overloaded func(stream, reason string)
	batches    sync.Pool // *respBatch
}

func newRESPStream(s *api.Stream, c clock.Clock, overloaded func(stream, reason string)) *respStream {
	return &respStream{stream: s, clock: c, overloaded: overloaded}
}

func (s *respStream) Partitions() int { return s.stream.Log.Partitions() }

func (s *respStream) Len(partition int) int64 {
	f := s.stream.Log.Partition(partition).Frontiers()
	return f.Durable - f.First
}

func (s *respStream) NewBatch() resp.Batch {
	b, ok := s.batches.Get().(*respBatch)
	if !ok {
		b = &respBatch{owner: s, batches: make([]event.Batch, s.Partitions())}
	}
	b.arrival = s.clock.NowMS()
	return b
}

// respBatch gathers the events of neighbouring XADDs of one connection.
type respBatch struct {
	owner   *respStream
	arrival int64
	parser  cloudevents.Parser
	batches []event.Batch
	places  []place
}

// place is where the event of one Add stands in the batches.
type place struct{ partition, item int }

// batchBytesPooled bounds the memory that a batch keeps for the next pipeline.
const batchBytesPooled = 4 << 20

func (b *respBatch) Add(fields [][]byte) error {
	if err := b.parser.ParseFields(b.owner.stream.Rules, fields, b.arrival); err != nil {
		var problem *cloudevents.Problem
		if !errors.As(err, &problem) {
			return err
		}
		b.owner.stream.Rejected.Add(problem.Code, 1)
		return &resp.EventError{Code: problem.Code, Message: problem.Message}
	}
	for p := range b.parser.Batches {
		parsed := &b.parser.Batches[p]
		if len(parsed.Items) == 0 {
			continue
		}
		into := &b.batches[p]
		into.Records = append(into.Records, parsed.Records...)
		item := parsed.Items[0]
		item.End, item.Index = uint32(len(into.Records)), uint32(len(b.places))
		into.Items = append(into.Items, item)
		b.places = append(b.places, place{p, len(into.Items) - 1})
	}
	return nil
}

func (b *respBatch) Commit(ctx context.Context) error {
	err := b.owner.stream.Log.Append(ctx, b.batches, eventlog.AckDisk)
	var overload *eventlog.Overload
	switch {
	case errors.As(err, &overload):
		b.owner.overloaded(b.owner.stream.Name, "queue")
		return &resp.BusyError{RetryAfter: overload.RetryAfter}
	case errors.Is(err, eventlog.ErrDiskFull):
		b.owner.overloaded(b.owner.stream.Name, "disk")
		return &resp.BusyError{RetryAfter: diskFullRetry}
	}
	return err
}

// diskFullRetry is what a producer is told to wait where the disk is full: somebody has to make room.
const diskFullRetry = 5 * time.Second

func (b *respBatch) ID(i int) (partition int, offset int64) {
	at := b.places[i]
	return at.partition, b.batches[at.partition].Items[at.item].Offset
}

func (b *respBatch) Release() {
	held := 0
	for i := range b.batches {
		held += cap(b.batches[i].Records)
		b.batches[i].Reset()
	}
	b.places = b.places[:0]
	if held <= batchBytesPooled {
		b.owner.batches.Put(b)
	}
}

// respCounter answers HGETALL and its kin.
type respCounter struct {
	counter *counter.Counter
	clock   clock.Clock
	names   []string
	parts   int
	answers sync.Pool // *counter.Answer
}

func newRESPCounter(c *counter.Counter, clk clock.Clock) *respCounter {
	definition := c.Definition()
	r := &respCounter{counter: c, clock: clk, parts: len(definition.Key)}
	for _, w := range definition.Windows {
		r.names = append(r.names, w.Name)
	}
	return r
}

func (c *respCounter) KeyParts() int { return c.parts }

func (c *respCounter) Windows() []string { return c.names }

func (c *respCounter) Lookup(ctx context.Context, key [][]byte, asOf int64, into *resp.Answer) error {
	if asOf == resp.AsOfNow {
		asOf = c.clock.NowMS()
	}
	answer, ok := c.answers.Get().(*counter.Answer)
	if !ok {
		answer = new(counter.Answer)
	}
	defer c.answers.Put(answer)
	if err := c.counter.Lookup(ctx, key, asOf, answer); err != nil {
		var building *counter.BuildingError
		if errors.As(err, &building) {
			return &resp.BuildingError{Progress: building.Progress}
		}
		return err
	}
	into.NextExpiry = answer.NextExpiry
	into.Windows = into.Windows[:0]
	for _, w := range answer.Windows {
		most := w.Max
		if !w.Complete {
			most = resp.NoMax
		}
		into.Windows = append(into.Windows, resp.WindowAnswer{Count: w.Count, Max: most, Exact: w.Exact})
	}
	return nil
}
