package slide

import (
	"fmt"
	"math"
	"slices"
)

// Folder does the owner's step on a key at a definite position of the log: everything that in a merge would depend on
// when compactions happen. The zero value is ready; reuse keeps its memory. Not for concurrent use.
//
// After Fold the fields say what to write, as one atomic batch. They are valid until the next Fold.
type Folder struct {
	Root       []byte       // after Rewrite: Set the key to it, never merge it
	Writes     []SliceWrite // slices to Set
	Deletes    []uint64     // slices to delete
	Conflicts  int          // copies of one id that differed in ts
	Duplicates int          // copies that were equal

	from     SliceReader
	horizon  int64
	limits   Limits
	sliceMax int // of this key's raw slices

	entries  set
	arrivals arrivals
	index    index
	dirty    bool

	raw, panes []desc // descriptors of the new root
	remaining  int    // raw entries that are neither forgotten nor known to be dropped
	keep       int    // raw entries to forget down to
	forgotten  []pane // one each, in order of time

	live, merged, carry  []rawEntry
	paneLive, paneMerged []pane
	paneCarry            []pane
	times                []int64
	arena, scratch       []byte
	ends                 []int // of Writes in arena
	newestAfter          int64 // newest ts of the new root
}

// Fold promotes a sparse value over its limit, merges pending arrivals into slices, drops what is at or below horizon,
// forgets the oldest ids beyond DedupIDs into panes, coarsens panes, demotes a dense key of few entries, and says Delete
// when nothing is left. from may be nil where value is sparse. The error wraps ErrCorrupt, or is the reader's; nothing
// may be written then.
func (f *Folder) Fold(value []byte, from SliceReader, horizon int64, limits Limits) (Outcome, error) {
	f.reset(from, horizon, limits)
	pending := value
	if Dense(value) {
		var err error
		if pending, err = f.index.decode(value); err != nil {
			return Unchanged, err
		}
	}
	narrow, wide, _, err := cutSetHeader(pending)
	if err != nil {
		return Unchanged, err
	}
	if err := f.entries.appendTo(pending, horizon); err != nil {
		return Unchanged, err
	}
	f.arrivals.resolve(&f.entries)
	if !Dense(value) {
		if n := len(f.arrivals.entries); n <= f.limits.SparseMax {
			return f.sparse(value, narrow+wide), nil
		}
	}
	f.dirty = !Dense(value) || narrow+wide > 0
	outcome, err := f.dense()
	f.Conflicts, f.Duplicates = f.arrivals.conflicts, f.arrivals.duplicates
	if err != nil {
		return Unchanged, err
	}
	return outcome, nil
}

func (f *Folder) reset(from SliceReader, horizon int64, limits Limits) {
	f.Root, f.Writes, f.Deletes = f.Root[:0], f.Writes[:0], f.Deletes[:0]
	f.Conflicts, f.Duplicates = 0, 0
	f.from, f.horizon, f.limits = from, horizon, limits.withDefaults()
	f.entries.reset()
	f.arrivals.reset()
	f.index.reset()
	f.raw, f.panes, f.forgotten = f.raw[:0], f.panes[:0], f.forgotten[:0]
	f.carry, f.paneCarry = f.carry[:0], f.paneCarry[:0]
	f.arena, f.ends = f.arena[:0], f.ends[:0]
}

// sparse finishes a value that is sparse and stays so. stored is how many entries it holds.
func (f *Folder) sparse(value []byte, stored int) Outcome {
	f.Conflicts, f.Duplicates = f.arrivals.conflicts, f.arrivals.duplicates
	switch {
	case len(value) == 0:
		return Unchanged
	case len(f.arrivals.entries) == 0:
		return Delete
	case len(f.arrivals.entries) == stored:
		return Unchanged
	}
	f.appendSparse(f.arrivals.entries)
	return Rewrite
}

// appendSparse makes Root a sparse value of distinct entries. They keep the width of their fingerprints: cut down to 32
// bits, two of them might become one.
func (f *Folder) appendSparse(entries []rawEntry) {
	f.entries.reset()
	for i := range entries {
		e := Entry{TS: entries[i].ts, FP: entries[i].fp}
		if entries[i].narrow {
			f.entries.narrow = append(f.entries.narrow, e)
		} else {
			f.entries.wide = append(f.entries.wide, e)
		}
	}
	f.Root = appendSet(f.Root, &f.entries)
}

