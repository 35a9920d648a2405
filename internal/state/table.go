package state

import (
	"bytes"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/weirstream/weir/internal/slide"
)

// Delta tables. A table is a hash map from key to the arrivals of one epoch, in memory without pointers. It is never
// rehashed as a whole: buckets are split one at a time, as keys come in (linear hashing, Litwin 1980), which the region
// makes easy: the bucket array has its final address from the start and only grows into it. Keys chain through their
// entries, arrivals through theirs, and all three arrays fill from the front, so that dropping an epoch is setting
// three lengths and clearing the buckets that were used.

// tableEntry is one key of a table.
type tableEntry struct {
	hash   uint64
	key    uint32 // where its bytes start in keys
	keyLen uint32
	next   uint32 // next entry of the bucket, index + 1; 0 ends the chain
	last   uint32 // newest arrival, index + 1
	count  uint32 // arrivals
	_      uint32
}

// tableArrival is one arrival; they chain from the newest to the oldest.
type tableArrival struct {
	slide.Entry
	next uint32 // index + 1
	_    uint32
}

// ArrivalBytes is what an arrival of a new key takes in a delta table beside the key's own bytes.
const ArrivalBytes = entryBytes + arrivalBytes

const (
	entryBytes    = 32
	arrivalBytes  = 24
	bucketBytes   = 4
	bucketsMin    = 256
	tableBytesMin = 64 << 10
)

// table is guarded by its lane: one writer, or any number of readers.
type table struct {
	region    []byte
	keys      []byte // filled up to keysLen
	entries   []tableEntry
	arrivals  []tableArrival
	heads     []uint32 // entry index + 1 of each bucket's first entry
	keysLen   int
	entryLen  int
	arriveLen int
	buckets   int // heads[:buckets] are in use
	bytesMax  int
}

// newTable makes a table that holds bytesMax bytes of keys, entries and arrivals together.
func newTable(bytesMax int) (*table, error) {
	bytesMax = max(alignUp(bytesMax, regionAlign), tableBytesMin)
	headBytes := alignUp(bytesMax/(entryBytes+arrivalBytes)*bucketBytes+bucketsMin*bucketBytes, regionAlign)
	region, err := newRegion(3*bytesMax + headBytes)
	if err != nil {
		return nil, err
	}
	return &table{
		region:   region,
		keys:     region[:bytesMax],
		entries:  slabOf[tableEntry](region[bytesMax : 2*bytesMax]),
		arrivals: slabOf[tableArrival](region[2*bytesMax : 3*bytesMax]),
		heads:    slabOf[uint32](region[3*bytesMax:]),
		buckets:  bucketsMin,
		bytesMax: bytesMax,
	}, nil
}

func (t *table) free() error {
	region := t.region
	*t = table{}
	return freeRegion(region)
}

// HashKey is the hash that tables, caches and filters share.
func HashKey(key []byte) uint64 { return xxh3.Hash(key) }

// size returns the bytes in use.
func (t *table) size() int { return t.keysLen + t.entryLen*entryBytes + t.arriveLen*arrivalBytes }

// room says whether arrivals for keys new keys of keyBytes bytes in all fit.
func (t *table) room(keys, keyBytes int) bool {
	return t.size()+keyBytes+keys*(entryBytes+arrivalBytes) <= t.bytesMax
}

// bucket returns the bucket of a hash among the buckets in use, any number of them.
func (t *table) bucket(hash uint64) int {
	level := 1 << (bits.Len(uint(t.buckets)) - 1)
	if b := int(hash & uint64(2*level-1)); b < t.buckets {
		return b
	}
	return int(hash & uint64(level-1))
}

// find returns the key's entry index, or -1.
func (t *table) find(hash uint64, key []byte) int {
	for at := t.heads[t.bucket(hash)]; at != 0; {
		e := &t.entries[at-1]
		if e.hash == hash && bytes.Equal(t.keys[e.key:e.key+e.keyLen], key) {
			return int(at - 1)
		}
		at = e.next
	}
	return -1
}

// add takes one arrival in and returns how many the key has. The caller has asked for room.
func (t *table) add(hash uint64, key []byte, arrival slide.Entry) uint32 {
	at := t.find(hash, key)
	if at < 0 {
		at = t.insert(hash, key)
	}
	e := &t.entries[at]
	t.arrivals[t.arriveLen] = tableArrival{Entry: arrival, next: e.last}
	t.arriveLen++
	e.last = uint32(t.arriveLen)
	e.count++
	return e.count
}

func (t *table) insert(hash uint64, key []byte) int {
	if t.entryLen >= t.buckets && t.buckets < len(t.heads) {
		t.split()
	}
	b := t.bucket(hash)
	at := t.entryLen
	t.entries[at] = tableEntry{hash: hash, key: uint32(t.keysLen), keyLen: uint32(len(key)), next: t.heads[b]}
	t.keysLen += copy(t.keys[t.keysLen:], key)
	t.entryLen++
	t.heads[b] = uint32(t.entryLen)
	return at
}

// split brings one more bucket into use and moves what belongs there out of the one bucket it can be in.
func (t *table) split() {
	target := t.buckets
	level := 1 << (bits.Len(uint(target)) - 1)
	source := target - level
	t.buckets++
	t.heads[target] = 0
	chain := t.heads[source]
	t.heads[source] = 0
	for chain != 0 {
		e := &t.entries[chain-1]
		rest := e.next
		to := source
		if e.hash&uint64(level) != 0 {
			to = target
		}
		e.next = t.heads[to]
		t.heads[to] = chain
		chain = rest
	}
}

// appendArrivals appends the key's arrivals to dst.
func (t *table) appendArrivals(dst []slide.Entry, hash uint64, key []byte) []slide.Entry {
	if t.entryLen == 0 {
		return dst
	}
	at := t.find(hash, key)
	if at < 0 {
		return dst
	}
	return t.appendChain(dst, &t.entries[at])
}

func (t *table) appendChain(dst []slide.Entry, e *tableEntry) []slide.Entry {
	for at := e.last; at != 0; {
		a := &t.arrivals[at-1]
		dst = append(dst, a.Entry)
		at = a.next
	}
	return dst
}

func (t *table) keyOf(e *tableEntry) []byte { return t.keys[e.key : e.key+e.keyLen : e.key+e.keyLen] }

// reset empties the table. The buckets stay as they are, since the next epoch will likely be as large; after a much
// smaller one they are halved.
func (t *table) reset() {
	clear(t.heads[:t.buckets])
	if t.entryLen < t.buckets/4 {
		t.buckets = max(t.buckets/2, bucketsMin)
	}
	t.keysLen, t.entryLen, t.arriveLen = 0, 0, 0
}
