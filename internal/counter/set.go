package counter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Set is all counters of a node.
type Set struct {
	opts     Options
	parts    []*partition
	counters []*Counter // as defined
	byName   map[string]*Counter
	lookups  sync.Pool // of *lookup

	cancel context.CancelFunc
	wg     sync.WaitGroup
	closed atomic.Bool
}

// Open opens the counters and starts counting. The logs must be open, and stay open until Close has returned. A counter
// whose state lies ahead of its log is refused: errors.Is(err, state.ErrAhead).
func Open(opts Options) (*Set, error) {
	s, err := open(opts)
	if err != nil {
		return nil, err
	}
	s.start()
	return s, nil
}

// open opens everything and starts nothing.
func open(opts Options) (*Set, error) {
	s := &Set{opts: opts.withDefaults(), byName: map[string]*Counter{}}
	s.lookups.New = func() any { return new(lookup) }
	plans, err := s.plan()
	if err != nil {
		return nil, err
	}
	for _, stream := range s.opts.Streams {
		if err := s.openStream(stream, plans[stream.Name]); err != nil {
			return nil, errors.Join(err, s.closePartitions())
		}
	}
	return s, nil
}

// start begins to count.
func (s *Set) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, p := range s.parts {
		p.run(ctx, &s.wg)
	}
}

// plan makes the definitions ready, by stream.
func (s *Set) plan() (map[string][]*plan, error) {
	if s.opts.Dir == "" {
		return nil, errors.New("cannot open counters: got no folder; want one")
	}
	streams := map[string]Stream{}
	for _, stream := range s.opts.Streams {
		streams[stream.Name] = stream
	}
	plans := map[string][]*plan{}
	for _, def := range s.opts.Definitions {
		stream, ok := streams[def.Stream]
		if !ok {
			return nil, fmt.Errorf("cannot define counter %s: got stream %q; want one that exists", def.Name, def.Stream)
		}
		if s.byName[def.Name] != nil {
			return nil, fmt.Errorf("cannot define counter %s: got it twice; want it once", def.Name)
		}
		p, err := newPlan(def, stream.Segment)
		if err != nil {
			return nil, err
		}
		c := &Counter{set: s, plan: p}
		s.byName[def.Name] = c
		s.counters = append(s.counters, c)
		plans[def.Stream] = append(plans[def.Stream], p)
	}
	return plans, nil
}

func (s *Set) openStream(stream Stream, plans []*plan) error {
	for i := range stream.Log.Partitions() {
		dir := s.opts.FS.PathJoin(s.opts.Dir, stream.Name, strconv.Itoa(i))
		if err := makeFolder(s.opts.FS, dir, s.opts.FS.PathDir(s.opts.Dir)); err != nil {
			return err
		}
		p, err := openPartition(&s.opts, stream, i, dir, plans)
		if err != nil {
			return err
		}
		s.parts = append(s.parts, p)
		for _, plan := range plans {
			c := s.byName[plan.def.Name]
			c.shares = append(c.shares, p.shares[plan.def.Name])
			c.parts = append(c.parts, p)
		}
	}
	return nil
}

// makeFolder makes dir, with what is missing above it, and syncs the entries down from the folder top: a crash that took
// one of them would take the state below it.
func makeFolder(fs vfs.FS, dir, top string) error {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make folder %s: %w", dir, err)
	}
	for at := dir; at != top && at != fs.PathDir(at); {
		at = fs.PathDir(at)
		d, err := fs.OpenDir(at)
		if err != nil {
			return fmt.Errorf("cannot open folder %s: %w", at, err)
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return fmt.Errorf("cannot sync folder %s: %w", at, err)
		}
	}
	return nil
}

// Counter returns the counter called name.
func (s *Set) Counter(name string) (*Counter, bool) {
	c, ok := s.byName[name]
	return c, ok
}

// Counters returns all counters in the order of their definitions.
func (s *Set) Counters() []*Counter { return s.counters }

// CaughtUp says whether every live counter has applied what its log held when the set was opened. Counters that are being
// built do not hold it up.
func (s *Set) CaughtUp() bool {
	for _, p := range s.parts {
		if p.waiters.applied.Load() < p.target {
			return false
		}
	}
	return true
}

// WaitCaughtUp returns when CaughtUp would say yes, or with the error of a partition that will never be, or ctx's.
func (s *Set) WaitCaughtUp(ctx context.Context) error {
	for _, p := range s.parts {
		if p.waiters.applied.Load() < p.target {
			p.waiters.wait(ctx, p.target)
		}
		if err := errors.Join(p.err(), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// Flush makes what is applied survive a crash without reading the log again.
func (s *Set) Flush() error {
	for _, p := range s.parts {
		if err := errors.Join(p.commit(context.Background()), p.store.Flush()); err != nil {
			return fmt.Errorf("cannot flush counters of stream %s, partition %d: %w", p.stream, p.index, err)
		}
		p.log.Hold(p.store.Persisted())
	}
	return nil
}

// Close stops counting, writes what was counted and closes the state.
func (s *Set) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.cancel()
	s.wg.Wait()
	return s.closePartitions()
}

func (s *Set) closePartitions() error {
	var errs []error
	for _, p := range s.parts {
		if err := p.close(); err != nil {
			errs = append(errs, fmt.Errorf("cannot close counters of stream %s, partition %d: %w", p.stream, p.index, err))
		}
	}
	return errors.Join(errs...)
}
