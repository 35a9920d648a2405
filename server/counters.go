package server

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/weirstream/weir/internal/counter"
	"github.com/weirstream/weir/internal/slide"
)

// openCounters opens the counters of e's streams, within what memory gives them.
func (n *node) openCounters(e *engine) (*counter.Set, error) {
	opts := counter.Options{
		Dir: filepath.Join(n.cfg.Data, countersFolder), Cache: n.cache,
		Epoch: counterEpoch, Clock: n.clock, Logger: n.logger, Fatal: n.fatal, Events: counter.Listener{
			Built: func(name string, partition int) {
				n.logger.Info("counter is built", "counter", name, "partition", partition)
			},
			Failed: func(stream string, partition int, err error) {
				n.logger.Error("counting stopped", "stream", stream, "partition", partition, "err", err)
				n.fail(fmt.Errorf("counting stopped in stream %s, partition %d: %w", stream, partition, err))
			},
		},
	}
	counted := map[string]bool{}
	for _, c := range n.cfg.Counters {
		counted[c.Stream] = true
		def := counter.Definition{Name: c.Name, Stream: c.Stream, Where: c.Where, Key: c.Key, LatenessMS: c.LatenessMS, DedupIDs: c.DedupIDs}
		for _, w := range c.Windows {
			def.Windows = append(def.Windows, slide.Window{Name: w.Name, Millis: w.Millis})
		}
		opts.Definitions = append(opts.Definitions, def)
	}
	partitions := 0
	for _, s := range e.streams {
		stream := counter.Stream{Name: s.Name, Log: s.Log, Segment: s.Segment, AheadMS: max(s.Rules.Skew, 1)}
		opts.Streams = append(opts.Streams, stream)
		if counted[s.Name] {
			partitions += s.Log.Partitions()
		}
	}
	if partitions > 0 {
		opts.MemtableBytes = int(n.counterMemtableBytes(partitions))
		opts.DeltaBytes = int(n.budget.DeltaTables / int64(partitions) / deltaTables)
		opts.LookupBytes = int(n.budget.LookupCache / int64(partitions))
	}
	set, err := counter.Open(opts)
	if err != nil {
		return nil, err
	}
	e.respCounters = map[string]*respCounter{}
	for _, c := range set.Counters() {
		e.respCounters[c.Definition().Name] = newRESPCounter(c, n.clock)
	}
	return set, nil
}

// deltaTables is how many delta tables a partition has at most: the open and the frozen one, of the live counters and of those
// that are being built.
const deltaTables = 4

// counterEpoch is how long arrivals gather before they become a batch, unless a delta table fills up before. Look-ups
// see them at once and a crash reads the log again, so nothing waits for an epoch; and the more keys one sorted batch
// holds, the less each of them costs.
const counterEpoch = time.Second
