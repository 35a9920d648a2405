package eventlog

import (
	"sync/atomic"
	"unsafe"

	"github.com/weirstream/weir/internal/event"
)

// dedup remembers the identities of the newest events of a partition, in offset order, so that a repeated one is
// acknowledged instead of stored.
//
// It is a queue and an index. The queue holds hash and arrival of a dense run of offsets, [head, tail), in blocks that
// are reused; the place in the queue is the offset, so that is not stored. The index maps a hash to an offset: open
// addressing in many small tables, chosen by the upper bits of the hash, so that growing rehashes one small table at a
// time and no append waits for a big one. Neither holds pointers, so a million ids are nothing to the collector; in the
// steady state nothing is allocated.
//
// One goroutine, the partition's appender, owns it.
type dedup struct {
	window int64 // ms
	max    int64 // ids

	head, tail int64 // offsets remembered
	newest     int64 // highest arrival pushed, in ms
	recent     int64 // the same, but that it starts again where the clock was set back: what age is relative to
	blocks     []*dedupBlock
	spare      *dedupBlock // one block that was emptied
	tables     []dedupTable
	shift      uint // hash.Hi >> shift is the table

	touched uint32 // what prefetch read

	ids   atomic.Int64 // for Stats
	bytes atomic.Int64
}

const (
	dedupBlockIDs    = 4096
	dedupTableIDs    = 2048 // ids per table that the number of tables is chosen for
	dedupSlotsMin    = 8
	dedupLoadPercent = 75

	// dedupSlackMS is how long an id stays beyond the window, because requests that arrive at the same time may be
	// stored in another order than that of their arrivals.
	dedupSlackMS = 60_000
)

type dedupBlock struct {
	hashes   [dedupBlockIDs]event.Hash
	arrivals [dedupBlockIDs]uint32 // the lower half of ms
}

// dedupTable is one open-addressing table.
type dedupTable struct {
	slots []dedupSlot
	used  int
}

// dedupSlot is free where mark is 0. Where a slot's home is follows from its tag alone, so moving it reads no hash.
type dedupSlot struct {
	tag  uint32 // lower bits of the hash
	mark uint32 // the lower 31 bits of the offset, under slotFull
}

const slotFull = 1 << 31

func markOf(offset int64) uint32 { return uint32(offset)&(slotFull-1) | slotFull }

func newDedup(windowMS int64, maxIDs int, start int64) *dedup {
	d := &dedup{window: windowMS, max: int64(maxIDs), head: start, tail: start}
	tables := 1
	for tables*dedupTableIDs < maxIDs {
		tables *= 2
	}
	d.tables = make([]dedupTable, tables)
	d.shift = 64
	for n := tables; n > 1; n /= 2 {
		d.shift--
	}
	d.blocks = make([]*dedupBlock, maxIDs/dedupBlockIDs+2)
	d.bytes.Store(int64(tables)*int64(unsafe.Sizeof(dedupTable{})) + int64(len(d.blocks))*8)
	return d
}

func (d *dedup) enabled() bool { return d.window > 0 && d.max > 0 }

// lookup returns the offset of the event that was accepted with the same identity within the window before arrival.
func (d *dedup) lookup(hash event.Hash, arrival int64) (offset int64, ok bool) {
	if !d.enabled() || arrival-d.newest > d.window { // the latter also keeps the 32 bits below from wrapping
		return 0, false
	}
	t := d.table(hash)
	if len(t.slots) == 0 {
		return 0, false
	}
	tag, mask := uint32(hash.Lo), uint32(len(t.slots)-1)
	for i := tag & mask; t.slots[i].mark != 0; i = (i + 1) & mask {
		if t.slots[i].tag != tag {
			continue
		}
		offset = d.offsetOf(t.slots[i].mark)
		block, place := d.at(offset)
		if block.hashes[place] == hash {
			return offset, int64(int32(uint32(arrival)-block.arrivals[place])) <= d.window
		}
	}
	return 0, false
}

// prefetchItems is how many items prefetch is given at a time: their slots stay in the processor's cache until they are used.
const prefetchItems = 128

// prefetch reads the slots that appending items will read. Its loads do not depend on each other, so the processor waits
// for memory once and not once an item.
func (d *dedup) prefetch(items []event.Item) {
	if !d.enabled() {
		return
	}
	touched := uint32(0)
	for i := range items {
		touched += d.touch(items[i].Hash)
	}
	if popped := d.tail + int64(len(items)) - d.head - d.max; popped > 0 {
		for offset := d.head; offset < min(d.head+popped, d.tail); offset++ {
			block, place := d.at(offset)
			touched += d.touch(block.hashes[place])
		}
	}
	d.touched = touched
}

func (d *dedup) touch(hash event.Hash) uint32 {
	t := d.table(hash)
	if len(t.slots) == 0 {
		return 0
	}
	return t.slots[uint32(hash.Lo)&uint32(len(t.slots)-1)].mark
}

