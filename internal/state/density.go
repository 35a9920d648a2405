package state

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Operands of a dense key carry fingerprints of 64 bits, of a sparse one 32: the epoch has to know which it is without
// reading the key. density is a counting filter over the hashes of dense keys. It may call a sparse key dense, which
// costs four bytes an arrival, but never the other way round. It is part of the state: the pages that changed go into
// the epoch's batch.

const (
	densitySlots     = 1 << 18
	densityPageBytes = 256
	densityPages     = densitySlots / densityPageBytes
	densitySticky    = 255 // a slot that got here has lost count and stays
)

type density struct {
	slots []uint8
	dirty []bool // per page
	pages []int  // the dirty ones
}

func newDensity() *density {
	return &density{slots: make([]uint8, densitySlots), dirty: make([]bool, densityPages)}
}

func densitySlot(hash uint64) int { return int(hash >> 8 & (densitySlots - 1)) }

func (d *density) has(hash uint64) bool { return d.slots[densitySlot(hash)] != 0 }

// change notes that the key with this hash became dense, or is dense no more.
func (d *density) change(hash uint64, wasDense, isDense bool) {
	slot := densitySlot(hash)
	if wasDense == isDense || d.slots[slot] == densitySticky {
		return
	}
	if isDense {
		d.slots[slot]++
	} else if d.slots[slot] > 0 {
		d.slots[slot]--
	}
	if page := slot / densityPageBytes; !d.dirty[page] {
		d.dirty[page] = true
		d.pages = append(d.pages, page)
	}
}

// write adds the pages that changed to the batch.
func (d *density) write(batch *pebble.Batch, scratch []byte) ([]byte, error) {
	for _, page := range d.pages {
		scratch = append(scratch[:0], recordVersion)
		scratch = append(scratch, d.slots[page*densityPageBytes:(page+1)*densityPageBytes]...)
		scratch = seal(scratch, 0)
		if err := batch.Set(metaKey(densityLetter, uint32(page)), scratch, nil); err != nil {
			return scratch, fmt.Errorf("cannot write density page %d: %w", page, err)
		}
		d.dirty[page] = false
	}
	d.pages = d.pages[:0]
	return scratch, nil
}

// load takes a stored page in.
func (d *density) load(page uint32, record []byte) error {
	body, err := unseal(record)
	if err != nil {
		return fmt.Errorf("cannot read density page %d: %w", page, err)
	}
	if page >= densityPages || len(body) != densityPageBytes {
		return fmt.Errorf("cannot read density page %d of %d bytes: %w", page, len(body), ErrCorrupt)
	}
	copy(d.slots[page*densityPageBytes:], body)
	return nil
}
