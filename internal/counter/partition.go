package counter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/invariant"
	"github.com/weirstream/weir/internal/path"
	"github.com/weirstream/weir/internal/state"
)

// partition counts one partition of a stream.
type partition struct {
	opts   *Options
	stream string
	index  int
	log    *eventlog.Partition
	ahead  int64 // Stream.AheadMS
	store  *state.Store
	lane   *state.Lane // of the live shares
	shares map[string]*share

	join    sync.Mutex // held by the loop while it feeds, and by a builder that hands its shares over
	live    feeder     // guarded by join
	waiters waiters
	target  int64 // durable end when the partition was opened: caught up from there

	commits  atomic.Int64
	folds    atomic.Int64
	swept    atomic.Int64
	conflict atomic.Int64
	failed   atomic.Pointer[error]
}

// openPartition opens the state of a partition and reconciles its catalog with the plans.
func openPartition(o *Options, stream Stream, index int, dir string, plans []*plan) (p *partition, err error) {
	p = &partition{opts: o, stream: stream.Name, index: index, log: stream.Log.Partition(index), ahead: stream.AheadMS, shares: map[string]*share{}}
	p.log.Hold(0) // until run knows what has been counted: retention works already
	p.store, err = state.Open(state.Options{
		FS: o.FS, Dir: dir, Cache: o.Cache, MemtableBytes: o.MemtableBytes, DeltaBytes: o.deltaBytes(len(plans)),
		LookupBytes: o.LookupBytes, CompactionsMax: o.CompactionsMax, FlushAfter: o.FlushAfter, Clock: o.Clock,
		Logger: o.Logger, Fatal: o.Fatal, Events: state.Listener{Committed: p.committed},
	})
	if err != nil {
		return nil, err
	}
	if err := p.openShares(plans); err != nil {
		return nil, errors.Join(err, p.store.Close())
	}
	// A catalog that a crash takes back would make counters that had answered be built anew, which readiness does not wait
	// for. Where nothing has changed this costs nothing.
	if err := p.store.Flush(); err != nil {
		return nil, errors.Join(err, p.store.Close())
	}
	return p, nil
}

// deltaBytes returns the bound of a delta table, which a batch of one event and of each plan's longest key must fit.
func (o *Options) deltaBytes(plans int) int {
	return max(o.DeltaBytes, 2*(batchBytesMax+plans*batchEventsMax*state.ArrivalBytes+plans*state.KeyBytesMax(state.KeyPartsMax)))
}

func (p *partition) committed(c state.Commit) {
	p.commits.Add(1)
	p.folds.Add(int64(c.Folds))
	p.swept.Add(int64(c.Swept))
	p.conflict.Add(int64(c.Conflicts))
	if p.opts.Events.Committed != nil {
		p.opts.Events.Committed(p.stream, p.index, c)
	}
}

// openShares makes the catalog hold the plans and nothing else, and opens the live lane.
func (p *partition) openShares(plans []*plan) error {
	f := p.log.Frontiers()
	p.target = f.Durable
	known := map[string]state.Entry{}
	for _, e := range p.store.Catalog() {
		known[e.Name] = e
	}
	for _, plan := range plans {
		entry, ok := known[plan.def.Name]
		delete(known, plan.def.Name)
		s, err := p.openShare(plan, entry, ok, f)
		if err != nil {
			return fmt.Errorf("counter %s, partition %d: %w", plan.def.Name, p.index, err)
		}
		p.shares[plan.def.Name] = s
	}
	for _, entry := range known {
		if err := p.store.Drop(entry.ID); err != nil {
			return fmt.Errorf("counter %s, partition %d: %w", entry.Name, p.index, err)
		}
	}
	live := p.pick(true)
	next := f.Durable
	for _, s := range live {
		next = min(next, s.state.Next())
	}
	lane, err := p.store.NewLane(state.LaneOptions{Next: next, Counters: states(live), Lookups: true, Durable: p.durable})
	if err != nil {
		return err
	}
	p.lane = lane
	p.live = feeder{log: p.log, lane: lane, shares: live, ahead: p.ahead, waitRoom: lane.WaitRoom, applied: p.waiters.moved}
	p.waiters.moved(next)
	return nil
}

func (p *partition) durable() int64 { return p.log.Frontiers().Durable }

