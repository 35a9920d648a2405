package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/weirstream/weir/internal/api"
	"github.com/weirstream/weir/internal/clock"
	"github.com/weirstream/weir/internal/cloudevents"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/counter"
	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/metrics"
	"github.com/weirstream/weir/internal/path"
	"github.com/weirstream/weir/internal/state"
)

// Folders below the data folder.
const (
	streamsFolder  = "streams"
	countersFolder = "counters"
)

// node is the streams and counters of one process. opened is set once they are there; before that the node knows none.
type node struct {
	cfg     *config.Config
	budget  config.Budget
	version string
	clock   clock.Clock
	logger  *slog.Logger
	fatal   func(error)
	metrics *metrics.Metrics

	startedMS int64
	bodies    admission
	cache     *state.Cache
	usage     usage
	opened    atomic.Pointer[engine]
	ready     atomic.Bool
	draining  atomic.Bool
	diskFull  atomic.Int32  // logs that are out of space
	drain     chan struct{} // closed when the node drains
	failed    chan error    // why the node cannot go on; the first of them counts
}

// engine is what open builds. It does not change afterwards.
type engine struct {
	streams  []*api.Stream // in the configured order
	byName   map[string]*stream
	counters *counter.Set

	respCounters map[string]*respCounter
}

// stream is one stream with what RESP needs of it beside what HTTP does.
type stream struct {
	api  *api.Stream
	resp *respStream
}

func newNode(opts Options, budget config.Budget) *node {
	n := &node{
		cfg: opts.Config, budget: budget, version: opts.Version, clock: opts.Clock, logger: opts.Logger, fatal: opts.Fatal,
		startedMS: opts.Clock.NowMS(), bodies: admission{max: budget.Bodies}, drain: make(chan struct{}),
		failed: make(chan error, 1), usage: usage{folder: opts.Config.Data},
	}
	n.metrics = metricsOf(n, opts.Version, opts.Logger)
	return n
}

// open opens logs and counters and returns once the counters have caught up with the logs.
func (n *node) open(ctx context.Context) (err error) {
	limitMemory(n.budget)
	// Pebble takes its write buffers out of the cache's size: without their share here, blocks would get what is left.
	n.cache = state.NewCache(n.budget.BlockCache + n.budget.Memtables)
	e := &engine{byName: map[string]*stream{}}
	defer func() {
		if err != nil {
			stop, cancel := context.WithTimeout(context.Background(), stopWait)
			defer cancel()
			err = errors.Join(err, closeEngine(stop, e))
			n.cache.Unref()
		}
	}()
	for i := range n.cfg.Streams {
		opened, err := n.openStream(&n.cfg.Streams[i])
		if err != nil {
			return err
		}
		e.streams = append(e.streams, opened.api)
		e.byName[opened.api.Name] = opened
	}
	if e.counters, err = n.openCounters(e); err != nil {
		return err
	}
	if err := e.counters.WaitCaughtUp(ctx); err != nil {
		return err
	}
	n.opened.Store(e)
	return nil
}

func (n *node) openStream(s *config.Stream) (*stream, error) {
	rules, err := rulesOf(s, &n.cfg.Limits)
	if err != nil {
		return nil, err
	}
	log, err := eventlog.Open(eventlog.Options{
		Dir:           filepath.Join(n.cfg.Data, streamsFolder, s.Name),
		Stream:        s.Name,
		Partitions:    s.Partitions,
		Segment:       s.Segment,
		Retention:     time.Duration(s.RetentionMS) * time.Millisecond,
		RingAge:       time.Duration(s.Ring.AgeMS) * time.Millisecond,
		RingBytes:     s.Ring.Bytes,
		DedupWindow:   orNone(time.Duration(s.Dedup.WindowMS) * time.Millisecond),
		DedupMaxIDs:   max(s.Dedup.MaxIDs/s.Partitions, 1),
		QueueBytesMax: n.budget.Queues / int64(len(n.cfg.Streams)),
		EventBytesMax: int(n.cfg.Limits.EventBytes) + recordSlackBytes,
		MemtableBytes: n.logMemtableBytes(),
		Cache:         n.cache,
		Clock:         n.clock,
		Logger:        n.logger,
		Events:        n.logEvents(s.Name),
		Fatal:         n.fatal,
	})
	if err != nil {
		return nil, err
	}
	shared := &api.Stream{
		Name: s.Name, Segment: s.Segment, Retention: time.Duration(s.RetentionMS) * time.Millisecond,
		Rules: rules, Log: log, Rejected: n.metrics.Rejections(s.Name),
	}
	return &stream{api: shared, resp: newRESPStream(shared, n.clock, n.metrics.Overloaded)}, nil
}

