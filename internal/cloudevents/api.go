// Package cloudevents turns requests into events and events into CloudEvents JSON.
package cloudevents

import (
	"net/http"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/path"
)

// Future says what happens to an event whose time lies beyond arrival plus skew.
type Future uint8

const (
	FutureReject Future = iota // refused with time_future
	FutureClamp                // its time becomes arrival + skew
	FutureAccept               // taken as it is
)

// Rules are what one stream asks of its events.
type Rules struct {
	Segment       path.Path // zero: partitionkey, else id
	Partitions    int       // of the stream; at least 1
	EventBytesMax int       // bytes of one event as it was sent
	BatchMax      int       // events in one request
	KeyPartMax    int       // bytes of a segment
	Skew          int64     // ms
	Future        Future
	UnitCheck     bool
}

// Rejection is one event that was refused, alone.
type Rejection struct {
	Index   int    // place in the request, from 0
	ID      string // as far as it could be read; valid UTF-8
	Code    string
	Field   string
	Value   string // cut to a bound; valid UTF-8
	Message string
	Hint    string
}

// Problem is a request that is refused as a whole. It is an error.
type Problem struct {
	Status                            int // HTTP status
	Code, Message, Field, Value, Hint string
}

func (p *Problem) Error() string { return p.Message }

// Parser reads requests into batches. It is reused, and belongs to one goroutine at a time.
type Parser struct {
	Batches  []event.Batch // one per partition, after Parse
	Rejected []Rejection   // valid until the next Parse
	Sent     int           // events in the request
	Single   bool          // the request holds one event and no batch: a refusal was returned as a Problem
}

// Parse reads one HTTP request: Content-Type (and ce-* headers) of header say what body is. arrival is in ms.
// The error is a *Problem; nothing of the request is to be stored then.
func (p *Parser) Parse(rules *Rules, header http.Header, body []byte, arrival int64) error {
	return nil
}

// ParseFields reads the name/value pairs of one XADD: id, type, time, segment, source, data, any other name is an
// extension. The error is a *Problem.
func (p *Parser) ParseFields(rules *Rules, fields [][]byte, arrival int64) error { return nil }

// AppendJSON appends e as CloudEvents JSON (one line, no newline) with weirpartition, weiroffset and weirarrival.
func AppendJSON(dst []byte, e *event.Event, partition int, offset int64) []byte { return dst }

// ParseTime reads an RFC 3339 time as ms since the epoch; below a millisecond is cut off (floor).
func ParseTime(s []byte) (ms int64, ok bool) { return 0, false }

// AppendTime appends ms as RFC 3339 in UTC with milliseconds.
func AppendTime(dst []byte, ms int64) []byte { return dst }