func (f *Folder) dense() (Outcome, error) {
	if err := f.expire(); err != nil {
		return Unchanged, err
	}
	if err := f.arrivals.match(&f.index, f.from, f.horizon); err != nil {
		return Unchanged, err
	}
	slices.SortFunc(f.arrivals.entries, byTime)
	f.plan()
	if f.demotes() {
		return f.demote()
	}
	if err := f.rebuildRaw(); err != nil {
		return Unchanged, err
	}
	if err := f.rebuildPanes(); err != nil {
		return Unchanged, err
	}
	f.cutWrites()
	if len(f.raw)+len(f.panes) == 0 {
		return Delete, nil
	}
	if !f.dirty {
		return Unchanged, nil
	}
	f.index.raw, f.raw = f.raw, f.index.raw
	f.index.panes, f.panes = f.panes, f.index.panes
	f.index.newest = f.newestAfter
	f.index.ids = f.index.sumIDs()
	f.Root, f.scratch = f.index.appendRoot(f.Root, f.scratch)
	return Rewrite, nil
}

// expire drops slices that lie at or below the horizon as a whole, counts what is dead in the one raw slice that the
// horizon cuts, and forgets that ids were forgotten once none of them can come again.
func (f *Folder) expire() error {
	x := &f.index
	x.raw = f.expireDescs(x.raw)
	x.panes = f.expireDescs(x.panes)
	if x.forgot && x.forgotTS <= f.horizon && len(x.panes) == 0 {
		x.forgot, x.forgotTS, f.dirty = false, 0, true
	}
	x.ids = x.sumIDs()
	for i := range x.raw {
		d := &x.raw[i]
		if d.min > f.horizon {
			break
		}
		s, err := readRaw(f.from, d)
		if err != nil {
			return err
		}
		if f.times, err = s.appendTimes(f.times[:0]); err != nil {
			return err
		}
		d.dead = firstAbove(f.times, f.horizon)
		x.ids -= int64(d.dead)
	}
	return nil
}

func (f *Folder) expireDescs(descs []desc) []desc {
	kept := descs[:0]
	for _, d := range descs {
		if d.max <= f.horizon {
			f.Deletes, f.dirty = append(f.Deletes, d.id), true
			continue
		}
		kept = append(kept, d)
	}
	return kept
}

// forgetShare bounds how far below DedupIDs one round of forgetting goes, as a share of it (and one slice at most), so
// that not every fold has to forget.
const forgetShare = 8

// plan settles sizes, once it is known which arrivals are new.
func (f *Folder) plan() {
	total := int(f.index.ids) - len(f.arrivals.removed) + len(f.arrivals.entries)
	f.remaining, f.keep = total, math.MaxInt
	f.sliceMax = f.limits.slice(total)
	if total > f.limits.DedupIDs {
		f.keep = f.limits.DedupIDs - min(f.limits.DedupIDs/forgetShare, f.sliceMax)
	}
	f.newestAfter = f.index.newest
	if f.index.nextID == 0 { // a promotion
		f.newestAfter, f.index.nextID = math.MinInt64, 1
	}
	for i := range f.arrivals.entries {
		f.newestAfter = max(f.newestAfter, f.arrivals.entries[i].ts)
	}
}

// demotes says that the key has become so small, and knows all its ids so well, that a sparse value can say all.
func (f *Folder) demotes() bool {
	if f.remaining > f.limits.demote() || f.index.forgot || len(f.index.panes) > 0 {
		return false
	}
	for i := range f.index.raw {
		if f.index.raw[i].count != f.index.raw[i].top {
			return false
		}
	}
	return true
}

// demote makes Root a sparse value of everything that is left.
func (f *Folder) demote() (Outcome, error) {
	f.merged = append(f.merged[:0], f.arrivals.entries...)
	removed := f.arrivals.removed
	for i := range f.index.raw {
		f.live = f.live[:0]
		var err error
		if removed, err = f.load(i, removed); err != nil {
			return Unchanged, err
		}
		f.merged = append(f.merged, f.live...)
		f.Deletes = append(f.Deletes, f.index.raw[i].id)
	}
	if len(f.merged) == 0 {
		return Delete, nil
	}
	f.appendSparse(f.merged)
	return Rewrite, nil
}

