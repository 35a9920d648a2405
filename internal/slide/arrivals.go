package slide

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// arrivals are entries that wait to be told apart from those in the raw slices of a dense key. Folder and Answerer
// share it, so that an answer counts what a fold would have made of the same value.
type arrivals struct {
	entries    []rawEntry
	removed    []removal // raw entries that a newer copy replaces, in order of slices and entries
	conflicts  int
	duplicates int

	// seen tells most fingerprints in a slice apart from all arrivals by one bit; table finds the others by their low
	// 32 bits, open addressing, index+1 in entries.
	seen     []uint64
	seenMask uint64
	table    []int32
	shift    uint8

	found []bool // by arrival: some raw entry has its id
	gone  []bool // by arrival: a raw entry is as new or newer
	hits  []hit
	times []int64
}

// removal is a raw entry that no longer counts.
type removal struct{ slice, entry int }

// hit is a raw entry that has the id of an arrival.
type hit struct{ entry, arrival int }

func (a *arrivals) reset() {
	a.entries, a.removed = a.entries[:0], a.removed[:0]
	a.conflicts, a.duplicates = 0, 0
}

// resolve fills a with the distinct events of s, whose sections must be joined: here narrow entries meet wide ones.
// It reorders s.wide.
func (a *arrivals) resolve(s *set) {
	if len(s.narrow) > 0 && len(s.wide) > 0 {
		slices.SortFunc(s.wide, byLow)
	}
	for _, e := range s.narrow {
		if w := findLow(s.wide, e.FP); w >= 0 {
			if s.wide[w].TS == e.TS {
				a.duplicates++
			} else {
				a.conflicts++
			}
			s.wide[w].TS = max(s.wide[w].TS, e.TS)
			continue
		}
		a.entries = append(a.entries, rawEntry{ts: e.TS, fp: e.FP, narrow: true})
	}
	for _, e := range s.wide {
		a.entries = append(a.entries, rawEntry{ts: e.TS, fp: e.FP})
	}
}

// byLow orders by the low 32 bits first.
func byLow(a, b Entry) int {
	if c := cmp.Compare(uint32(a.FP), uint32(b.FP)); c != 0 {
		return c
	}
	return cmp.Compare(a.FP, b.FP)
}

// findLow returns the first entry whose low 32 bits are low, or -1.
func findLow(sorted []Entry, low uint64) int {
	if len(sorted) == 0 {
		return -1
	}
	i, ok := slices.BinarySearchFunc(sorted, uint32(low), func(e Entry, l uint32) int {
		return cmp.Compare(uint32(e.FP), l)
	})
	if !ok {
		return -1
	}
	return i
}

// match looks for every arrival in every raw slice of x that reaches beyond horizon, because a copy with another ts may
// lie anywhere. Then entries holds the arrivals that remain, with what they inherit: doubt. The others were copies no
// newer than what is stored.
func (a *arrivals) match(x *index, from SliceReader, horizon int64) error {
	if len(a.entries) == 0 {
		return nil
	}
	a.buildProbe()
	for i := range x.raw {
		d := &x.raw[i]
		if d.max <= horizon {
			continue
		}
		s, err := readRaw(from, d)
		if err != nil {
			return err
		}
		a.scan(&s)
		if len(a.hits) == 0 {
			continue
		}
		if a.times, err = s.appendTimes(a.times[:0]); err != nil {
			return err
		}
		for _, h := range a.hits {
			a.meet(h, i, s.entry(h.entry, a.times[h.entry]), horizon)
		}
	}
	a.keep(x, horizon)
	return nil
}

// meet decides between an arrival and the raw entry with its id.
func (a *arrivals) meet(h hit, slice int, raw rawEntry, horizon int64) {
	if raw.ts <= horizon {
		return // not there any more, whether or not its bytes are
	}
	e := &a.entries[h.arrival]
	a.found[h.arrival] = true
	if raw.ts == e.ts {
		a.duplicates++
	} else {
		a.conflicts++
	}
	if raw.ts >= e.ts {
		a.gone[h.arrival] = true
		return
	}
	if n := len(a.removed); n == 0 || a.removed[n-1] != (removal{slice, h.entry}) {
		a.removed = append(a.removed, removal{slice, h.entry}) // once, though several narrow arrivals may hit it
	}
	e.doubt = e.doubt || raw.doubt
	if e.narrow && !raw.narrow {
		e.fp, e.narrow = raw.fp, false
	}
}

// keep compacts entries to those that are new or newer, and doubts the new ones where x has forgotten ids.
func (a *arrivals) keep(x *index, horizon int64) {
	kept := a.entries[:0]
	for i, e := range a.entries {
		if a.gone[i] {
			continue
		}
		if !a.found[i] {
			e.doubt = x.doubts(e.ts, horizon)
		}
		kept = append(kept, e)
	}
	a.entries = kept
}

// seenBitsPerArrival makes one raw entry in 16 pass the first test at random.
const seenBitsPerArrival = 16

const (
	seenBitsMin = 1 << 10
	seenBitsMax = 1 << 19 // 64 KiB: stays in the cache while slices stream past
)

// spread mixes the low 32 bits of fingerprints for the table (2^64 / golden ratio).
const spread = 0x9e3779b97f4a7c15

func (a *arrivals) buildProbe() {
	n := len(a.entries)
	want := uint64(min(max(n*seenBitsPerArrival, seenBitsMin), seenBitsMax))
	size := 1 << bits.Len64(want-1)
	a.seenMask = uint64(size - 1)
	a.seen = zeroed(a.seen, size/64)
	slots := 1 << bits.Len(uint(2*n))
	a.shift = uint8(64 - bits.Len(uint(slots-1)))
	a.table = zeroed(a.table, slots)
	a.found, a.gone = zeroed(a.found, n), zeroed(a.gone, n)
	for i := range a.entries {
		fp := a.entries[i].fp
		b := fp & a.seenMask
		a.seen[b>>6] |= 1 << (b & 63)
		slot := a.slot(fp)
		for a.table[slot] != 0 {
			slot = (slot + 1) & (slots - 1)
		}
		a.table[slot] = int32(i + 1)
	}
}

func (a *arrivals) slot(fp uint64) int { return int(uint64(uint32(fp)) * spread >> a.shift) }

// zeroed returns s with length n, all zero.
func zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// scan sets hits to the pairs of raw entries of s and arrivals that have one id.
func (a *arrivals) scan(s *rawSlice) {
	a.hits = a.hits[:0]
	seen, mask := a.seen, a.seenMask
	for i, fps := 0, s.fps; len(fps) >= wideBytes; i, fps = i+1, fps[wideBytes:] {
		fp := binary.LittleEndian.Uint64(fps)
		if b := fp & mask; seen[b>>6]>>(b&63)&1 != 0 {
			a.probe(i, fp, bit(s.narrow, i))
		}
	}
}

func (a *arrivals) probe(entry int, fp uint64, narrow bool) {
	for slot := a.slot(fp); a.table[slot] != 0; slot = (slot + 1) & (len(a.table) - 1) {
		i := int(a.table[slot] - 1)
		if e := &a.entries[i]; sameID(fp, narrow, e.fp, e.narrow) {
			a.hits = append(a.hits, hit{entry: entry, arrival: i})
		}
	}
}
