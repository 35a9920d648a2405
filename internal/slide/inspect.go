package slide

import "encoding/binary"

// Empty says that value (nil included) holds nothing: the owner may delete the key.
func Empty(value []byte) bool { return len(value) == 0 || len(value) == 1 && value[0] == kindEmpty }

// Dense says that value is the root of a dense key: it has slices, and its operands should be wide.
func Dense(value []byte) bool { return len(value) > 0 && value[0] == kindDense }

// NeedsFold says that the owner should Fold value at its next definite position of the log: a sparse value of more
// than limits.SparseMax entries, or a dense root with too many pending arrivals. It reads headers only; a corrupt value
// needs a fold, which will say so.
func NeedsFold(value []byte, limits Limits) bool {
	limits = limits.withDefaults()
	if !Dense(value) {
		narrow, wide, _, err := cutSetHeader(value)
		return err != nil || narrow+wide > limits.SparseMax
	}
	head, pending, err := cutRoot(value)
	if err != nil {
		return true
	}
	narrow, wide, _, err := cutSetHeader(pending)
	ids, _ := binary.Uvarint(head[2:])
	return err != nil || narrow+wide >= limits.pending(int64(ids))
}

// LiveAfter counts what value holds above horizon and at or below it, for a sweeper that decides whether to leave, fold
// or delete a key. Copies that await a fold count each. Of a dense key, slices that the horizon cuts are live as a
// whole, and forgotten events count too. live == 0 means that the key may be deleted, and its slices (AppendSlices) with
// it.
func LiveAfter(value []byte, horizon int64) (live, dead int, err error) {
	if !Dense(value) {
		c, err := census(value, horizon)
		return c.live, c.entries - c.live, err
	}
	var x index
	pending, err := x.decode(value)
	if err != nil {
		return 0, 0, err
	}
	c, err := census(pending, horizon)
	if err != nil {
		return 0, 0, err
	}
	live, dead = c.live, c.entries-c.live
	for _, descs := range [2][]desc{x.raw, x.panes} {
		for i := range descs {
			if descs[i].max > horizon {
				live += int(descs[i].top)
			} else {
				dead += int(descs[i].top)
			}
		}
	}
	return live, dead, nil
}

// counted is what census finds in a set.
type counted struct {
	entries, live int // live: above the horizon
}

// census counts the entries of value, a set, without looking at fingerprints.
func census(value []byte, horizon int64) (counted, error) {
	narrow, wide, src, err := cutSetHeader(value)
	var c counted
	ok := err == nil && c.section(&src, narrow, narrowBytes, horizon) && c.section(&src, wide, wideBytes, horizon)
	switch {
	case err != nil:
		return counted{}, err
	case !ok || len(src) != 0:
		return counted{}, corruptSet(value, narrow, wide)
	}
	return c, nil
}

func (c *counted) section(src *[]byte, n, width int, horizon int64) bool {
	if n == 0 {
		return true
	}
	ts, rest, ok := cutBase(*src)
	for i := 0; ok && i < n; i++ {
		if i > 0 {
			ts, rest, ok = cutOlder(ts, rest)
		}
		if ts > horizon {
			c.live++
		}
	}
	if !ok || len(rest) < n*width {
		return false
	}
	c.entries += n
	*src = rest[n*width:]
	return true
}

// AppendSlices appends the ids of all slices of value (none where it is sparse): what has to go with an erased key.
func AppendSlices(dst []uint64, value []byte) ([]uint64, error) {
	if !Dense(value) {
		return dst, nil
	}
	var x index
	if _, err := x.decode(value); err != nil {
		return dst, err
	}
	for i := range x.raw {
		dst = append(dst, x.raw[i].id)
	}
	for i := range x.panes {
		dst = append(dst, x.panes[i].id)
	}
	return dst, nil
}

// AppendSliceID appends to dst (a key) the part that makes it the key of its slice id: 8 bytes, big endian.
func AppendSliceID(dst []byte, id uint64) []byte { return binary.BigEndian.AppendUint64(dst, id) }
