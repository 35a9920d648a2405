package counter

import "github.com/weirstream/weir/internal/state"

// Info is what there is to know about one counter.
type Info struct {
	Definition Definition
	Local      bool
	Building   bool
	Progress   float64 // of building, 0..1
	Partitions []ShareInfo
}

// ShareInfo is one counter in one partition.
type ShareInfo struct {
	Partition int
	Building  bool
	Standing  state.Standing // zero while it is being built
	Lag       int64          // durable events that are not counted yet
	DiskBytes int64          // an estimate

	// Since the set was opened:
	Counted      int64 // events that were counted
	Late         int64 // events at or below H
	SkippedWhere int64 // events that where excluded
	SkippedKey   int64 // events without a key
	WhereErrors  int64 // events for which where failed
}

// PartitionInfo is what a partition's counters share.
type PartitionInfo struct {
	Stream    string
	Partition int
	Applied   int64 // every event below it can be looked up
	Lag       int64 // durable events beyond
	State     state.Stats
	Err       error // what made it stop counting

	// Since the set was opened:
	Epochs    int64
	Folds     int64 // keys read and written back
	Swept     int64 // dead keys deleted
	Conflicts int64 // copies of one id that differed in ts, as far as they were noticed
}

// Info returns what there is to know about every counter, in the order of their definitions.
func (s *Set) Info() []Info {
	if s.closed.Load() {
		return nil
	}
	infos := make([]Info, 0, len(s.counters))
	for _, c := range s.counters {
		infos = append(infos, c.Info())
	}
	return infos
}

// Info returns what there is to know about c.
func (c *Counter) Info() Info {
	info := Info{Definition: c.plan.def, Local: c.plan.local, Progress: c.progress()}
	for i, s := range c.shares {
		p := c.parts[i]
		share := ShareInfo{
			Partition: i, Building: !s.live.Load(),
			Counted: s.counted.Load(), Late: s.late.Load(), SkippedWhere: s.skippedWhere.Load(),
			SkippedKey: s.skippedKey.Load(), WhereErrors: s.whereErrors.Load(),
		}
		next := s.built.Load()
		if share.Building {
			info.Building = true
		} else {
			share.Standing = p.lane.Standing(s.state)
			next = share.Standing.Next
		}
		share.Lag = max(0, p.durable()-next)
		share.DiskBytes, _ = p.store.DiskBytes(s.entry.ID) // 0 where it cannot be told
		info.Partitions = append(info.Partitions, share)
	}
	return info
}

// Partitions returns what there is to know about every partition of every stream.
func (s *Set) Partitions() []PartitionInfo {
	if s.closed.Load() {
		return nil
	}
	infos := make([]PartitionInfo, 0, len(s.parts))
	for _, p := range s.parts {
		applied := p.waiters.applied.Load()
		infos = append(infos, PartitionInfo{
			Stream: p.stream, Partition: p.index, Applied: applied, Lag: max(0, p.durable()-applied), State: p.store.Stats(),
			Err: p.err(), Epochs: p.commits.Load(), Folds: p.folds.Load(), Swept: p.swept.Load(), Conflicts: p.conflict.Load(),
		})
	}
	return infos
}
