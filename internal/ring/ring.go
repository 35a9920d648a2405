// Package ring keeps the newest entries of a log in RAM, outside the Go heap, for one writer and many readers without
// a lock.
//
// An entry is bytes that carry a run of consecutive offsets (a batch frame of the event log). Entries lie one behind
// the other in chunks, and chunks form a chain from the oldest (tail) to the newest (head):
//
//	tail                                             head
//	┌──────────┐   ┌──────────┐   ┌──────────┐   ┌──────────┐
//	│ seq 7    │──▶│ seq 8    │──▶│ seq 9    │──▶│ seq 10 ▒ │   ▒ not written yet
//	└──────────┘   └──────────┘   └──────────┘   └──────────┘
//
// Chunks have numbers that are never used twice, and a chunk that is linked has its number in its state word, beside
// the count of readers that pin it:
//
//	state = seq << pinBits | pins        seq 0: not linked
//
// # Why a reader never sees memory that is being reused
//
// The invariant: a chunk's memory is written below its published length, moved or unmapped only while its state is 0,
// and only the writer takes a state from 0 to something else.
//
//	reader                                     writer
//	loads the chunk's index from the table     unlinks: tail = seq+1
//	CAS state (seq, n) -> (seq, n+1)           CAS state (seq, n) -> (0, n)
//	reads below the published length           may reuse once it loads 0
//	adds -1 to state                           sets memory and first offset, then stores (seq', 0)
//
// The two CAS on one word have an order. If the reader's comes first, the writer finds n+1 pins and leaves the memory
// alone until the reader's -1. If the writer's comes first, the reader's fails, because it asks for seq and numbers are
// not used twice; so a reader that slept between loading the index and its CAS cannot pin the chunk's next life by
// mistake. What the writer stored before it linked a chunk is visible to a reader whose CAS has seen that link, and
// what a reader has read is read before its -1, which the writer has loaded before it reuses.
//
// A reader that fails to pin is told that the entry is Behind the ring, and goes on where retired entries are kept.
// Nobody waits for anybody: a reader that sleeps with a pin costs the ring that one chunk.
package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weirstream/weir/internal/invariant"
)

// ErrFull says that the ring is at its cap and that the writer must first retire or spill a chunk, or wait until
// readers let go of retired ones.
var ErrFull = errors.New("ring is full")

const (
	pinBits = 24 // readers at most: 16 million
	pinMask = 1<<pinBits - 1

	entryHeaderBytes = 16 // first offset, count, length

	chunksPerRing = 32 // what the cap is divided by for the size of a chunk
	chunkBytesMin = 64 << 10
	chunkBytesMax = 2 << 20

	cacheLineBytes = 64
)

// Options configures a Ring.
type Options struct {
	BytesMax int64 // cap of mapped memory, in bytes; at least BytesMin of the longest entry
	AgeMS    int64 // how long a chunk stays after the last write to it, in ms
	End      int64 // offset that the first entry will have
}

// BytesMin returns the smallest cap that takes entries of up to entryBytes.
func BytesMin(entryBytes int) int64 {
	return 2*int64(chunkSize(entryBytes, chunkBytesMin)) + 2*chunkBytesMin
}

// chunkSize returns the size of a chunk that holds an entry of entryBytes: the usual size where that is enough.
func chunkSize(entryBytes, usual int) int {
	const page = 4096
	need := (entryBytes + entryHeaderBytes + page - 1) / page * page
	return max(need, usual)
}

// line keeps what stands on its two sides on different cache lines.
type line [cacheLineBytes]byte

type chunk struct {
	_     line
	state atomic.Uint64 // seq << pinBits | pins
	_     line
	used  atomic.Int64 // bytes of mem that hold entries; grows while the chunk is linked
	_     line

	// Set by the writer while state is 0.
	mem   []byte
	first int64 // offset of the first entry

	// Of the writer alone.
	end       int64 // exclusive end of the offsets in the chunk
	writtenMS int64 // last write
	freedMS   int64 // when it was retired
}