// load appends the entries of raw slice i that still count to live and returns the removals of later slices.
func (f *Folder) load(i int, removed []removal) ([]removal, error) {
	d := &f.index.raw[i]
	s, err := readRaw(f.from, d)
	if err != nil {
		return nil, err
	}
	if f.times, err = s.appendTimes(f.times[:0]); err != nil {
		return nil, err
	}
	for j, ts := range f.times {
		if len(removed) > 0 && removed[0].slice == i && removed[0].entry == j {
			removed = removed[1:]
			continue
		}
		if ts <= f.horizon {
			continue
		}
		f.live = append(f.live, s.entry(j, ts))
	}
	return removed, nil
}

// deadShare is the share of dead entries at which a slice is written anew for their sake alone.
const deadShare = 4

// rebuildRaw goes over the raw slices in order of time and writes those that change.
func (f *Folder) rebuildRaw() error {
	fresh, removed := f.arrivals.entries, f.arrivals.removed
	descs := f.index.raw
	if len(descs) == 0 {
		f.flush(fresh, nil, nil)
		return nil
	}
	small := f.remaining <= 2*f.limits.SparseMax // counts to the last entry where a key is about to change its form
	for i := range descs {
		d := &descs[i]
		var next *desc
		n := len(fresh)
		if i+1 < len(descs) {
			next = &descs[i+1]
			n = firstAtOrAbove(fresh, next.min)
		}
		touched := n > 0 || len(f.carry) > 0 || f.remaining > f.keep || d.dead > 0 && (small || d.dead >= d.n/deadShare) ||
			len(removed) > 0 && removed[0].slice == i
		if !touched {
			f.raw = append(f.raw, *d)
			continue
		}
		f.dirty = true
		f.live = append(f.live[:0], f.carry...)
		f.carry = f.carry[:0]
		var err error
		if removed, err = f.load(i, removed); err != nil {
			return err
		}
		f.merged = mergeByTime(f.merged[:0], f.live, fresh[:n])
		fresh = fresh[n:]
		f.flush(f.merged, d, next)
	}
	return nil
}

// firstAtOrAbove returns the index of the first entry with a ts >= ts.
func firstAtOrAbove(entries []rawEntry, ts int64) int {
	i, _ := slices.BinarySearchFunc(entries, ts, func(e rawEntry, ts int64) int {
		if e.ts < ts {
			return -1
		}
		return 1
	})
	return i
}

func mergeByTime(dst, a, b []rawEntry) []rawEntry {
	for len(a) > 0 && len(b) > 0 {
		if byTime(a[0], b[0]) <= 0 {
			dst, a = append(dst, a[0]), a[1:]
		} else {
			dst, b = append(dst, b[0]), b[1:]
		}
	}
	return append(append(dst, a...), b...)
}

// underfull is the share of a slice below which its entries move to the next one, if they fit there: keys whose
// entries move or expire must not be left with a root full of tiny slices.
const underfull = 4

// flush forgets what has to be forgotten of entries and writes the rest in place of d (nil: of nothing), or leaves it to
// the next slice (nil: there is none).
func (f *Folder) flush(entries []rawEntry, d, next *desc) {
	if f.remaining > f.keep {
		k := min(len(entries), f.remaining-f.keep)
		f.forget(entries[:k])
		entries = entries[k:]
	}
	if next != nil && len(entries) < f.sliceMax/underfull && next.n+len(entries) <= f.sliceMax {
		f.carry = append(f.carry[:0], entries...)
		entries = nil
	}
	reuse := d
	for len(entries) > 0 {
		n := chunk(len(entries), f.sliceMax, next == nil)
		f.writeRaw(entries[:n], f.idFor(reuse))
		entries, reuse = entries[n:], nil
	}
	if reuse != nil {
		f.Deletes = append(f.Deletes, reuse.id)
	}
}

// chunk returns how many of n things go into the next slice: all if they fit; else as many as make even slices; but
// almost full ones at the end of time, where slices grow only there.
func chunk(n, most int, last bool) int {
	if n > most && last {
		return most - most/8
	}
	parts := (n + most - 1) / most
	return (n + parts - 1) / parts
}

