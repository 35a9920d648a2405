package counter

import (
	"context"
	"fmt"

	"github.com/weirstream/weir/internal/state"
)

// joinEvents is how close a builder comes to the loop before it makes it pause.
const joinEvents = 4096

// build counts the log from its start for shares that are not live, and hands them over to the loop.
func (p *partition) build(ctx context.Context, shares []*share) error {
	next := shares[0].state.Next()
	for _, s := range shares {
		next = min(next, s.state.Next())
	}
	lane, err := p.store.NewLane(state.LaneOptions{Next: next, Counters: states(shares), Durable: p.durable})
	if err != nil {
		return err
	}
	f := &feeder{log: p.log, lane: lane, shares: shares, ahead: p.ahead}
	defer f.close() //nolint:errcheck // a reader that is not used any more
	committed := next
	f.waitRoom = func(context.Context) error {
		committed = next
		_, err := lane.Commit()
		return err
	}
	f.applied = func(applied int64) {
		next = applied
		for _, s := range shares {
			s.built.Store(max(applied, s.state.Next()))
		}
	}
	for ctx.Err() == nil && p.err() == nil {
		limit := p.waiters.applied.Load()
		switch {
		case next > limit:
			// After a crash the builder may be ahead of the loop.
			p.waiters.wait(ctx, next)
		case limit-next > joinEvents:
			if _, err := f.step(ctx, next, limit); err != nil {
				return err
			}
		case next-committed > joinEvents:
			// So that little is left to commit while the loop pauses.
			if err := f.waitRoom(ctx); err != nil {
				return err
			}
		default:
			if err := p.handOver(ctx, f, &next); err != nil {
				return err
			}
			return p.answer(shares)
		}
	}
	return ctx.Err()
}

// handOver pauses the loop, takes the rest of the log up to the loop's offset in, and gives the shares to the loop.
func (p *partition) handOver(ctx context.Context, f *feeder, next *int64) error {
	p.join.Lock()
	defer p.join.Unlock()
	limit := p.waiters.applied.Load()
	for *next < limit {
		ok, err := f.step(ctx, *next, limit)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("cannot build counters: got no events at offset %d; want them up to %d", *next, limit)
		}
	}
	if _, err := f.lane.Commit(); err != nil {
		return err
	}
	if err := p.lane.Adopt(f.lane); err != nil {
		return err
	}
	p.live.shares = append(p.live.shares[:len(p.live.shares):len(p.live.shares)], f.shares...)
	for _, s := range f.shares {
		s.entry.Live = true
		if err := p.store.Update(s.entry); err != nil {
			return err
		}
	}
	return nil
}

// answer lets look-ups have shares that were handed over, once a crash would not turn them back into ones to build.
func (p *partition) answer(shares []*share) error {
	if err := p.store.Flush(); err != nil {
		return err
	}
	for _, s := range shares {
		s.live.Store(true)
		if p.opts.Events.Built != nil {
			p.opts.Events.Built(s.plan.def.Name, p.index)
		}
	}
	return nil
}
