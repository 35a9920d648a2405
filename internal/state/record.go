package state

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/weirstream/weir/internal/slide"
)

// The store's own records: what counters there are (catalog), how far each has counted (marker), and which keys may be
// dense (density pages). Each starts with a version byte and ends with a checksum.

const (
	recordVersion  = 1
	checksumBytes  = 4
	catalogLetter  = 'c'
	markerLetter   = 'm'
	densityLetter  = 'd'
	nameBytesMax   = 256
	recordBytesMax = 1 << 20
)

// Entry is what the catalog says of one counter.
type Entry struct {
	ID         uint32 // see CounterID
	Live       bool   // false: being rebuilt from the log
	Name       string // the counter's name
	Definition []byte // what it counts, opaque here: equal bytes count the same
	LongestMS  int64  // its longest window
	LatenessMS int64
}

// marker is how far a counter has counted.
type marker struct {
	next    int64 // offset of the first event that is not in it
	floor   int64 // H never falls below it; NoHorizon: no floor
	lost    int64 // largest ts among events that were gone before the counter could read them; NoHorizon: none
	horizon slide.Horizon
}

func metaKey(letter byte, id uint32) []byte {
	part := binary.BigEndian.AppendUint32([]byte{letter}, id)
	return AppendKey(nil, metaID, part)
}

// metaBounds returns the range of all records of one letter.
func metaBounds(letter byte) (lower, upper []byte) {
	return metaKey(letter, 0), append(metaKey(letter, ^uint32(0)), 0)
}

// metaIndex returns the number behind the letter in a key of metaKey.
func metaIndex(key []byte) (uint32, error) {
	if len(key) != len(metaKey(0, 0)) {
		return 0, fmt.Errorf("%w: record key of %d bytes", ErrCorrupt, len(key))
	}
	return binary.BigEndian.Uint32(key[len(key)-4:]), nil
}

// seal appends the checksum of record[start:].
func seal(record []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(record, crc32.Checksum(record[start:], crc32.MakeTable(crc32.Castagnoli)))
}

// unseal checks a record's checksum and version and returns what lies between them.
func unseal(record []byte) ([]byte, error) {
	if len(record) < 1+checksumBytes {
		return nil, fmt.Errorf("%w: record of %d bytes", ErrCorrupt, len(record))
	}
	body := record[:len(record)-checksumBytes]
	if got, want := binary.LittleEndian.Uint32(record[len(body):]), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)); got != want {
		return nil, fmt.Errorf("%w: record checksum: got %08x; want %08x", ErrCorrupt, got, want)
	}
	if body[0] != recordVersion {
		return nil, fmt.Errorf("%w: got record version %d; want %d", ErrUnknownFormat, body[0], recordVersion)
	}
	return body[1:], nil
}

func appendEntry(dst []byte, e *Entry) []byte {
	start := len(dst)
	dst = append(dst, recordVersion)
	dst = binary.BigEndian.AppendUint32(dst, e.ID)
	live := byte(0)
	if e.Live {
		live = 1
	}
	dst = append(dst, live)
	dst = binary.AppendVarint(dst, e.LongestMS)
	dst = binary.AppendVarint(dst, e.LatenessMS)
	dst = AppendKeyPart(dst, []byte(e.Name))
	dst = AppendKeyPart(dst, e.Definition)
	return seal(dst, start)
}

func decodeEntry(record []byte) (e Entry, err error) {
	rest, err := unseal(record)
	if err != nil {
		return e, fmt.Errorf("cannot read catalog entry: %w", err)
	}
	if len(rest) < 5 || rest[4] > 1 {
		return e, fmt.Errorf("cannot read catalog entry: %w", ErrCorrupt)
	}
	e.ID, e.Live = binary.BigEndian.Uint32(rest), rest[4] == 1
	r := fieldReader{rest: rest[5:]}
	e.LongestMS, e.LatenessMS = r.varint(), r.varint()
	e.Name = string(r.bytes())
	e.Definition = slices.Clone(r.bytes())
	if r.failed || len(r.rest) != 0 {
		return Entry{}, fmt.Errorf("cannot read catalog entry: %w", ErrCorrupt)
	}
	return e, nil
}

func appendMarker(dst []byte, m *marker) []byte {
	start := len(dst)
	dst = append(dst, recordVersion)
	dst = binary.AppendVarint(dst, m.next)
	dst = binary.AppendVarint(dst, m.floor)
	dst = binary.AppendVarint(dst, m.lost)
	dst = slide.AppendHorizon(dst, &m.horizon)
	return seal(dst, start)
}

func decodeMarker(record []byte) (m marker, err error) {
	rest, err := unseal(record)
	if err != nil {
		return m, fmt.Errorf("cannot read marker: %w", err)
	}
	r := fieldReader{rest: rest}
	m.next, m.floor, m.lost = r.varint(), r.varint(), r.varint()
	if r.failed || m.next < 0 {
		return marker{}, fmt.Errorf("cannot read marker: %w", ErrCorrupt)
	}
	var tail []byte
	if m.horizon, tail, err = slide.DecodeHorizon(r.rest); err != nil {
		return marker{}, fmt.Errorf("cannot read marker: %w", err)
	}
	if len(tail) != 0 {
		return marker{}, fmt.Errorf("cannot read marker: %w: %d bytes left", ErrCorrupt, len(tail))
	}
	return m, nil
}

// fieldReader takes fields off the front of rest; failed stays set from the first one that is not there.
type fieldReader struct {
	rest   []byte
	failed bool
}

func (r *fieldReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.failed = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *fieldReader) bytes() []byte {
	length, n := binary.Uvarint(r.rest)
	if n <= 0 || length > uint64(len(r.rest)-n) {
		r.failed = true
		return nil
	}
	field := r.rest[n : n+int(length)]
	r.rest = r.rest[n+int(length):]
	return field
}
