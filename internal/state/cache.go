package state

import (
	"bytes"
	"math/bits"
	"sync"
)

// The look-up cache remembers merged roots, also that a key has none. Each shard is a ring of entries in memory without
// pointers, newest at the tail, and a hash index into it. Room is made at the head: an entry that was looked up since it
// was written gets a second round, others go (CLOCK, as a log). A value that changes is written anew at the tail.
//
// Every entry carries the number of the last epoch that is in it. While that epoch's frozen table is still there, a
// reader must not add its arrivals again.

const (
	cacheShards      = 16
	cacheHeaderBytes = 32
	cacheAlign       = cacheHeaderBytes // so that a filler's header fits before the end of the ring
	cacheEntryGuess  = 128              // bytes of a usual entry: sizes the index
	cacheRounds      = 8                // second rounds that one insertion may give; more would make it slow
	cacheShardMin    = 4096             // bytes
	cacheFiller      = ^uint32(0)
)

// cacheHeader stands before an entry's key and value. keyLen cacheFiller: nothing up to the end of the ring.
type cacheHeader struct {
	hash   uint64
	epoch  uint64
	keyLen uint32
	valLen uint32
	dead   uint32 // not in the index any more
	used   uint32 // looked up since it was written
}

type cache struct {
	region []byte
	shards [cacheShards]cacheShard
}

type cacheShard struct {
	mu    sync.Mutex
	ring  []byte
	index []uint32 // offset/cacheAlign + 1; linear probing
	live  int
	head  uint64 // logical; offset is head % len(ring)
	tail  uint64
	move  []byte // an entry on its second round
}

// newCache makes a cache of about size bytes. 0: a cache that holds nothing.
func newCache(size int) (*cache, error) {
	c := &cache{}
	if size <= 0 {
		return c, nil
	}
	shard := max(size/cacheShards, cacheShardMin)
	slots := 1 << bits.Len(uint(shard/cacheEntryGuess*2))
	ring := alignUp(max(shard-4*slots, cacheShardMin), regionAlign)
	each := ring + alignUp(4*slots, regionAlign)
	region, err := newRegion(cacheShards * each)
	if err != nil {
		return nil, err
	}
	c.region = region
	for i := range c.shards {
		part := region[i*each : (i+1)*each]
		c.shards[i].ring = part[:ring:ring]
		c.shards[i].index = slabOf[uint32](part[ring : ring+4*slots])
	}
	return c, nil
}

func (c *cache) free() error {
	region := c.region
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.ring, s.index = nil, nil
		s.mu.Unlock()
	}
	if c.region = nil; region == nil {
		return nil
	}
	return freeRegion(region)
}

func (c *cache) shard(hash uint64) *cacheShard { return &c.shards[hash>>60] }

// get appends the key's value to dst. ok is false where the cache does not know the key; a key that is known to have
// nothing has an empty value.
func (c *cache) get(dst []byte, hash uint64, key []byte) (value []byte, epoch uint64, ok bool) {
	s := c.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _, ok := s.find(hash, key)
	if !ok {
		return dst, 0, false
	}
	h := s.header(at)
	h.used = 1
	return append(dst, s.value(at, h)...), h.epoch, true
}

// take is get for the writer: it says whether anybody looked the key up since it was written, and removes the entry.
func (c *cache) take(dst []byte, hash uint64, key []byte) (value []byte, used, ok bool) {
	s := c.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	at, slot, ok := s.find(hash, key)
	if !ok {
		return dst, false, false
	}
	h := s.header(at)
	if used = h.used != 0; used {
		dst = append(dst, s.value(at, h)...)
	}
	s.remove(slot)
	return dst, used, true
}

// put stores a value that includes every epoch up to epoch. A value that is large for its shard is not stored.
func (c *cache) put(hash uint64, key, value []byte, epoch uint64) {
	s := c.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, slot, ok := s.find(hash, key); ok {
		s.remove(slot)
	}
	size := entrySize(len(key), len(value))
	if size > len(s.ring)/8 || !s.makeRoom(size) {
		return
	}
	at := s.reserve(size)
	h := s.header(at)
	*h = cacheHeader{hash: hash, epoch: epoch, keyLen: uint32(len(key)), valLen: uint32(len(value))}
	copy(s.ring[at+cacheHeaderBytes:], key)
	copy(s.ring[at+cacheHeaderBytes+len(key):], value)
	s.insert(hash, at)
}