// idFor returns d's id, or a new one.
func (f *Folder) idFor(d *desc) uint64 {
	if d != nil {
		return d.id
	}
	f.index.nextID++
	return f.index.nextID - 1
}

func (f *Folder) writeRaw(entries []rawEntry, id uint64) {
	d := desc{id: id, min: entries[0].ts, max: entries[len(entries)-1].ts, n: len(entries), top: int64(len(entries))}
	for i := range entries {
		d.count += entries[i].counts()
	}
	f.raw = append(f.raw, d)
	f.arena = appendRaw(f.arena, entries)
	f.written(id)
}

// written notes that the arena's new bytes are slice id. The arena may move yet, so cutWrites sets the values.
func (f *Folder) written(id uint64) {
	f.Writes = append(f.Writes, SliceWrite{ID: id})
	f.ends = append(f.ends, len(f.arena))
}

func (f *Folder) cutWrites() {
	start := 0
	for i, end := range f.ends {
		f.Writes[i].Value = f.arena[start:end:end]
		start = end
	}
}

// forget turns entries, the oldest ones with an id, into panes of one event each; rebuildPanes joins them.
func (f *Folder) forget(entries []rawEntry) {
	if len(entries) == 0 {
		return
	}
	for i := range entries {
		e := &entries[i]
		f.forgotten = append(f.forgotten, pane{min: e.ts, max: e.ts, count: e.counts(), top: 1})
	}
	last := entries[len(entries)-1].ts
	if !f.index.forgot || last > f.index.forgotTS {
		f.index.forgotTS = last
	}
	f.index.forgot, f.dirty = true, true
	f.remaining -= len(entries)
}

// rebuildPanes goes over the pane slices in order of time and writes those that get forgotten events or have aged into
// coarser panes as a whole.
func (f *Folder) rebuildPanes() error {
	fresh, descs := f.forgotten, f.index.panes
	if len(descs) == 0 {
		f.paneMerged = joinPanes(f.paneMerged[:0], nil, fresh, f.newestAfter, f.horizon)
		f.flushPanes(f.paneMerged, nil, nil)
		return nil
	}
	for i := range descs {
		d := &descs[i]
		var next *desc
		n := len(fresh)
		if i+1 < len(descs) {
			next = &descs[i+1]
			for n = 0; n < len(fresh) && fresh[n].min < next.min; n++ {
			}
		}
		if n == 0 && len(f.paneCarry) == 0 && levelOf(d.max, f.newestAfter) == d.level {
			f.panes = append(f.panes, *d)
			continue
		}
		f.dirty = true
		f.paneLive = append(f.paneLive[:0], f.paneCarry...)
		f.paneCarry = f.paneCarry[:0]
		var err error
		if f.paneLive, err = readPanes(f.paneLive, f.from, d); err != nil {
			return fmt.Errorf("cannot fold panes: %w", err)
		}
		f.paneMerged = joinPanes(f.paneMerged[:0], f.paneLive, fresh[:n], f.newestAfter, f.horizon)
		fresh = fresh[n:]
		f.flushPanes(f.paneMerged, d, next)
	}
	return nil
}

// flushPanes writes panes in place of d (nil: of nothing), or leaves them to the next slice (nil: there is none).
func (f *Folder) flushPanes(panes []pane, d, next *desc) {
	if next != nil && len(panes) < f.limits.SliceMax/underfull && next.n+len(panes) <= f.limits.SliceMax {
		f.paneCarry = append(f.paneCarry[:0], panes...)
		panes = nil
	}
	reuse := d
	for len(panes) > 0 {
		n := chunk(len(panes), f.limits.SliceMax, next == nil)
		f.writePanes(panes[:n], f.idFor(reuse))
		panes, reuse = panes[n:], nil
	}
	if reuse != nil {
		f.Deletes = append(f.Deletes, reuse.id)
	}
}

func (f *Folder) writePanes(panes []pane, id uint64) {
	last := panes[len(panes)-1].max
	d := desc{id: id, min: panes[0].min, max: last, n: len(panes), level: levelOf(last, f.newestAfter)}
	for i := range panes {
		d.count += panes[i].count
		d.top += panes[i].top
	}
	f.panes = append(f.panes, d)
	f.arena = appendPanes(f.arena, panes)
	f.written(id)
}