// push remembers the identity of the event that gets offset, which must be the one after the last pushed. It forgets
// what the bounds no longer allow.
func (d *dedup) push(hash event.Hash, arrival, offset int64) {
	if !d.enabled() {
		return
	}
	if arrival-d.newest > d.window+dedupSlackMS || d.tail-d.head == 0 {
		d.reset(offset)
	}
	d.newest = max(d.newest, arrival)
	if d.recent = max(d.recent, arrival); d.recent-arrival > dedupSlackMS {
		d.recent = arrival
	}
	for d.tail-d.head >= d.max || d.tail > d.head && d.expired(d.head) {
		d.pop()
	}
	place := &d.blocks[d.tail/dedupBlockIDs%int64(len(d.blocks))]
	if *place == nil {
		*place = d.block()
	}
	i := d.tail % dedupBlockIDs
	(*place).hashes[i], (*place).arrivals[i] = hash, uint32(arrival)
	d.tail++
	d.insert(hash, offset)
	d.ids.Store(d.tail - d.head)
}

// reset forgets everything; the next offset is next.
func (d *dedup) reset(next int64) {
	for d.tail > d.head {
		d.pop()
	}
	if block := &d.blocks[d.tail/dedupBlockIDs%int64(len(d.blocks))]; *block != nil {
		d.recycle(block)
	}
	d.head, d.tail, d.newest, d.recent = next, next, 0, 0
}

func (d *dedup) expired(offset int64) bool {
	block, place := d.at(offset)
	return int64(int32(uint32(d.recent)-block.arrivals[place])) > d.window+dedupSlackMS
}

func (d *dedup) pop() {
	block, place := d.at(d.head)
	d.remove(block.hashes[place], d.head)
	d.head++
	if d.head%dedupBlockIDs == 0 {
		d.recycle(&d.blocks[(d.head-1)/dedupBlockIDs%int64(len(d.blocks))])
	}
}

func (d *dedup) block() *dedupBlock {
	if block := d.spare; block != nil {
		d.spare = nil
		return block
	}
	d.bytes.Add(int64(unsafe.Sizeof(dedupBlock{})))
	return new(dedupBlock)
}

func (d *dedup) recycle(block **dedupBlock) {
	if d.spare == nil {
		d.spare = *block
	} else {
		d.bytes.Add(-int64(unsafe.Sizeof(dedupBlock{})))
	}
	*block = nil
}

func (d *dedup) at(offset int64) (*dedupBlock, int64) {
	return d.blocks[offset/dedupBlockIDs%int64(len(d.blocks))], offset % dedupBlockIDs
}

// offsetOf restores an offset from its lower 31 bits: the queue spans less than 2^31.
func (d *dedup) offsetOf(mark uint32) int64 {
	return d.head + int64((mark-uint32(d.head))&(slotFull-1))
}

func (d *dedup) table(hash event.Hash) *dedupTable { return &d.tables[hash.Hi>>d.shift] }

// insert points the index at offset, also where it pointed at an older event of the same identity.
func (d *dedup) insert(hash event.Hash, offset int64) {
	t := d.table(hash)
	if (t.used+1)*100 > len(t.slots)*dedupLoadPercent {
		d.grow(t)
	}
	tag, mask := uint32(hash.Lo), uint32(len(t.slots)-1)
	i := tag & mask
	for ; t.slots[i].mark != 0; i = (i + 1) & mask {
		if t.slots[i].tag != tag {
			continue
		}
		if block, place := d.at(d.offsetOf(t.slots[i].mark)); block.hashes[place] == hash {
			t.slots[i].mark = markOf(offset)
			return
		}
	}
	t.slots[i] = dedupSlot{tag: tag, mark: markOf(offset)}
	t.used++
}

// remove takes the slot of offset out, unless a newer event of the same identity has taken it over, and closes the gap:
// a slot behind it moves up unless its home lies between.
func (d *dedup) remove(hash event.Hash, offset int64) {
	t := d.table(hash)
	tag, mask := uint32(hash.Lo), uint32(len(t.slots)-1)
	gap := tag & mask
	for ; ; gap = (gap + 1) & mask {
		if t.slots[gap].mark == 0 {
			return
		}
		if t.slots[gap].tag == tag && t.slots[gap].mark == markOf(offset) {
			break
		}
	}
	for i := (gap + 1) & mask; t.slots[i].mark != 0; i = (i + 1) & mask {
		if home := t.slots[i].tag & mask; (i-home)&mask >= (i-gap)&mask {
			t.slots[gap] = t.slots[i]
			gap = i
		}
	}
	t.slots[gap] = dedupSlot{}
	t.used--
}

func (d *dedup) grow(t *dedupTable) {
	old := t.slots
	t.slots = make([]dedupSlot, max(dedupSlotsMin, 2*len(old)))
	mask := uint32(len(t.slots) - 1)
	for _, slot := range old {
		if slot.mark == 0 {
			continue
		}
		i := slot.tag & mask
		for t.slots[i].mark != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = slot
	}
	d.bytes.Add(int64(len(t.slots)-len(old)) * int64(unsafe.Sizeof(dedupSlot{})))
}
