package slide

import (
	"math/bits"
	"slices"
)

// joinSmall is the number of entries up to which comparing all pairs is cheapest.
const joinSmall = 16

// join leaves one entry per fingerprint, with the largest ts, in no order that matters, and counts what it took away.
// For many entries of which a buffer may be kept, joiner is faster.
func join(entries []Entry) (joined []Entry, conflicts, duplicates int) {
	if len(entries) <= joinSmall {
		return joinPairs(entries)
	}
	slices.SortFunc(entries, byFingerprint)
	joined = entries[:1]
	for _, e := range entries[1:] {
		switch last := joined[len(joined)-1]; {
		case e.FP != last.FP:
			joined = append(joined, e)
		case e.TS != last.TS:
			conflicts++
		default:
			duplicates++
		}
	}
	return joined, conflicts, duplicates
}

func joinPairs(entries []Entry) (joined []Entry, conflicts, duplicates int) {
	joined = entries[:0]
next:
	for _, e := range entries {
		for i := range joined {
			if joined[i].FP != e.FP {
				continue
			}
			if joined[i].TS == e.TS {
				duplicates++
			} else {
				conflicts++
				joined[i].TS = max(joined[i].TS, e.TS)
			}
			continue next
		}
		joined = append(joined, e)
	}
	return joined, conflicts, duplicates
}

// joiner joins and sorts large sets in buffers that it keeps: the pending arrivals of a hot key meet in every read.
type joiner struct {
	table []int32 // open addressing, index+1 of the entry with that fingerprint
	spare []Entry
	runs  []int
}

// join is the function of that name, and keeps the order of what stays, but for raised ts.
func (j *joiner) join(entries []Entry) (joined []Entry, conflicts, duplicates int) {
	if len(entries) <= joinSmall {
		return joinPairs(entries)
	}
	slots := 1 << bits.Len(uint(2*len(entries)))
	shift := 64 - bits.Len(uint(slots-1))
	j.table = zeroed(j.table, slots)
	joined = entries[:0]
	for _, e := range entries {
		slot := int(e.FP * spread >> shift)
		for j.table[slot] != 0 && joined[j.table[slot]-1].FP != e.FP {
			slot = (slot + 1) & (slots - 1)
		}
		if j.table[slot] == 0 {
			joined = append(joined, e)
			j.table[slot] = int32(len(joined))
			continue
		}
		old := &joined[j.table[slot]-1]
		if old.TS == e.TS {
			duplicates++
		} else {
			conflicts++
			old.TS = max(old.TS, e.TS)
		}
	}
	return joined, conflicts, duplicates
}

// sort brings entries into the order of newestFirst by merging the runs that are there: a join of values has a few
// long ones.
func (j *joiner) sort(entries []Entry) {
	if len(entries) <= joinSmall {
		slices.SortFunc(entries, newestFirst)
		return
	}
	runs := j.runs[:0] // where each run ends
	for i := 1; i < len(entries); i++ {
		if newestFirst(entries[i-1], entries[i]) > 0 {
			runs = append(runs, i)
		}
	}
	runs = append(runs, len(entries))
	j.spare = slices.Grow(j.spare[:0], len(entries))[:len(entries)]
	from, to := entries, j.spare
	for len(runs) > 1 {
		kept, start := runs[:0], 0
		for i := 0; i < len(runs); i += 2 {
			middle, end := runs[i], runs[min(i+1, len(runs)-1)]
			mergeRuns(to[start:end], from[start:middle], from[middle:end])
			kept, start = append(kept, end), end
		}
		runs, from, to = kept, to, from
	}
	if &from[0] != &entries[0] {
		copy(entries, from)
	}
	j.runs = runs
}

func mergeRuns(dst, a, b []Entry) {
	for i := range dst {
		if len(b) == 0 || len(a) > 0 && newestFirst(a[0], b[0]) <= 0 {
			dst[i], a = a[0], a[1:]
		} else {
			dst[i], b = b[0], b[1:]
		}
	}
}
