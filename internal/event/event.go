// Package event is the immutable record that Weir stores and counts, and its flat binary form.
//
// An event is encoded once, when it is parsed, and from then on only copied: into the frame that the log
// appends, the ring, the warm tier and out to readers. So the record carries absolute values and needs no
// rewriting when it is batched with others. docs/format/event.md draws it.
//
// Segment and id stand next to each other in the record, because together they are the event's identity: one
// contiguous region to hash.
package event

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"
)

// IDBytesMax bounds an event id, in bytes. The check is made where events come in.
const IDBytesMax = 128

// ErrCorrupt says that bytes which should hold a record do not. It wraps the detail.
var ErrCorrupt = errors.New("corrupt event record")

// DataKind says what the payload of an event is.
type DataKind uint8

const (
	DataNone   DataKind = iota // no payload
	DataJSON                   // one valid JSON value, as it was sent
	DataBinary                 // any bytes; CloudEvents shows them as data_base64
)

const flagKindMask = 0x03

// Event is a view of one record. Every slice aliases the buffer that the record was decoded from (or, while it is
// being built, the request): keep none of them longer than that buffer.
type Event struct {
	Segment []byte   // what the event is routed by and kept together with
	ID      []byte   // the producer's id, opaque
	Type    []byte   // CloudEvents type
	Source  []byte   // CloudEvents source; may be empty
	Attrs   Attrs    // every other CloudEvents attribute, extensions included
	Data    []byte   // payload
	Kind    DataKind // of Data
	Time    int64    // source_ts, ms since the epoch, UTC
	Arrival int64    // when Weir took it, ms since the epoch, UTC

	identity []byte
}

// Append encodes e at the end of dst. Its length and order are those of docs/format/event.md.
func Append(dst []byte, e *Event) []byte {
	lag := e.Arrival - e.Time // may wrap; Decode adds with the same wrap
	body := 1 + varintLen(e.Time) + varintLen(lag) + bytesLen(e.Segment) + bytesLen(e.ID) + bytesLen(e.Type) +
		bytesLen(e.Source) + bytesLen(e.Attrs) + len(e.Data)
	dst = binary.AppendUvarint(dst, uint64(body))
	dst = append(dst, byte(e.Kind)&flagKindMask)
	dst = binary.AppendVarint(dst, e.Time)
	dst = binary.AppendVarint(dst, lag)
	dst = appendBytes(dst, e.Segment)
	dst = appendBytes(dst, e.ID)
	dst = appendBytes(dst, e.Type)
	dst = appendBytes(dst, e.Source)
	dst = appendBytes(dst, e.Attrs)
	return append(dst, e.Data...)
}

// Decode reads the record at the head of src into e and returns what follows it. The error wraps ErrCorrupt.
func (e *Event) Decode(src []byte) (tail []byte, err error) {
	length, n := binary.Uvarint(src)
	if n <= 0 || length > uint64(len(src)-n) {
		return nil, fmt.Errorf("%w: record length %d, %d bytes left", ErrCorrupt, length, len(src))
	}
	body, tail := src[n:n+int(length)], src[n+int(length):]
	if len(body) == 0 || body[0]&^flagKindMask != 0 || body[0]&flagKindMask > byte(DataBinary) {
		return nil, fmt.Errorf("%w: unknown flags in a body of %d bytes", ErrCorrupt, len(body))
	}
	e.Kind = DataKind(body[0] & flagKindMask)
	rest := body[1:]
	var lag int64
	if e.Time, n = binary.Varint(rest); n <= 0 {
		return nil, fmt.Errorf("%w: bad time", ErrCorrupt)
	}
	rest = rest[n:]
	if lag, n = binary.Varint(rest); n <= 0 {
		return nil, fmt.Errorf("%w: bad arrival", ErrCorrupt)
	}
	rest = rest[n:]
	e.Arrival = e.Time + lag
	identity := rest
	ok := true
	e.Segment, rest, ok = cutBytes(rest, ok)
	e.ID, rest, ok = cutBytes(rest, ok)
	e.identity = identity[:len(identity)-len(rest)]
	e.Type, rest, ok = cutBytes(rest, ok)
	e.Source, rest, ok = cutBytes(rest, ok)
	e.Attrs, rest, ok = cutBytes(rest, ok)
	if !ok {
		return nil, fmt.Errorf("%w: a field is longer than its record", ErrCorrupt)
	}
	e.Data = rest
	return tail, nil
}

// Hash is the 128-bit hash of an event's identity (segment, id): XXH3-128 of the two, each behind its length as a
// varint. It is stable: Lo is the fingerprint that counters store.
type Hash struct{ Hi, Lo uint64 }

// Hash returns the hash of a decoded event's identity.
func (e *Event) Hash() Hash { return hashIdentity(e.identity) }

// HashOf returns the hash of (segment, id); scratch is grown and returned for the next call.
func HashOf(scratch, segment, id []byte) (Hash, []byte) {
	scratch = appendBytes(appendBytes(scratch[:0], segment), id)
	return hashIdentity(scratch), scratch
}

func hashIdentity(identity []byte) Hash {
	h := xxh3.Hash128(identity)
	return Hash{Hi: h.Hi, Lo: h.Lo}
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// cutBytes splits a length-prefixed field off src; ok false on the way in stays false.
func cutBytes(src []byte, ok bool) (field, tail []byte, okOut bool) {
	length, n := binary.Uvarint(src)
	if !ok || n <= 0 || length > uint64(len(src)-n) {
		return nil, nil, false
	}
	end := n + int(length)
	return src[n:end:end], src[end:], true
}

func bytesLen(b []byte) int { return uvarintLen(uint64(len(b))) + len(b) }

func varintLen(v int64) int { return uvarintLen(uint64(v)<<1 ^ uint64(v>>63)) }

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}
