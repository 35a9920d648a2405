package ring

import (
	"encoding/binary"

	"github.com/weirstream/weir/internal/invariant"
)

// Where says where an offset lies.
type Where uint8

const (
	Here   Where = iota // in the ring
	Behind              // below what the ring holds
	Ahead               // not written yet
)

// Entry is what was published. Bytes is valid as long as the reader's pin: until its next Find or Release.
type Entry struct {
	First int64 // offset of its first
	Count int   // offsets in it
	Bytes []byte
}

// Reader reads one ring in offset order. One goroutine at a time may use it.
type Reader struct {
	_     line
	ring  *Ring
	chunk *chunk // pinned; nil where nothing is
	seq   uint64 // number of the chunk where pos counts; 0 before the first
	pos   int    // where in the chunk the entry begins that was found last
	_     line
}

// NewReader returns a reader that pins nothing yet.
func (r *Ring) NewReader() *Reader { return &Reader{ring: r} }

// Find returns the entry that holds offset and pins it. Offsets should not decrease from call to call: going on is
// cheap, going back is a search. Only with Here is an entry returned and a pin held.
func (r *Reader) Find(offset int64) (Entry, Where) {
	if offset >= r.ring.end.Load() {
		r.Release()
		return Entry{}, Ahead
	}
	if !r.resume(offset) && !r.search(offset) {
		return Entry{}, Behind
	}
	for {
		// The number first: the writer publishes the last entry of a chunk before it links the next chunk.
		newest := r.ring.head.Load()
		used := int(r.chunk.used.Load())
		for r.pos < used {
			e := r.entry()
			if offset < e.First+int64(e.Count) {
				return e, Here
			}
			r.pos += entryHeaderBytes + len(e.Bytes)
		}
		invariant.Check(newest > r.seq, "offset %d is below the end %d, in no chunk", offset, r.ring.end.Load())
		next := r.seq + 1
		r.Release()
		if newest < next || !r.pin(next) {
			return Entry{}, Behind
		}
	}
}

// Release gives up the pin and keeps the place.
func (r *Reader) Release() {
	if r.chunk == nil {
		return
	}
	r.chunk.state.Add(^uint64(0))
	r.chunk = nil
}

// resume makes sure that the reader pins the chunk where it stopped, and that offset is not before that.
func (r *Reader) resume(offset int64) bool {
	if r.seq == 0 {
		return false
	}
	if r.chunk == nil {
		pos := r.pos
		if !r.pin(r.seq) {
			return false
		}
		r.pos = pos
	}
	if r.pos < int(r.chunk.used.Load()) && offset >= r.entry().First {
		return true
	}
	if r.pos >= int(r.chunk.used.Load()) && offset >= r.chunk.first {
		r.pos = 0
		return true
	}
	r.Release()
	return false
}

// search pins the chunk that holds offset, from the newest back, because most readers are close to the end.
func (r *Reader) search(offset int64) bool {
	for seq := r.ring.head.Load(); seq >= r.ring.tail.Load() && seq > 0; seq-- {
		if !r.pin(seq) {
			return false // retired meanwhile, and everything older before it
		}
		if r.chunk.first <= offset {
			return true
		}
		r.Release()
	}
	return false
}

// pin takes the chunk numbered seq, at its first entry.
func (r *Reader) pin(seq uint64) bool {
	c := &r.ring.chunks[r.ring.table[seq%uint64(len(r.ring.table))].Load()]
	for {
		state := c.state.Load()
		if state>>pinBits != seq {
			return false
		}
		if c.state.CompareAndSwap(state, state+1) {
			r.chunk, r.seq, r.pos = c, seq, 0
			return true
		}
	}
}

func (r *Reader) entry() Entry {
	header := r.chunk.mem[r.pos:]
	length := int(binary.LittleEndian.Uint32(header[12:]))
	start := r.pos + entryHeaderBytes
	return Entry{
		First: int64(binary.LittleEndian.Uint64(header)),
		Count: int(binary.LittleEndian.Uint32(header[8:])),
		Bytes: r.chunk.mem[start : start+length : start+length],
	}
}