// recordSlackBytes is what the attributes that Weir derives add to an event's own bytes.
const recordSlackBytes = 64 << 10

// logMemtableShare of what an instance has for write buffers is what a log's gets: its files are moved and never merged,
// so a larger buffer would save it nothing. The counters' get the rest.
const logMemtableShare = 2

// logMemtableBytes is the write buffer of one log: one is filled while another is flushed.
func (n *node) logMemtableBytes() int64 {
	return n.budget.Memtables / int64(n.budget.Instances) / 2 / logMemtableShare
}

// counterMemtableBytes is the write buffer of the counters of one of the given number of partitions.
func (n *node) counterMemtableBytes(partitions int) int64 {
	logs := n.logMemtableBytes() * int64(n.budget.Instances-partitions)
	return (n.budget.Memtables/2 - logs) / int64(partitions)
}

// orNone turns a window of 0, which means none in the configuration, into the log's word for it.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

func rulesOf(s *config.Stream, limits *config.Limits) (*cloudevents.Rules, error) {
	rules := &cloudevents.Rules{
		Partitions: s.Partitions, EventBytesMax: int(limits.EventBytes), BatchMax: limits.Batch, KeyPartMax: limits.KeyPartBytes,
		Skew: s.Time.SkewMS, UnitCheck: s.Time.UnitCheck,
	}
	switch s.Time.Future {
	case config.FutureClamp:
		rules.Future = cloudevents.FutureClamp
	case config.FutureAccept:
		rules.Future = cloudevents.FutureAccept
	case config.FutureReject:
		rules.Future = cloudevents.FutureReject
	}
	if s.Segment == "" {
		return rules, nil
	}
	var err error
	if rules.Segment, err = path.Parse(s.Segment); err != nil {
		return nil, fmt.Errorf("cannot use the segment of stream %s: %w", s.Name, err)
	}
	return rules, nil
}

// logEvents keeps what the log of a stream tells.
func (n *node) logEvents(name string) eventlog.Listener {
	return eventlog.Listener{
		Synced: func(_ int, took time.Duration) { n.metrics.Fsync(name, took) },
		DiskFull: func(full bool) {
			if full {
				n.diskFull.Add(1)
				n.logger.Error("disk is full: events are refused until more than the reserve is free", "reserve_bytes", eventlog.DiskReserveDefault,
					"stream", name, "folder", n.cfg.Data)
				return
			}
			n.diskFull.Add(-1)
			n.logger.Info("disk has space again: events are taken", "stream", name)
		},
	}
}

// fail ends the node with err.
func (n *node) fail(err error) {
	select {
	case n.failed <- err:
	default: // it is ending already
	}
}

// close finishes what was taken: the counters write their last epoch, the logs make durable what is queued until ctx ends.
func (n *node) close(ctx context.Context) error {
	e := n.opened.Load()
	if e == nil {
		return nil
	}
	err := closeEngine(ctx, e)
	n.cache.Unref()
	return err
}

func closeEngine(ctx context.Context, e *engine) error {
	var errs []error
	if e.counters != nil {
		errs = append(errs, e.counters.Close())
	}
	for _, s := range e.streams {
		errs = append(errs, s.Log.Close(ctx))
	}
	return errors.Join(errs...)
}

// status says what keeps the node from serving, or that nothing does.
func (n *node) status() (status string, ok bool) {
	switch {
	case n.draining.Load():
		return "draining", false
	case !n.ready.Load():
		return "recovering", false
	}
	return "ready", true
}

// limitMemory tells the collector how much of memory is its own.
func limitMemory(b config.Budget) { debug.SetMemoryLimit(heapLimit(b)) }

// heapLimit is what of memory is Go's: all but what is mapped, and what Pebble allocates in C where it can.
func heapLimit(b config.Budget) int64 {
	limit := b.Total - b.Rings - b.DeltaTables - b.LookupCache - runtimeSlack(b)
	if pebbleOutsideHeap {
		limit -= b.BlockCache + b.Memtables
	}
	return limit
}

// What the runtime's own figure does not show: the binary and its mapped files, thread stacks, and what C's malloc keeps
// of what was freed, which grows with the rest.
const (
	programBytes      = 32 << 20
	runtimeSlackShare = 16
)

func runtimeSlack(b config.Budget) int64 { return programBytes + b.Total/runtimeSlackShare }
