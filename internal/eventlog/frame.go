package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// The batch frame: what a group of events is stored as, in the ring and in the warm tier. docs/format/frame.md draws
// it.
const (
	frameVersion     = 1
	frameHeaderBytes = 72

	frameEventsMax = 512       // events in a frame
	frameBytesMax  = 256 << 10 // bytes of records in a frame, unless one event alone is longer
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errFrame = errors.New("bad batch frame")
)

// frameHeader is what stands before the records of a frame.
type frameHeader struct {
	First      int64 // offset of the first event
	Count      int
	MinTime    int64 // source_ts, in ms
	MaxTime    int64
	MinArrival int64 // ms
	MaxArrival int64

	// HighTime is the highest source_ts of the partition up to and with this frame, those before First included: what
	// retention needs to know of everything it removes up to here.
	HighTime int64
	// HighArrival is the highest arrival likewise, except that it starts again where the clock was set back. It makes
	// arrivals sorted, so that retention can search for what has expired.
	HighArrival int64
}

func (h *frameHeader) end() int64 { return h.First + int64(h.Count) }

// put writes the header of a frame whose records stand in frame already.
func (h *frameHeader) put(frame []byte) {
	frame[0], frame[1], frame[2], frame[3] = frameVersion, 0, 0, 0
	le := binary.LittleEndian
	le.PutUint64(frame[8:], uint64(h.First))
	le.PutUint32(frame[16:], uint32(h.Count))
	le.PutUint32(frame[20:], uint32(len(frame)-frameHeaderBytes))
	le.PutUint64(frame[24:], uint64(h.MinTime))
	le.PutUint64(frame[32:], uint64(h.MaxTime))
	le.PutUint64(frame[40:], uint64(h.MinArrival))
	le.PutUint64(frame[48:], uint64(h.MaxArrival))
	le.PutUint64(frame[56:], uint64(h.HighTime))
	le.PutUint64(frame[64:], uint64(h.HighArrival))
	le.PutUint32(frame[4:], frameSum(frame))
}

// frameSum is the CRC-32C of everything but itself.
func frameSum(frame []byte) uint32 {
	return crc32.Update(crc32.Checksum(frame[:4], castagnoli), castagnoli, frame[8:])
}

// parse reads a frame and verifies it. records aliases frame.
func (h *frameHeader) parse(frame []byte) (records []byte, err error) {
	if len(frame) < frameHeaderBytes {
		return nil, fmt.Errorf("%w: got %d bytes; want at least %d", errFrame, len(frame), frameHeaderBytes)
	}
	if frame[0] != frameVersion {
		return nil, fmt.Errorf("%w: %w: got version %d; want %d", errFrame, ErrUnknownFormat, frame[0], frameVersion)
	}
	le := binary.LittleEndian
	if got, want := frameSum(frame), le.Uint32(frame[4:]); got != want {
		return nil, fmt.Errorf("%w: got CRC-32C %08x; want %08x", errFrame, got, want)
	}
	h.peek(frame)
	records = frame[frameHeaderBytes:]
	switch length := le.Uint32(frame[20:]); {
	case uint64(length) != uint64(len(records)):
		return nil, fmt.Errorf("%w: got %d bytes of records; want %d", errFrame, len(records), length)
	case h.Count < 1 || h.Count > len(records):
		return nil, fmt.Errorf("%w: got %d events in %d bytes", errFrame, h.Count, len(records))
	case h.First < 0 || h.First > math.MaxInt64-int64(h.Count) || h.MinTime > h.MaxTime || h.MinArrival > h.MaxArrival:
		return nil, fmt.Errorf("%w: got first offset %d, times %d..%d, arrivals %d..%d", errFrame,
			h.First, h.MinTime, h.MaxTime, h.MinArrival, h.MaxArrival)
	case frame[1]|frame[2]|frame[3] != 0:
		return nil, fmt.Errorf("%w: got reserved bytes %x; want zeros", errFrame, frame[1:4])
	}
	return records, nil
}

// peek reads the header of a frame that was verified before, or that lies in RAM.
func (h *frameHeader) peek(frame []byte) {
	le := binary.LittleEndian
	h.First = int64(le.Uint64(frame[8:]))
	h.Count = int(le.Uint32(frame[16:]))
	h.MinTime = int64(le.Uint64(frame[24:]))
	h.MaxTime = int64(le.Uint64(frame[32:]))
	h.MinArrival = int64(le.Uint64(frame[40:]))
	h.MaxArrival = int64(le.Uint64(frame[48:]))
	h.HighTime = int64(le.Uint64(frame[56:]))
	h.HighArrival = int64(le.Uint64(frame[64:]))
}

// recordLen returns the length of the record at the head of records, its own length field included.
func recordLen(records []byte) (int, bool) {
	length, n := binary.Uvarint(records)
	if n <= 0 || length > uint64(len(records)-n) {
		return 0, false
	}
	return n + int(length), true
}

// recordArrival returns when the event of a record arrived, in ms, without decoding the rest of it.
func recordArrival(record []byte) (int64, bool) {
	_, n := binary.Uvarint(record)
	if n <= 0 || n+1 > len(record) {
		return 0, false
	}
	rest := record[n+1:]
	ts, n := binary.Varint(rest)
	if n <= 0 {
		return 0, false
	}
	lag, n := binary.Varint(rest[n:])
	return ts + lag, n > 0
}

// skipRecords returns what stands behind the first n records.
func skipRecords(records []byte, n int) ([]byte, error) {
	for range n {
		length, ok := recordLen(records)
		if !ok {
			return nil, fmt.Errorf("%w: a record is longer than what is left, %d bytes", errFrame, len(records))
		}
		records = records[length:]
	}
	return records, nil
}
