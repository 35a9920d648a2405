package event

// Batch is events of one request that are bound for one partition, encoded and in the order in which they came. A
// batch is reused: Reset keeps its memory.
type Batch struct {
	Records []byte // records as Append wrote them, one behind the other
	Items   []Item // one per record
}

// Item is what the log needs to know of a record without decoding it, and what the log says of it.
type Item struct {
	Hash  Hash   // of (segment, id)
	Time  int64  // source_ts in ms
	End   uint32 // where the record ends in Records
	Index uint32 // the event's place in its request

	// Set by the append.
	Offset    int64 // the event's offset, or that of its first copy
	Duplicate bool  // the partition holds the event already; nothing was appended
}

// Reset empties b for the next request.
func (b *Batch) Reset() { b.Records, b.Items = b.Records[:0], b.Items[:0] }

// Add encodes e at the end of b. hash is that of (e.Segment, e.ID), index its place in the request.
func (b *Batch) Add(e *Event, hash Hash, index int) {
	b.Records = Append(b.Records, e)
	b.Items = append(b.Items, Item{Hash: hash, Time: e.Time, End: uint32(len(b.Records)), Index: uint32(index)})
}

// Record returns the bytes of record i.
func (b *Batch) Record(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = b.Items[i-1].End
	}
	return b.Records[start:b.Items[i].End]
}