// drop removes the key.
func (c *cache) drop(hash uint64, key []byte) {
	s := c.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, slot, ok := s.find(hash, key); ok {
		s.remove(slot)
	}
}

func entrySize(keyLen, valueLen int) int {
	return alignUp(cacheHeaderBytes+keyLen+valueLen, cacheAlign)
}

func (s *cacheShard) header(at int) *cacheHeader {
	return &slabOf[cacheHeader](s.ring[at : at+cacheHeaderBytes])[0]
}

func (s *cacheShard) value(at int, h *cacheHeader) []byte {
	start := at + cacheHeaderBytes + int(h.keyLen)
	return s.ring[start : start+int(h.valLen)]
}

// find returns where the key's entry and its index slot are.
func (s *cacheShard) find(hash uint64, key []byte) (at, slot int, ok bool) {
	if len(s.index) == 0 {
		return 0, 0, false
	}
	mask := len(s.index) - 1
	for slot = int(hash) & mask; s.index[slot] != 0; slot = (slot + 1) & mask {
		at = int(s.index[slot]-1) * cacheAlign
		h := s.header(at)
		start := at + cacheHeaderBytes
		if h.hash == hash && bytes.Equal(s.ring[start:start+int(h.keyLen)], key) {
			return at, slot, true
		}
	}
	return 0, 0, false
}

func (s *cacheShard) insert(hash uint64, at int) {
	mask := len(s.index) - 1
	slot := int(hash) & mask
	for s.index[slot] != 0 {
		slot = (slot + 1) & mask
	}
	s.index[slot] = uint32(at/cacheAlign) + 1
	s.live++
}

// remove takes the slot's entry out of the index, closing the gap behind it so that probing needs no tombstones.
func (s *cacheShard) remove(slot int) {
	mask := len(s.index) - 1
	s.header(int(s.index[slot]-1) * cacheAlign).dead = 1
	s.live--
	gap := slot
	for next := (gap + 1) & mask; s.index[next] != 0; next = (next + 1) & mask {
		home := int(s.header(int(s.index[next]-1)*cacheAlign).hash) & mask
		if (next-home)&mask >= (next-gap)&mask {
			s.index[gap] = s.index[next]
			gap = next
		}
	}
	s.index[gap] = 0
}

// makeRoom evicts at the head until size bytes fit at the tail in one piece and the index has a free slot to spare.
func (s *cacheShard) makeRoom(size int) bool {
	if len(s.ring) == 0 {
		return false
	}
	for rounds := 0; ; {
		if s.fits(size) && s.live*4 < len(s.index)*3 {
			return true
		}
		at := int(s.head % uint64(len(s.ring)))
		h := s.header(at)
		if h.keyLen == cacheFiller {
			s.head += uint64(len(s.ring) - at)
			continue
		}
		length := entrySize(int(h.keyLen), int(h.valLen))
		s.head += uint64(length)
		if h.dead != 0 {
			continue
		}
		key := s.ring[at+cacheHeaderBytes : at+cacheHeaderBytes+int(h.keyLen)]
		_, slot, _ := s.find(h.hash, key)
		again := h.used != 0 && rounds < cacheRounds
		if again {
			s.move = append(s.move[:0], s.ring[at:at+length]...)
		}
		hash := h.hash
		s.remove(slot)
		if again && s.fits(length) {
			rounds++
			to := s.reserve(length)
			copy(s.ring[to:], s.move)
			moved := s.header(to)
			moved.used, moved.dead = 0, 0
			s.insert(hash, to)
		}
	}
}

// fits says whether size bytes can be reserved, with the filler that may be needed before the end of the ring.
func (s *cacheShard) fits(size int) bool {
	at := int(s.tail % uint64(len(s.ring)))
	need := size
	if at+size > len(s.ring) {
		need += len(s.ring) - at
	}
	return s.tail+uint64(need)-s.head <= uint64(len(s.ring))
}

// reserve returns where size bytes that fit begin.
func (s *cacheShard) reserve(size int) int {
	at := int(s.tail % uint64(len(s.ring)))
	if at+size > len(s.ring) {
		s.header(at).keyLen = cacheFiller
		s.tail += uint64(len(s.ring) - at)
		at = 0
	}
	s.tail += uint64(size)
	return at
}
