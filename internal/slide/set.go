package slide

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// First bytes: form and version of a value or slice in one. What is not listed is refused, which leaves room for
// weights and later versions. docs/format/counter-value.md draws all of them.
const (
	kindEmpty  = 0x00 // nothing
	kindNarrow = 0x40 // entries with fingerprints of 32 bits; the low 6 bits are their count, 0: it follows
	kindWide   = 0x80 // entries with fingerprints of 64 bits
	kindMixed  = 0x81 // both
	kindDense  = 0xc0 // root of a dense key
	kindRaw    = 0xd0 // slice of a dense key: entries
	kindPanes  = 0xd1 // slice of a dense key: panes
)

const (
	narrowCountMask = 0x3f
	narrowBytes     = 4
	wideBytes       = 8
)

// setEpoch is the instant (2010-01-01T00:00Z, ms) from which the newest ts of a set is counted, in 5 bytes that reach
// to 2044. Anything else takes 9.
const (
	setEpoch     int64 = 1262304000000
	baseEscape         = 0xff
	baseBytesMin       = 5
	baseShortMax       = uint64(baseEscape)<<32 - 1
)

// set is the decoded form of a sparse value and of a root's pending arrivals: a product of two join semilattices.
// Narrow and wide entries never touch in a merge, because "equal in the low 32 bits" is no equivalence once both
// widths meet, and a merge that used it would depend on its order. resolve lets them meet, where the result is no
// longer merged.
type set struct {
	narrow []Entry // FP < 1<<32
	wide   []Entry
}

func (s *set) reset() { s.narrow, s.wide = s.narrow[:0], s.wide[:0] }

// newestFirst is the order in which a set is stored.
func newestFirst(a, b Entry) int {
	if c := cmp.Compare(b.TS, a.TS); c != 0 {
		return c
	}
	return cmp.Compare(a.FP, b.FP)
}

// byFingerprint brings copies together, the newest first.
func byFingerprint(a, b Entry) int {
	if c := cmp.Compare(a.FP, b.FP); c != 0 {
		return c
	}
	return cmp.Compare(b.TS, a.TS)
}

// appendSet encodes s, whose sections must be joined; it sorts them.
func appendSet(dst []byte, s *set) []byte {
	n, w := len(s.narrow), len(s.wide)
	switch {
	case n+w == 0:
		return append(dst, kindEmpty)
	case w == 0 && n <= narrowCountMask:
		dst = append(dst, kindNarrow|byte(n))
	case w == 0:
		dst = binary.AppendUvarint(append(dst, kindNarrow), uint64(n))
	case n == 0:
		dst = binary.AppendUvarint(append(dst, kindWide), uint64(w))
	default:
		dst = binary.AppendUvarint(append(dst, kindMixed), uint64(n))
		dst = binary.AppendUvarint(dst, uint64(w))
	}
	return appendSection(appendSection(dst, s.narrow, narrowBytes), s.wide, wideBytes)
}

func appendSection(dst []byte, entries []Entry, width int) []byte {
	if len(entries) == 0 {
		return dst
	}
	slices.SortFunc(entries, newestFirst)
	dst = appendBase(dst, entries[0].TS)
	for i := 1; i < len(entries); i++ {
		dst = binary.AppendUvarint(dst, uint64(entries[i-1].TS)-uint64(entries[i].TS))
	}
	for _, e := range entries {
		if width == narrowBytes {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(e.FP))
		} else {
			dst = binary.LittleEndian.AppendUint64(dst, e.FP)
		}
	}
	return dst
}

func appendBase(dst []byte, ts int64) []byte {
	if u := uint64(ts) - uint64(setEpoch); u <= baseShortMax {
		return append(dst, byte(u>>32), byte(u>>24), byte(u>>16), byte(u>>8), byte(u))
	}
	return binary.BigEndian.AppendUint64(append(dst, baseEscape), uint64(ts))
}

func cutBase(src []byte) (ts int64, tail []byte, ok bool) {
	if len(src) < baseBytesMin {
		return 0, nil, false
	}
	if src[0] != baseEscape {
		u := uint64(src[0])<<32 | uint64(binary.BigEndian.Uint32(src[1:]))
		return setEpoch + int64(u), src[baseBytesMin:], true
	}
	if len(src) < 1+8 {
		return 0, nil, false
	}
	return int64(binary.BigEndian.Uint64(src[1:])), src[1+8:], true
}

