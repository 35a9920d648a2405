package slide

import (
	"encoding/binary"
	"fmt"
	"math"
)

// level is a size of panes and the age from which on it is used.
type level struct{ width, age int64 }

const (
	second = int64(1000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// levels lists the sizes of panes; each is a multiple of the finer one, so that panes only ever join. The last one
// is for everything older.
var levels = [...]level{{second, 0}, {minute, hour}, {5 * minute, day}, {15 * minute, 7 * day}}

// levelOf returns the coarsest level whose pane around ts lies as a whole at or beyond that level's age, seen from
// newest. All ts of one pane get the same answer, now and (newest never falls) later: panes never split.
func levelOf(ts, newest int64) uint8 {
	for l := len(levels) - 1; l > 0; l-- {
		if paneEnd(ts, levels[l].width) <= subSaturating(newest, levels[l].age) {
			return uint8(l)
		}
	}
	return 0
}

// paneEnd returns the first instant behind the pane of ts, saturating.
func paneEnd(ts, width int64) int64 {
	n := floorDiv(ts, width)
	if n >= math.MaxInt64/width {
		return math.MaxInt64
	}
	return (n + 1) * width
}

// floorDiv rounds down, also below zero: panes begin at multiples of their width on both sides of 1970.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// pane is a number of events whose ids are forgotten, and the ts of the oldest and newest of them: a window edge that
// does not fall between the two cuts nothing.
type pane struct {
	min, max   int64
	count, top int64 // top: count + doubtful ones
}

// samePane says whether the events of a and b, a before b, belong into one pane as seen from newest.
func samePane(a, b *pane, newest int64) bool {
	l := levelOf(a.min, newest)
	width := levels[l].width
	return levelOf(b.min, newest) == l && floorDiv(a.min, width) == floorDiv(b.min, width)
}

// joinPanes merges two lists in order of time into dst, drops what lies at or below horizon, and makes one pane of
// those that belong together.
func joinPanes(dst, a, b []pane, newest, horizon int64) []pane {
	start := len(dst)
	for len(a) > 0 || len(b) > 0 {
		var p pane
		if len(b) == 0 || len(a) > 0 && a[0].min <= b[0].min {
			p, a = a[0], a[1:]
		} else {
			p, b = b[0], b[1:]
		}
		if p.max <= horizon {
			continue
		}
		if len(dst) > start {
			last := &dst[len(dst)-1]
			if p.min <= last.max || samePane(last, &p, newest) {
				last.max = max(last.max, p.max)
				last.count += p.count
				last.top += p.top
				continue
			}
		}
		dst = append(dst, p)
	}
	return dst
}

// paneBytesMin is the least that one pane takes: distance, span, count and doubtful ones.
const paneBytesMin = 4

// appendPanes encodes panes, which must be in order of time, apart from each other and not empty.
func appendPanes(dst []byte, panes []pane) []byte {
	dst = binary.AppendUvarint(append(dst, kindPanes, 0), uint64(len(panes)))
	prev := int64(0)
	for i := range panes {
		p := &panes[i]
		if i == 0 {
			dst = binary.AppendVarint(dst, p.min)
		} else {
			dst = binary.AppendUvarint(dst, uint64(p.min)-uint64(prev))
		}
		dst = binary.AppendUvarint(dst, uint64(p.max)-uint64(p.min))
		dst = binary.AppendUvarint(dst, uint64(p.count))
		dst = binary.AppendUvarint(dst, uint64(p.top-p.count))
		prev = p.max
	}
	return dst
}

// decodePanes appends the panes of a pane slice to dst.
func decodePanes(dst []pane, value []byte) ([]pane, error) {
	if len(value) < 2 || value[0] != kindPanes || value[1] != 0 {
		return dst, fmt.Errorf("%w: not a pane slice of a known version, %d bytes", ErrCorrupt, len(value))
	}
	n, rest, ok := cutCount(value[2:], paneBytesMin)
	if !ok {
		return dst, fmt.Errorf("%w: bad pane count in %d bytes", ErrCorrupt, len(value))
	}
	r := reader{src: rest}
	prev := int64(0)
	for i := range n {
		var p pane
		if i == 0 {
			p.min = r.varint()
		} else {
			p.min = r.newer(prev)
		}
		p.max = r.newer(p.min)
		p.count = r.count()
		p.top = p.count + r.count()
		dst, prev = append(dst, p), p.max
	}
	if r.bad || len(r.src) != 0 {
		return dst, fmt.Errorf("%w: %d panes in %d bytes", ErrCorrupt, n, len(value))
	}
	return dst, nil
}

// readPanes appends the panes of the slice that d describes to dst.
func readPanes(dst []pane, from SliceReader, d *desc) ([]pane, error) {
	value, err := readSlice(from, d)
	if err != nil {
		return dst, err
	}
	n := len(dst)
	if dst, err = decodePanes(dst, value); err != nil {
		return dst, err
	}
	if len(dst)-n != d.n {
		return dst, fmt.Errorf("%w: slice %d holds %d panes; want %d as in the root", ErrCorrupt, d.id, len(dst)-n, d.n)
	}
	return dst, nil
}
