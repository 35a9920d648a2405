// Package shard says which partition a segment belongs to: Kafka's default partitioner, so that a segment lies in the
// same partition whether Weir or a Kafka producer placed it.
package shard

// seed is the constant that Kafka's Utils.murmur2 starts from.
const seed uint32 = 0x9747b28c

// Of returns the partition of segment among count partitions: toPositive(murmur2(segment)) mod count. count must be
// positive.
func Of(segment []byte, count int) int {
	return int(murmur2(segment)&0x7fffffff) % count
}

// murmur2 is MurmurHash2 (Austin Appleby, public domain) with Kafka's seed, on little-endian words.
func murmur2(data []byte) uint32 {
	const m, r = 0x5bd1e995, 24
	h := seed ^ uint32(len(data))
	for len(data) >= 4 {
		k := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h = h*m ^ k
		data = data[4:]
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(data[0])) * m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}