// openShare opens one counter: as it was, or, where it is new or means something else now, under a new id from the start
// of the log.
func (p *partition) openShare(plan *plan, entry state.Entry, known bool, f eventlog.Frontiers) (*share, error) {
	longest := plan.def.longest()
	same := known && slices.Equal(entry.Definition, plan.definition) && entry.LongestMS >= longest
	if known && !same {
		if err := p.store.Drop(entry.ID); err != nil {
			return nil, err
		}
	}
	_, trimmed := p.log.Trimmed()
	var err error
	if !same {
		entry = state.Entry{Name: plan.def.Name, Definition: plan.definition, LongestMS: longest, LatenessMS: plan.def.LatenessMS}
		entry.Live = f.First == f.Durable // nothing to build from
		entry, err = p.store.Create(entry, len(plan.key), f.First, trimmed)
	} else if entry.LongestMS != longest || entry.LatenessMS != plan.def.LatenessMS {
		entry.LongestMS, entry.LatenessMS = longest, plan.def.LatenessMS
		err = p.store.Update(entry)
	}
	if err != nil {
		return nil, err
	}
	limits := p.opts.Limits
	limits.DedupIDs = plan.def.DedupIDs
	s := &share{plan: plan, entry: entry, finder: path.NewFinder(plan.key), start: f.First}
	if s.state, err = p.store.Counter(entry, limits); err != nil {
		return nil, err
	}
	if next := s.state.Next(); next > f.Durable {
		return nil, &state.AheadError{Counter: plan.def.Name, Marker: next, End: f.Durable}
	}
	s.state.Lose(f.First, trimmed)
	if plan.where != nil {
		s.where = plan.where.Clone()
	}
	s.live.Store(entry.Live)
	s.built.Store(s.state.Next())
	return s, nil
}

// pick returns the shares that are live, or those that are not, in the order of their ids.
func (p *partition) pick(live bool) []*share {
	var picked []*share
	for _, s := range p.shares {
		if s.live.Load() == live {
			picked = append(picked, s)
		}
	}
	slices.SortFunc(picked, func(a, b *share) int { return int(int64(a.entry.ID) - int64(b.entry.ID)) })
	return picked
}

func states(shares []*share) []*state.Counter {
	var list []*state.Counter
	for _, s := range shares {
		list = append(list, s.state)
	}
	return list
}

// run starts the partition's goroutines, which end with ctx.
func (p *partition) run(ctx context.Context, wg *sync.WaitGroup) {
	p.log.Hold(p.store.Persisted())
	wg.Go(func() { p.end(ctx, p.loop(ctx)) })
	wg.Go(func() { p.end(ctx, p.commitEpochs(ctx)) })
	if building := p.pick(false); len(building) > 0 {
		wg.Go(func() { p.end(ctx, p.build(ctx, building)) })
	}
}

// end notes why a goroutine ended, unless it was told to.
func (p *partition) end(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	err = fmt.Errorf("%w: stream %s, partition %d: %w", ErrFailed, p.stream, p.index, err)
	if !p.failed.CompareAndSwap(nil, &err) {
		return
	}
	p.waiters.fail()
	p.opts.Logger.Error("counters: a partition stopped counting", "stream", p.stream, "partition", p.index, "err", err)
	if p.opts.Events.Failed != nil {
		p.opts.Events.Failed(p.stream, p.index, err)
	}
}

func (p *partition) err() error {
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// loop feeds the live lane for ever.
func (p *partition) loop(ctx context.Context) error {
	defer p.live.close() //nolint:errcheck // a reader that is not used any more
	next := p.lane.Next()
	for p.err() == nil {
		end := p.durable()
		invariant.Check(next <= end, "applied %d, durable %d", next, end)
		if next >= end {
			if err := p.live.rest(next); err != nil {
				return err
			}
			if err := p.log.WaitDurable(ctx, next); err != nil {
				return err
			}
			continue
		}
		p.join.Lock()
		_, err := p.live.step(ctx, next, end)
		p.join.Unlock()
		if err != nil {
			return err
		}
		next = p.waiters.applied.Load()
	}
	return nil
}

// commitEpochs is the committer.
func (p *partition) commitEpochs(ctx context.Context) error {
	var ticks <-chan time.Time
	if p.opts.Epoch > 0 {
		ticker := time.NewTicker(p.opts.Epoch)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for p.err() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		case <-p.lane.Full():
		}
		if err := p.commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// commit writes an epoch, when it is its turn, and tells the log what it need not keep any more.
func (p *partition) commit(ctx context.Context) error {
	select {
	case p.opts.committing <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	defer func() { <-p.opts.committing }()
	_, err := p.lane.Commit()
	p.log.Hold(p.store.Persisted())
	return err
}

// close ends what run started (ctx is done, the goroutines have ended) and closes the state.
func (p *partition) close() error {
	var err error
	if p.err() == nil {
		_, err = p.lane.Commit()
	}
	return errors.Join(err, p.live.close(), p.store.Close())
}
