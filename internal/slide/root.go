package slide

import (
	"encoding/binary"
	"fmt"
)

// Flags of a dense root.
const (
	flagForgot    = 0x01 // ids were forgotten: forgotTS is there
	flagRootKnown = flagForgot
)

// countMax bounds every count in a root, so that sums over slices cannot overflow.
const countMax = 1 << 53

// desc describes one slice in the root, so that windows which hold the slice as a whole need not read it.
type desc struct {
	id       uint64
	min, max int64 // ts of its oldest and newest event
	n        int   // entries or panes in it
	count    int64 // events that certainly count
	top      int64 // count + doubtful ones
	level    uint8 // of panes: index in levels that all of them have reached
	dead     int   // while folding: entries at or below the horizon
}

// index is the decoded root of a dense key. Raw slices and pane slices each are in order of time and do not overlap
// among themselves (raw neighbours may share one ts). A raw slice may lie in the time of panes: sums do not mind.
type index struct {
	ids      int64  // raw entries in all slices
	newest   int64  // largest ts at the last fold: what age is relative to
	nextID   uint64 // slices are numbered; a number is never used twice
	forgot   bool   // ids with ts <= forgotTS may have been forgotten
	forgotTS int64
	raw      []desc
	panes    []desc
}

func (x *index) reset() {
	raw, panes := x.raw[:0], x.panes[:0]
	*x = index{raw: raw, panes: panes}
}

// doubtBefore is the age, relative to the newest ts, from which on a key that has forgotten ids does not trust an
// arrival whose id it does not find.
const doubtBefore = 10 * 60 * 1000

// doubts says whether an arrival at ts, above horizon, with an id that was not found may be a copy of a forgotten one.
// A copy with the same ts lies at or below forgotTS; beyond that only copies with another ts can be meant. Once all
// forgotten ids lie at or below the horizon, none can come again.
func (x *index) doubts(ts, horizon int64) bool {
	return x.forgot && x.forgotTS > horizon &&
		(ts <= x.forgotTS || ts < subSaturating(x.newest, doubtBefore))
}

// cutRoot splits a dense root into its index (everything that only Fold changes) and its pending arrivals.
func cutRoot(value []byte) (head, pending []byte, err error) {
	if len(value) < 2 || value[0] != kindDense || value[1]&^flagRootKnown != 0 {
		return nil, nil, fmt.Errorf("%w: not a dense root of a known version, %d bytes", ErrCorrupt, len(value))
	}
	rest := value[2:]
	if ids, n := binary.Uvarint(rest); n <= 0 || ids > countMax {
		return nil, nil, fmt.Errorf("%w: bad id count in a dense root", ErrCorrupt)
	} else {
		rest = rest[n:]
	}
	length, n := binary.Uvarint(rest)
	if n <= 0 || length >= uint64(len(rest)-n) {
		return nil, nil, fmt.Errorf("%w: index of %d bytes in a root of %d", ErrCorrupt, length, len(value))
	}
	end := len(value) - len(rest) + n + int(length)
	return value[:end], value[end:], nil
}

// decode reads a dense root into x and returns its pending arrivals, still encoded.
func (x *index) decode(value []byte) (pending []byte, err error) {
	x.reset()
	head, pending, err := cutRoot(value)
	if err != nil {
		return nil, err
	}
	ids, n := binary.Uvarint(head[2:])
	_, m := binary.Uvarint(head[2+n:])
	x.ids, x.forgot = int64(ids), head[1]&flagForgot != 0
	r := reader{src: head[2+n+m:]}
	x.newest = r.varint()
	x.nextID = r.uvarint()
	if x.forgot {
		x.forgotTS = r.varint()
	}
	x.raw = r.rawDescs(x.raw)
	x.panes = r.paneDescs(x.panes)
	sum := x.sumIDs()
	r.bad = r.bad || x.nextID == 0
	if r.bad || len(r.src) != 0 || sum != x.ids {
		return nil, fmt.Errorf("%w: index of a dense root: %d raw slices, %d pane slices, %d bytes left, %d of %d ids",
			ErrCorrupt, len(x.raw), len(x.panes), len(r.src), sum, x.ids)
	}
	return pending, nil
}

// sumIDs counts the raw entries of all slices.
func (x *index) sumIDs() (sum int64) {
	for i := range x.raw {
		sum += int64(x.raw[i].n)
	}
	return sum
}