// Ring is the chain. One goroutine may call its writing methods: Reserve, Publish, Retire, Spill and Close.
type Ring struct {
	opts       Options
	chunkBytes int
	chunks     []chunk
	table      []atomic.Uint32 // seq mod len -> index in chunks, of linked chunks

	_     line
	head  atomic.Uint64 // newest number in use; 0 before the first
	end   atomic.Int64  // exclusive end of the offsets published
	_     line
	tail  atomic.Uint64 // oldest linked number; head+1 where none is
	first atomic.Int64  // offset of the oldest entry in the ring; end where none is
	_     line

	mapped atomic.Int64 // bytes mapped
	spills atomic.Int64 // chunks retired before their age

	// Of the writer alone.
	current  *chunk   // where the next entry goes; nil where the next entry opens a chunk
	reserved int      // length of the entry that is reserved; -1 none
	idle     []uint32 // chunks that are not linked but mapped; some may still be pinned
	bare     []uint32 // chunks without memory
}

// New returns an empty ring. It maps memory only as it is written to.
func New(o Options) (*Ring, error) {
	usual := min(max(int(o.BytesMax/chunksPerRing)&^4095, chunkBytesMin), chunkBytesMax)
	if o.BytesMax < BytesMin(0) {
		return nil, fmt.Errorf("cannot make a ring: got a cap of %d bytes; want at least %d", o.BytesMax, BytesMin(0))
	}
	n := int(o.BytesMax / int64(usual))
	r := &Ring{
		opts: o, chunkBytes: usual, chunks: make([]chunk, n), table: make([]atomic.Uint32, n),
		reserved: -1, idle: make([]uint32, 0, n), bare: make([]uint32, n),
	}
	for i := range r.bare {
		r.bare[i] = uint32(n - 1 - i)
	}
	r.tail.Store(1)
	r.end.Store(o.End)
	r.first.Store(o.End)
	return r, nil
}

// EntryBytesUsual is the length up to which an entry needs no chunk of its own.
func (r *Ring) EntryBytesUsual() int { return r.chunkBytes - entryHeaderBytes }

// Reserve returns room for an entry of size bytes, to be filled before Publish. The error is ErrFull.
func (r *Ring) Reserve(size int) ([]byte, error) {
	need := size + entryHeaderBytes
	if c := r.current; c == nil || int(c.used.Load())+need > len(c.mem) {
		if err := r.open(size); err != nil {
			return nil, err
		}
	}
	start := int(r.current.used.Load()) + entryHeaderBytes
	r.reserved = size
	return r.current.mem[start : start+size : start+size], nil
}

// Publish shows the entry that was reserved to the readers: count offsets from first on, which must be the ring's end.
func (r *Ring) Publish(first int64, count int, nowMS int64) {
	invariant.Check(r.reserved >= 0, "publish without a reservation")
	invariant.Check(first == r.end.Load(), "published offset %d, ring ends at %d", first, r.end.Load())
	c := r.current
	used := int(c.used.Load())
	header := c.mem[used:]
	binary.LittleEndian.PutUint64(header, uint64(first))
	binary.LittleEndian.PutUint32(header[8:], uint32(count))
	binary.LittleEndian.PutUint32(header[12:], uint32(r.reserved))
	c.end, c.writtenMS = first+int64(count), nowMS
	c.used.Store(int64(used + entryHeaderBytes + r.reserved))
	r.end.Store(c.end)
	r.reserved = -1
}

// open links a chunk with room for an entry of size bytes and makes it the current one.
func (r *Ring) open(size int) error {
	index, ok := r.obtain(chunkSize(size, r.chunkBytes))
	if !ok {
		return ErrFull
	}
	c := &r.chunks[index]
	invariant.Check(c.state.Load() == 0, "reused chunk has state %x", c.state.Load())
	seq := r.head.Load() + 1
	c.first, c.end = r.end.Load(), r.end.Load()
	c.used.Store(0)
	c.state.Store(seq << pinBits)
	r.table[seq%uint64(len(r.table))].Store(index)
	r.head.Store(seq)
	r.current = c
	return nil
}

