// Package eventlog is a stream's durable, partitioned log of events, read by one iterator wherever an event lies.
package eventlog

import (
	"context"
	"time"

	"github.com/weirstream/weir/internal/event"
)

// Ack says when an append returns.
type Ack uint8

const (
	AckDisk   Ack = iota // when the events are fsynced
	AckMemory            // when readers can see them; a power cut may lose them
)

// Log is one stream's log.
type Log struct {
	opts       Options
	partitions []*Partition
}

// Partition is one partition of a Log.
type Partition struct{ index int }

// Frontiers are a partition's offsets. First is the first one that retention left; the others are exclusive ends:
// First <= Warm <= Durable <= Appended.
type Frontiers struct{ First, Appended, Durable, Warm int64 }

// Open opens the stream's log in opts.Dir.
func Open(opts Options) (*Log, error) { panic("coming") }

// Close takes no more appends, makes durable what is queued and closes the log.
func (l *Log) Close(ctx context.Context) error { panic("coming") }

// Append stores batches[i] in partition i, all of them or none, and sets each item's Offset and Duplicate.
func (l *Log) Append(ctx context.Context, batches []event.Batch, ack Ack) error { panic("coming") }

// Partitions returns the number of partitions.
func (l *Log) Partitions() int { return len(l.partitions) }

// Partition returns partition i.
func (l *Log) Partition(i int) *Partition { return l.partitions[i] }

// Trim removes what retention allows at nowMS.
func (l *Log) Trim(nowMS int64) error { panic("coming") }

// Frontiers returns the partition's frontiers.
func (p *Partition) Frontiers() Frontiers { panic("coming") }

// Acked returns the exclusive end of what any client was told is stored.
func (p *Partition) Acked() int64 { panic("coming") }

// WaitDurable returns when Durable > offset.
func (p *Partition) WaitDurable(ctx context.Context, offset int64) error { panic("coming") }

// WaitAppended returns when Appended > offset.
func (p *Partition) WaitAppended(ctx context.Context, offset int64) error { panic("coming") }

// Trimmed returns the first retained offset and the highest source_ts among removed events (math.MinInt64: none).
func (p *Partition) Trimmed() (first int64, maxTime int64) { panic("coming") }

// Hold keeps retention from removing offsets at or above offset.
func (p *Partition) Hold(offset int64) { panic("coming") }

// Frame is a run of consecutive events. It is valid until the reader's next Next or Close.
type Frame struct {
	First            int64  // offset of the first event
	Count            int    // events
	Records          []byte // event.Event records
	MinTime, MaxTime int64  // bounds of source_ts, not always tight
}

// Reader reads a partition in offset order.
type Reader struct{}

// NewReader returns a reader for a caller that calls Next again soon (it pins ring memory between calls).
func (p *Partition) NewReader(from int64) *Reader { panic("coming") }

// ScanOptions configures NewScan.
type ScanOptions struct {
	TimeFrom, TimeTo int64 // frames without an event in [TimeFrom, TimeTo) may be left out; both 0: all
}

// NewScan returns a reader for a caller that may wait between calls (a network client): it pins nothing.
func (p *Partition) NewScan(from int64, o ScanOptions) *Reader { panic("coming") }

// Next returns the frame that holds the next offset, cut to offsets below limit.
func (r *Reader) Next(limit int64) (Frame, bool, error) { panic("coming") }

// Offset returns the offset that Next goes on at.
func (r *Reader) Offset() int64 { panic("coming") }

// Close frees what the reader holds.
func (r *Reader) Close() error { panic("coming") }

// Stats is a snapshot of what a partition holds and did.
type Stats struct {
	Frontiers Frontiers
	Acked     int64

	RingBytes    int64 // mapped
	RingBytesMax int64
	RingChunks   int
	RingFirst    int64 // the ring holds [RingFirst, Frontiers.Appended)
	WarmBytes    int64 // files on disk, the WAL included
	DedupIDs     int
	DedupBytes   int64
	QueueBytes   int64

	Events, Bytes, Duplicates int64 // appended since open
	Commits, Frames           int64
	Spills                    int64 // chunks
	Overloads                 int64
	Trims                     int64
}

// Stats returns the partition's statistics.
func (p *Partition) Stats() Stats { panic("coming") }

// RetryAfterMin and RetryAfterMax bound Overload.RetryAfter.
const (
	RetryAfterMin = 50 * time.Millisecond
	RetryAfterMax = 5 * time.Second
)

func ringBytesMin(eventBytesMax int) int64 { return int64(eventBytesMax) }