// cutSetHeader reads the form of a set and the sizes of its sections, which it checks against the bytes there are.
func cutSetHeader(src []byte) (narrow, wide int, tail []byte, err error) {
	if len(src) == 0 {
		return 0, 0, nil, nil
	}
	kind, tail := src[0], src[1:]
	ok := true
	switch {
	case kind == kindEmpty:
	case kind > kindNarrow && kind <= kindNarrow|narrowCountMask:
		narrow = int(kind & narrowCountMask)
	case kind == kindNarrow:
		narrow, tail, ok = cutCount(tail, narrowBytes)
	case kind == kindWide:
		wide, tail, ok = cutCount(tail, wideBytes)
	case kind == kindMixed:
		if narrow, tail, ok = cutCount(tail, narrowBytes); ok {
			wide, tail, ok = cutCount(tail, wideBytes)
		}
	default:
		return 0, 0, nil, fmt.Errorf("%w: unknown form 0x%02x of a set", ErrCorrupt, kind)
	}
	if !ok {
		return 0, 0, nil, fmt.Errorf("%w: bad entry count in %d bytes", ErrCorrupt, len(src))
	}
	return narrow, wide, tail, nil
}

// cutCount reads a positive count of things of at least size bytes each.
func cutCount(src []byte, size int) (count int, tail []byte, ok bool) {
	u, n := binary.Uvarint(src)
	if n <= 0 || u == 0 || u > uint64(len(src)-n)/uint64(size) {
		return 0, nil, false
	}
	return int(u), src[n:], true
}

// appendTo decodes value (a set) onto s, without entries <= horizon.
func (s *set) appendTo(value []byte, horizon int64) error {
	narrow, wide, tail, err := cutSetHeader(value)
	if err != nil {
		return err
	}
	ok := true
	if s.narrow, tail, ok = cutSection(s.narrow, tail, narrow, narrowBytes, horizon); ok {
		s.wide, tail, ok = cutSection(s.wide, tail, wide, wideBytes, horizon)
	}
	if !ok || len(tail) != 0 {
		return corruptSet(value, narrow, wide)
	}
	return nil
}

func corruptSet(value []byte, narrow, wide int) error {
	return fmt.Errorf("%w: set of %d+%d entries does not fill its %d bytes", ErrCorrupt, narrow, wide, len(value))
}

// cutSection decodes n entries. The fingerprints follow all deltas, so a first pass finds where they start.
func cutSection(dst []Entry, src []byte, n, width int, horizon int64) (out []Entry, tail []byte, ok bool) {
	if n == 0 {
		return dst, src, true
	}
	ts, src, ok := cutBase(src)
	if !ok || len(src) < n-1+n*width {
		return dst, nil, false
	}
	start := len(dst)
	dst = append(dst, Entry{TS: ts})
	for i := 1; i < n; i++ {
		if ts, src, ok = cutOlder(ts, src); !ok {
			return dst[:start], nil, false
		}
		dst = append(dst, Entry{TS: ts})
	}
	if len(src) < n*width {
		return dst[:start], nil, false
	}
	kept := start
	for i := start; i < len(dst); i++ {
		if dst[i].TS <= horizon {
			break // newest first: the rest is not above it either
		}
		if width == narrowBytes {
			dst[i].FP = uint64(binary.LittleEndian.Uint32(src[(i-start)*narrowBytes:]))
		} else {
			dst[i].FP = binary.LittleEndian.Uint64(src[(i-start)*wideBytes:])
		}
		kept++
	}
	return dst[:kept], src[n*width:], true
}

// cutOlder reads the distance from ts down to the next older one.
func cutOlder(ts int64, src []byte) (older int64, tail []byte, ok bool) {
	var d uint64
	if len(src) > 0 && src[0] < 0x80 {
		d, src = uint64(src[0]), src[1:]
	} else {
		u, n := binary.Uvarint(src)
		if n <= 0 {
			return 0, nil, false
		}
		d, src = u, src[n:]
	}
	if d > uint64(ts)-1<<63 { // the distance from ts to math.MinInt64
		return 0, nil, false
	}
	return ts - int64(d), src, true
}

// cutNewer reads the distance from ts up to the next newer one.
func cutNewer(ts int64, src []byte) (newer int64, tail []byte, ok bool) {
	var d uint64
	if len(src) > 0 && src[0] < 0x80 {
		d, src = uint64(src[0]), src[1:]
	} else {
		u, n := binary.Uvarint(src)
		if n <= 0 {
			return 0, nil, false
		}
		d, src = u, src[n:]
	}
	if d > uint64(math.MaxInt64)-uint64(ts) {
		return 0, nil, false
	}
	return ts + int64(d), src, true
}

// addSaturating returns a+b for b >= 0, at most math.MaxInt64.
func addSaturating(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

// subSaturating returns a-b for b >= 0, at least math.MinInt64.
func subSaturating(a, b int64) int64 {
	if diff := a - b; diff <= a {
		return diff
	}
	return math.MinInt64
}