// obtain returns a chunk with bytes of memory that nobody pins: an idle one of that size, or a new mapping where the
// cap has room, for which it gives idle ones of other sizes up.
func (r *Ring) obtain(bytes int) (index uint32, ok bool) {
	for i := len(r.idle) - 1; i >= 0; i-- {
		index = r.idle[i]
		if c := &r.chunks[index]; len(c.mem) == bytes && c.state.Load() == 0 {
			r.idle = append(r.idle[:i], r.idle[i+1:]...)
			return index, true
		}
	}
	for i := len(r.idle) - 1; i >= 0 && r.mapped.Load()+int64(bytes) > r.opts.BytesMax; i-- {
		r.release(i)
	}
	if len(r.bare) == 0 && len(r.idle) > 0 {
		r.release(len(r.idle) - 1)
	}
	if r.mapped.Load()+int64(bytes) > r.opts.BytesMax || len(r.bare) == 0 {
		return 0, false
	}
	mem, err := mapMemory(bytes)
	if err != nil {
		return 0, false // the machine has no memory to give: the same to the writer as a cap
	}
	index = r.bare[len(r.bare)-1]
	r.bare = r.bare[:len(r.bare)-1]
	r.chunks[index].mem = mem
	r.mapped.Add(int64(bytes))
	return index, true
}

// release unmaps the idle chunk at place i of the list, unless a reader pins it.
func (r *Ring) release(i int) {
	index := r.idle[i]
	c := &r.chunks[index]
	if c.state.Load() != 0 {
		return
	}
	r.mapped.Add(-int64(len(c.mem)))
	unmapMemory(c.mem)
	c.mem = nil
	r.idle = append(r.idle[:i], r.idle[i+1:]...)
	r.bare = append(r.bare, index)
}

// Retire unlinks the chunks that are old enough and lie below warm, an exclusive end, and unmaps memory that was not
// used again for as long.
func (r *Ring) Retire(warm, nowMS int64) {
	for {
		c := r.oldest()
		if c == nil || c.end > warm || nowMS-c.writtenMS < r.opts.AgeMS {
			break
		}
		r.unlink(c, nowMS)
	}
	for i := len(r.idle) - 1; i >= 0; i-- {
		if nowMS-r.chunks[r.idle[i]].freedMS >= r.opts.AgeMS {
			r.release(i)
		}
	}
}

// Spill unlinks the oldest chunk, whatever its age, if it lies below warm, and reports whether it did.
func (r *Ring) Spill(warm, nowMS int64) bool {
	c := r.oldest()
	if c == nil || c.end > warm {
		return false
	}
	if nowMS-c.writtenMS < r.opts.AgeMS {
		r.spills.Add(1)
	}
	r.unlink(c, nowMS)
	return true
}

func (r *Ring) oldest() *chunk {
	tail := r.tail.Load()
	if tail > r.head.Load() {
		return nil
	}
	return &r.chunks[r.table[tail%uint64(len(r.table))].Load()]
}

func (r *Ring) unlink(c *chunk, nowMS int64) {
	seq := r.tail.Load()
	index := r.table[seq%uint64(len(r.table))].Load()
	r.first.Store(c.end)
	r.tail.Store(seq + 1)
	for {
		state := c.state.Load()
		invariant.Check(state>>pinBits == seq, "unlinked chunk %d has number %d", seq, state>>pinBits)
		if c.state.CompareAndSwap(state, state&pinMask) {
			break
		}
	}
	c.freedMS = nowMS
	r.idle = append(r.idle, index)
	if c == r.current {
		r.current, r.reserved = nil, -1
	}
}

// Close retires everything and unmaps what no reader pins. Readers that come later find nothing.
func (r *Ring) Close() {
	for c := r.oldest(); c != nil; c = r.oldest() {
		r.unlink(c, 0)
	}
	for i := len(r.idle) - 1; i >= 0; i-- {
		r.release(i)
	}
}

// Stats is a snapshot of a ring.
type Stats struct {
	Bytes  int64 // mapped
	Chunks int   // linked
	First  int64 // offset of the oldest entry
	End    int64 // exclusive end
	Spills int64 // chunks retired before their age, since New
}

// Stats may be called by any goroutine.
func (r *Ring) Stats() Stats {
	tail, head := r.tail.Load(), r.head.Load()
	return Stats{
		Bytes: r.mapped.Load(), Chunks: int(max(int64(head)-int64(tail)+1, 0)),
		First: r.first.Load(), End: r.end.Load(), Spills: r.spills.Load(),
	}
}

// End returns the exclusive end of the offsets that readers can see. Any goroutine may call it.
func (r *Ring) End() int64 { return r.end.Load() }
