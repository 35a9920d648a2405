package eventlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// The tables of a partition's store, by the first byte of a key. docs/format/frame.md lists them.
const (
	metaTable  = 0x01 // one name each
	frameTable = 0x02 // first offset, big endian -> batch frame

	keyBytes = 1 + 8
)

var (
	identityKey = []byte{metaTable, 'i'} // which partition this is
	trimKey     = []byte{metaTable, 't'} // what retention removed

	framesBegin = []byte{frameTable}
	framesEnd   = []byte{frameTable + 1}
)

// frameKey is the key of the frame whose first offset is offset.
func frameKey(dst []byte, offset int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst[:0], frameTable), uint64(offset))
}

func frameKeyOffset(key []byte) (int64, bool) {
	if len(key) != keyBytes || key[0] != frameTable {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(key[1:])), true
}

// trimMark says what retention removed: everything below First, and the highest source_ts of it.
type trimMark struct {
	First   int64
	MaxTime int64 // math.MinInt64: nothing was removed
}

const (
	metaVersion    = 1
	trimMarkBytes  = 1 + 8 + 8 + 4
	identityBytes  = 1 + 4 + 4 + 4
	metaSumBytes   = 4
	untrimmedFirst = 0
)

func (m trimMark) append(dst []byte) []byte {
	dst = append(dst, metaVersion)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.First))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.MaxTime))
	return appendSum(dst)
}

func parseTrimMark(src []byte) (trimMark, error) {
	if err := checkMeta("trim mark", src, trimMarkBytes); err != nil {
		return trimMark{}, err
	}
	m := trimMark{First: int64(binary.LittleEndian.Uint64(src[1:])), MaxTime: int64(binary.LittleEndian.Uint64(src[9:]))}
	if m.First < 0 {
		return trimMark{}, fmt.Errorf("bad trim mark: got first offset %d", m.First)
	}
	return m, nil
}

// identity says which partition a store is, so that folders that were swapped are found out.
type identity struct{ Partition, Partitions int }

func (i identity) append(dst []byte) []byte {
	dst = append(dst, metaVersion)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(i.Partition))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(i.Partitions))
	return appendSum(dst)
}

func parseIdentity(src []byte) (identity, error) {
	if err := checkMeta("identity", src, identityBytes); err != nil {
		return identity{}, err
	}
	return identity{
		Partition:  int(binary.LittleEndian.Uint32(src[1:])),
		Partitions: int(binary.LittleEndian.Uint32(src[5:])),
	}, nil
}

// appendSum closes a meta value: its CRC-32C at its end.
func appendSum(value []byte) []byte {
	return binary.LittleEndian.AppendUint32(value, crc32.Checksum(value, castagnoli))
}

func checkMeta(what string, src []byte, length int) error {
	if len(src) == 0 || src[0] != metaVersion {
		return fmt.Errorf("bad %s: %w: got %x; want version %d", what, ErrUnknownFormat, src, metaVersion)
	}
	if len(src) != length {
		return fmt.Errorf("bad %s: got %d bytes; want %d", what, len(src), length)
	}
	body := src[:length-metaSumBytes]
	if got, want := crc32.Checksum(body, castagnoli), binary.LittleEndian.Uint32(src[len(body):]); got != want {
		return fmt.Errorf("bad %s: got CRC-32C %08x; want %08x", what, got, want)
	}
	return nil
}

// Block properties hold unsigned intervals; source_ts is signed.
func orderedTime(ms int64) uint64 { return uint64(ms) ^ 1<<63 }

// noTime is the highest source_ts of nothing.
const noTime = math.MinInt64
