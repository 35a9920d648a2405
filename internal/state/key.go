package state

import (
	"bytes"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weirstream/weir/internal/slide"
)

// KeyPartsMax bounds the parts of a key, KeyPartBytesMax the bytes of one part.
const (
	KeyPartsMax     = 16
	KeyPartBytesMax = 256
)

// KeyBytesMax bounds the length of a key of parts key parts, in bytes.
func KeyBytesMax(parts int) int { return counterIDBytes + parts*(2+KeyPartBytesMax) }

const (
	counterIDBytes = 4
	sliceIDBytes   = 8
	metaID         = 0 // what the store's own records have in place of a counter id; sequences start at 1
)

// CounterID makes the id of the sequence-th counter, whose keys have parts parts. That number is part of the id, so that
// a stored key says by itself where it ends and a slice begins, also to a compaction that runs before any counter is
// declared.
func CounterID(sequence uint32, parts int) uint32 { return sequence*KeyPartsMax + uint32(parts-1) }

// KeyParts returns the number of parts in the keys of counter id.
func KeyParts(id uint32) int { return int(id%KeyPartsMax) + 1 }

// KeySequence returns which counter an id is.
func KeySequence(id uint32) uint32 { return id / KeyPartsMax }

// AppendCounterID starts a key of counter id.
func AppendCounterID(dst []byte, id uint32) []byte { return binary.BigEndian.AppendUint32(dst, id) }

// AppendKeyPart adds one part to a key: its length, then its bytes. So no key is the beginning of another one of the
// same counter, and a key's slices sort right behind it.
func AppendKeyPart(dst, part []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(part))), part...)
}

// AppendKey makes a whole key.
func AppendKey(dst []byte, id uint32, parts ...[]byte) []byte {
	dst = AppendCounterID(dst, id)
	for _, part := range parts {
		dst = AppendKeyPart(dst, part)
	}
	return dst
}

// keySplit returns the length of a key's prefix: the counter id and the first part. Filters hold one entry per prefix.
// A key that is too short (a bound, a separator) is all prefix.
func keySplit(key []byte) int {
	if len(key) <= counterIDBytes {
		return len(key)
	}
	length, n := binary.Uvarint(key[counterIDBytes:])
	if n <= 0 || length > uint64(len(key)-counterIDBytes-n) {
		return len(key)
	}
	return counterIDBytes + n + int(length)
}

// keyID returns the counter id of a stored key.
func keyID(key []byte) (id uint32, ok bool) {
	if len(key) < counterIDBytes {
		return 0, false
	}
	return binary.BigEndian.Uint32(key), true
}

// rootLen returns how much of a stored key names the counter's key: all of it, except for slices. ok is false where key
// is not a well-formed key.
func rootLen(key []byte) (n int, ok bool) {
	if len(key) < counterIDBytes {
		return 0, false
	}
	rest := key[counterIDBytes:]
	for range KeyParts(binary.BigEndian.Uint32(key)) {
		length, w := binary.Uvarint(rest)
		if w <= 0 || length > uint64(len(rest)-w) {
			return 0, false
		}
		rest = rest[w+int(length):]
	}
	if len(rest) != 0 && len(rest) != sliceIDBytes {
		return 0, false
	}
	return len(key) - len(rest), true
}

// counterBounds returns the range of all keys of one counter.
func counterBounds(id uint32) (lower, upper []byte) {
	return AppendCounterID(nil, id), AppendCounterID(nil, id+1)
}

func appendSliceKey(dst, key []byte, id uint64) []byte {
	return slide.AppendSliceID(append(dst, key...), id)
}

// newComparer orders keys by their bytes and tells Pebble what the prefix is.
func newComparer() *pebble.Comparer {
	c := *pebble.DefaultComparer
	c.Name = "weir.counter.v1"
	c.Split = keySplit
	c.Compare = bytes.Compare
	c.Equal = bytes.Equal
	c.ComparePointSuffixes = bytes.Compare
	c.CompareRangeSuffixes = bytes.Compare
	return &c
}