// appendRoot encodes x with nothing pending; scratch holds the index while its length is not known.
func (x *index) appendRoot(dst, scratch []byte) (root, scratchOut []byte) {
	b := binary.AppendVarint(scratch[:0], x.newest)
	b = binary.AppendUvarint(b, x.nextID)
	flags := byte(0)
	if x.forgot {
		flags |= flagForgot
		b = binary.AppendVarint(b, x.forgotTS)
	}
	b = binary.AppendUvarint(b, uint64(len(x.raw)))
	prev := int64(0)
	for i := range x.raw {
		d := &x.raw[i]
		b = appendSpan(b, d, i == 0, prev)
		b = binary.AppendUvarint(b, uint64(d.top-d.count))
		prev = d.max
	}
	b = binary.AppendUvarint(b, uint64(len(x.panes)))
	for i := range x.panes {
		d := &x.panes[i]
		b = appendSpan(b, d, i == 0, prev)
		b = binary.AppendUvarint(b, uint64(d.count))
		b = binary.AppendUvarint(b, uint64(d.top-d.count))
		b = append(b, d.level)
		prev = d.max
	}
	dst = append(dst, kindDense, flags)
	dst = binary.AppendUvarint(dst, uint64(x.ids))
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(append(dst, b...), kindEmpty), b
}

// appendSpan writes what both sorts of descriptors share: where the slice is and how much is in it.
func appendSpan(dst []byte, d *desc, first bool, prev int64) []byte {
	dst = binary.AppendUvarint(dst, d.id)
	if first {
		dst = binary.AppendVarint(dst, d.min)
	} else {
		dst = binary.AppendUvarint(dst, uint64(d.min)-uint64(prev))
	}
	dst = binary.AppendUvarint(dst, uint64(d.max)-uint64(d.min))
	return binary.AppendUvarint(dst, uint64(d.n))
}

// reader cuts numbers off src. After the first failure bad is set and everything reads as 0.
type reader struct {
	src []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	u, n := binary.Uvarint(r.src)
	if n <= 0 || r.bad {
		r.bad = true
		return 0
	}
	r.src = r.src[n:]
	return u
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) byte() byte {
	if len(r.src) == 0 || r.bad {
		r.bad = true
		return 0
	}
	b := r.src[0]
	r.src = r.src[1:]
	return b
}

// count reads a number of things of which countMax is the most.
func (r *reader) count() int64 {
	u := r.uvarint()
	if u > countMax {
		r.bad = true
		return 0
	}
	return int64(u)
}

// newer reads a ts that lies at or above prev.
func (r *reader) newer(prev int64) int64 {
	ts, tail, ok := cutNewer(prev, r.src)
	if !ok || r.bad {
		r.bad = true
		return prev
	}
	r.src = tail
	return ts
}

// length reads how many things of at least size bytes follow.
func (r *reader) length(size int) int {
	u := r.uvarint()
	if u > uint64(len(r.src)/size) {
		r.bad = true
		return 0
	}
	return int(u)
}

// Bytes that a descriptor has at least: id, min, span, n and one or three more.
const (
	rawDescBytesMin  = 5
	paneDescBytesMin = 7
)

func (r *reader) span(first bool, prev int64) (d desc) {
	d.id = r.uvarint()
	if first {
		d.min = r.varint()
	} else {
		d.min = r.newer(prev)
	}
	d.max = r.newer(d.min)
	d.n = int(r.count())
	if d.n == 0 {
		r.bad = true
	}
	return d
}

func (r *reader) rawDescs(dst []desc) []desc {
	prev := int64(0)
	for i := range r.length(rawDescBytesMin) {
		d := r.span(i == 0, prev)
		doubtful := r.count()
		d.top, d.count = int64(d.n), int64(d.n)-doubtful
		if r.bad = r.bad || d.count < 0; r.bad {
			break
		}
		dst, prev = append(dst, d), d.max
	}
	return dst
}

func (r *reader) paneDescs(dst []desc) []desc {
	prev := int64(0)
	for i := range r.length(paneDescBytesMin) {
		d := r.span(i == 0, prev)
		d.count = r.count()
		d.top = d.count + r.count()
		d.level = r.byte()
		if r.bad = r.bad || int(d.level) >= len(levels); r.bad {
			break
		}
		dst, prev = append(dst, d), d.max
	}
	return dst
}
