package slide

import (
	"encoding/binary"
	"fmt"
)

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

// NewestTS returns the largest ts in value, of a dense key the largest it ever held. ok is false where there is none.
func NewestTS(value []byte) (ts int64, ok bool, err error) {
	if !Dense(value) {
		return newestOfSet(value)
	}
	var x index
	pending, err := x.decode(value)
	if err != nil {
		return 0, false, err
	}
	ts, ok, err = newestOfSet(pending)
	if err != nil || !ok || ts < x.newest {
		ts = x.newest
	}
	return ts, err == nil, err
}

func newestOfSet(value []byte) (ts int64, ok bool, err error) {
	var s set
	if err := s.appendTo(value, NoHorizon); err != nil {
		return 0, false, err
	}
	for _, section := range [2][]Entry{s.narrow, s.wide} {
		if len(section) > 0 && (!ok || section[0].TS > ts) {
			ts, ok = section[0].TS, true
		}
	}
	return ts, ok, nil
}

// LiveAfter counts what value holds above horizon and at or below it, for a sweeper that decides whether to leave, fold
// or delete a key. Of a dense key, slices that the horizon cuts are live as a whole, and forgotten events count too.
// live == 0 means that the key may be deleted, and its slices with it (AppendSlices).
func LiveAfter(value []byte, horizon int64) (live, dead int, err error) {
	var x index
	pending := value
	if Dense(value) {
		if pending, err = x.decode(value); err != nil {
			return 0, 0, err
		}
	}
	for _, descs := range [2][]desc{x.raw, x.panes} {
		for i := range descs {
			if descs[i].max > horizon {
				live += int(descs[i].top)
			} else {
				dead += int(descs[i].top)
			}
		}
	}
	var s set
	if err := s.appendTo(pending, horizon); err != nil {
		return 0, 0, err
	}
	narrow, wide, _, err := cutSetHeader(pending)
	return live + s.len(), dead + narrow + wide - s.len(), err
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

func corruptSet(value []byte, narrow, wide int) error {
	return fmt.Errorf("%w: set of %d+%d entries does not fill its %d bytes", ErrCorrupt, narrow, wide, len(value))
}
