package slide

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// Flags of a raw slice: which bitmaps it has.
const (
	flagNarrow   = 0x01
	flagDoubt    = 0x02
	flagRawKnown = flagNarrow | flagDoubt
)

// rawEntry is one event of a dense key.
type rawEntry struct {
	ts     int64
	fp     uint64
	narrow bool // fp has its low 32 bits only
	doubt  bool // may be a copy of a forgotten event: raises Max, not Count
}

func (e *rawEntry) counts() int64 {
	if e.doubt {
		return 0
	}
	return 1
}

// sameID says whether two fingerprints may belong to one event: 32 bits decide where one side has no more.
func sameID(a uint64, aNarrow bool, b uint64, bNarrow bool) bool {
	return a == b || (aNarrow || bNarrow) && uint32(a) == uint32(b)
}

func byTime(a, b rawEntry) int {
	if c := cmp.Compare(a.ts, b.ts); c != 0 {
		return c
	}
	return cmp.Compare(a.fp, b.fp)
}

// rawSlice is a parsed raw slice. It aliases the slice's bytes. The fingerprints stand last in fixed width, so that a
// search for ids runs over them without decoding anything else.
type rawSlice struct {
	n      int
	times  []byte // oldest ts, then distances
	narrow []byte // bitmap or nil
	doubt  []byte // bitmap or nil
	fps    []byte
}

// appendRaw encodes entries, which must be in order of time and not empty.
func appendRaw(dst []byte, entries []rawEntry) []byte {
	flags := byte(0)
	for i := range entries {
		if entries[i].narrow {
			flags |= flagNarrow
		}
		if entries[i].doubt {
			flags |= flagDoubt
		}
	}
	dst = binary.AppendUvarint(append(dst, kindRaw, flags), uint64(len(entries)))
	dst = binary.AppendVarint(dst, entries[0].ts)
	for i := 1; i < len(entries); i++ {
		dst = binary.AppendUvarint(dst, uint64(entries[i].ts)-uint64(entries[i-1].ts))
	}
	if flags&flagNarrow != 0 {
		dst = appendBitmap(dst, entries, func(e *rawEntry) bool { return e.narrow })
	}
	if flags&flagDoubt != 0 {
		dst = appendBitmap(dst, entries, func(e *rawEntry) bool { return e.doubt })
	}
	for i := range entries {
		dst = binary.LittleEndian.AppendUint64(dst, entries[i].fp)
	}
	return dst
}

func appendBitmap(dst []byte, entries []rawEntry, is func(*rawEntry) bool) []byte {
	for i := 0; i < len(entries); i += 8 {
		b := byte(0)
		for j := i; j < min(i+8, len(entries)); j++ {
			if is(&entries[j]) {
				b |= 1 << (j - i)
			}
		}
		dst = append(dst, b)
	}
	return dst
}

func bit(bitmap []byte, i int) bool { return bitmap != nil && bitmap[i>>3]>>(i&7)&1 != 0 }

// parseRaw splits a raw slice into its columns and checks that they fit.
func parseRaw(value []byte) (s rawSlice, err error) {
	if len(value) < 2 || value[0] != kindRaw || value[1]&^flagRawKnown != 0 {
		return s, fmt.Errorf("%w: not a raw slice of a known version, %d bytes", ErrCorrupt, len(value))
	}
	n, rest, ok := cutCount(value[2:], wideBytes+1)
	if !ok {
		return s, fmt.Errorf("%w: bad entry count in a raw slice of %d bytes", ErrCorrupt, len(value))
	}
	bitmap := (n + 7) / 8
	s.n = n
	s.fps, rest = cutTail(rest, n*wideBytes)
	if value[1]&flagDoubt != 0 && len(rest) >= bitmap {
		s.doubt, rest = cutTail(rest, bitmap)
	}
	if value[1]&flagNarrow != 0 && len(rest) >= bitmap {
		s.narrow, rest = cutTail(rest, bitmap)
	}
	if len(rest) < n || (s.doubt != nil) != (value[1]&flagDoubt != 0) || (s.narrow != nil) != (value[1]&flagNarrow != 0) {
		return s, fmt.Errorf("%w: raw slice of %d entries in %d bytes", ErrCorrupt, n, len(value))
	}
	s.times = rest
	return s, nil
}

// cutTail splits the last n bytes off. len(src) must be at least n.
func cutTail(src []byte, n int) (tail, rest []byte) {
	return src[len(src)-n:], src[:len(src)-n]
}

// appendTimes decodes the ts of all entries, oldest first.
func (s *rawSlice) appendTimes(dst []int64) ([]int64, error) {
	ts, n := binary.Varint(s.times)
	if n <= 0 {
		return dst, fmt.Errorf("%w: bad oldest ts in a raw slice", ErrCorrupt)
	}
	dst = append(slices.Grow(dst, s.n), ts)
	src, ok := s.times[n:], true
	for i := 1; i < s.n; i++ {
		if ts, src, ok = cutNewer(ts, src); !ok {
			return dst, fmt.Errorf("%w: bad distance %d of %d in a raw slice", ErrCorrupt, i, s.n)
		}
		dst = append(dst, ts)
	}
	if len(src) != 0 {
		return dst, fmt.Errorf("%w: %d bytes too many in a raw slice of %d entries", ErrCorrupt, len(src), s.n)
	}
	return dst, nil
}

func (s *rawSlice) entry(i int, ts int64) rawEntry {
	return rawEntry{
		ts:     ts,
		fp:     binary.LittleEndian.Uint64(s.fps[i*wideBytes:]),
		narrow: bit(s.narrow, i),
		doubt:  bit(s.doubt, i),
	}
}

// readRaw reads the raw slice that d describes.
func readRaw(from SliceReader, d *desc) (s rawSlice, err error) {
	value, err := readSlice(from, d)
	if err != nil {
		return s, err
	}
	if s, err = parseRaw(value); err != nil {
		return s, err
	}
	if s.n != d.n {
		return s, fmt.Errorf("%w: slice %d holds %d entries; want %d as in the root", ErrCorrupt, d.id, s.n, d.n)
	}
	return s, nil
}

func readSlice(from SliceReader, d *desc) ([]byte, error) {
	if from == nil {
		return nil, fmt.Errorf("%w: cannot read slice %d: no reader", ErrSliceMissing, d.id)
	}
	value, err := from.ReadSlice(d.id)
	if err != nil {
		return nil, fmt.Errorf("cannot read slice %d of %d: %w", d.id, d.n, err)
	}
	return value, nil
}
