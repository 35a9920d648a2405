package counter

import (
	"context"
	"fmt"

	"github.com/weirstream/weir/internal/shard"
	"github.com/weirstream/weir/internal/slide"
	"github.com/weirstream/weir/internal/state"
)

// Answer is what a counter says about one key at one instant. It is reused: filling it allocates only when Windows is too
// short.
type Answer struct {
	slide.Answer
	AsOf          int64
	CompleteSince int64 // slide.CompleteAlways: the counter holds everything
	Behind        int64 // events acknowledged before the look-up that are not in it; each window's Max allows for them
}

// Counter is one counter of a Set.
type Counter struct {
	set    *Set
	plan   *plan
	shares []*share // one per partition
	parts  []*partition
}

// Definition returns what the counter counts.
func (c *Counter) Definition() Definition { return c.plan.def }

// Local says whether all events of one key lie in one partition.
func (c *Counter) Local() bool { return c.plan.local }

// lookup is the memory of one look-up.
type lookup struct {
	scratch state.Scratch
	query   slide.Query
	answer  slide.Answer
	key     []byte
	targets []int64 // per partition asked: what had been acknowledged
}

// Lookup answers for one key at asOf (ms), with every event that was acknowledged before the call: it waits for them, at
// most AppliedWaitMax, and allows for those that are missing then. Errors: ErrKeyParts, *BuildingError, ErrClosed,
// ErrFailed, and those of the storage below.
func (c *Counter) Lookup(ctx context.Context, key [][]byte, asOf int64, a *Answer) error {
	if err := c.checkKey(key); err != nil {
		return err
	}
	l := c.set.lookups.Get().(*lookup)
	defer c.set.lookups.Put(l)
	l.query.Windows, l.query.AsOf = c.plan.def.Windows, asOf
	a.AsOf, a.CompleteSince, a.Behind = asOf, slide.CompleteAlways, 0
	first, end := 0, len(c.shares)
	if c.plan.local {
		first = shard.Of(key[0], len(c.shares))
		end = first + 1
	}
	if err := c.await(ctx, l, first, end); err != nil {
		return err
	}
	for i := first; i < end; i++ {
		// The first answer goes where it is wanted; the others are added to it.
		into := &a.Answer
		if i > first {
			into = &l.answer
		}
		if err := c.lookupIn(i, l.targets[i-first], key, l, a, into); err != nil {
			return err
		}
		if i > first {
			slide.Combine(&a.Answer, into)
		}
	}
	a.allowBehind()
	return nil
}

func (c *Counter) checkKey(key [][]byte) error {
	if len(key) != len(c.plan.key) {
		return fmt.Errorf("cannot look up counter %s: %w: got %d parts; want %d", c.plan.def.Name, ErrKeyParts, len(key), len(c.plan.key))
	}
	for i, part := range key {
		if len(part) > state.KeyPartBytesMax {
			return fmt.Errorf("cannot look up counter %s: %w: got %d bytes in part %d; want at most %d",
				c.plan.def.Name, ErrKeyParts, len(part), i+1, state.KeyPartBytesMax)
		}
	}
	return nil
}

// await notes what partitions first to end have acknowledged, and waits until it is applied, for AppliedWaitMax in all.
func (c *Counter) await(ctx context.Context, l *lookup, first, end int) error {
	l.targets = l.targets[:0]
	behind := false
	for i := first; i < end; i++ {
		p := c.parts[i]
		if c.set.closed.Load() {
			return ErrClosed
		}
		if err := p.err(); err != nil {
			return err
		}
		if !c.shares[i].live.Load() {
			return &BuildingError{Counter: c.plan.def.Name, Progress: c.progress()}
		}
		target := p.log.Acked()
		l.targets = append(l.targets, target)
		behind = behind || p.waiters.applied.Load() < target
	}
	if !behind {
		return nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, AppliedWaitMax)
	defer cancel()
	for i := first; i < end; i++ {
		if target := l.targets[i-first]; c.parts[i].waiters.applied.Load() < target {
			c.parts[i].waiters.wait(waitCtx, target)
		}
	}
	return ctx.Err()
}

// lookupIn answers from partition i into answer, and notes in a what concerns all of it.
func (c *Counter) lookupIn(i int, target int64, key [][]byte, l *lookup, a *Answer, answer *slide.Answer) error {
	s, p := c.shares[i], c.parts[i]
	l.key = state.AppendKey(l.key[:0], s.entry.ID, key...)
	seen, err := p.lane.Lookup(s.state, l.key, &l.query, &l.scratch, answer)
	if err != nil {
		return fmt.Errorf("cannot look up counter %s in partition %d: %w", c.plan.def.Name, i, err)
	}
	a.CompleteSince = max(a.CompleteSince, seen.CompleteSince)
	a.Behind += max(0, target-seen.Next)
	return nil
}

// allowBehind makes the answer true whatever the missing events are: each may count once in every window.
func (a *Answer) allowBehind() {
	if a.Behind == 0 {
		return
	}
	for i := range a.Windows {
		a.Windows[i].Max += a.Behind
		a.Windows[i].Exact = false
	}
}

// progress returns how far building is, of all partitions together.
func (c *Counter) progress() float64 {
	sum := 0.0
	for i, s := range c.shares {
		sum += s.progress(c.parts[i].durable())
	}
	return sum / float64(len(c.shares))
}
