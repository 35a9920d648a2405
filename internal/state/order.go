package state

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// orderChunkBytes is how much of a key one comparison looks at.
const orderChunkBytes = 8

// orderItem is one key of a table while it is being sorted: its index and the eight bytes that count now.
type orderItem struct {
	chunk uint64
	index uint32
}

// order sorts a table's keys by their bytes: eight at a time, and where they tie the next eight. Keys share long
// beginnings (the counter, the names of users), so comparing whole keys would spend most of its time on bytes that were
// compared before. It keeps its memory.
type order struct{ items []orderItem }

// sort returns the items of t in the order of their keys, valid until the next call.
func (o *order) sort(t *table) []orderItem {
	o.items = slices.Grow(o.items[:0], t.entryLen)[:t.entryLen]
	for i := range o.items {
		o.items[i].index = uint32(i)
	}
	sortChunk(t, o.items, 0)
	return o.items
}

// sortChunk sorts items, whose keys agree in their first depth bytes. No key is the beginning of another one, so bytes
// beyond a key's end may be taken as zero: a tie there would be the same key twice.
func sortChunk(t *table, items []orderItem, depth int) {
	longer := false
	for i := range items {
		key := t.keyOf(&t.entries[items[i].index])
		items[i].chunk = chunkAt(key, depth)
		longer = longer || len(key) > depth+orderChunkBytes
	}
	slices.SortFunc(items, func(a, b orderItem) int { return cmp.Compare(a.chunk, b.chunk) })
	if !longer {
		return
	}
	for start := 0; start < len(items); {
		end := start + 1
		for end < len(items) && items[end].chunk == items[start].chunk {
			end++
		}
		if end-start > 1 {
			sortChunk(t, items[start:end], depth+orderChunkBytes)
		}
		start = end
	}
}

func chunkAt(key []byte, depth int) uint64 {
	if len(key) >= depth+orderChunkBytes {
		return binary.BigEndian.Uint64(key[depth:])
	}
	var chunk [orderChunkBytes]byte
	if len(key) > depth {
		copy(chunk[:], key[depth:])
	}
	return binary.BigEndian.Uint64(chunk[:])
}
