// Package cloudevents is the border of the event store: requests become batches of events, events become CloudEvents
// JSON.
//
// A Parser reads one request straight into one event.Batch per partition. Each event goes through three steps. First
// its members are gathered as raw slices of the body, whatever their order (of a name that comes twice, the last counts, here and
// everywhere in Weir). Then they are checked, and an event that breaks a rule becomes a Rejection while the ones around
// it go on. Then the segment is found, and the event is encoded into the batch of its partition. Slices of the body are
// copied once, into the record; nothing is allocated per event.
//
// What is refused alone and what spoils the request: a rule that an event breaks, or text in it that no CloudEvent may
// hold, is the event's own fault. A body whose grammar is broken so that nobody can tell where an event ends is the
// request's: it is refused whole, as a Problem, and nothing of it is stored. NDJSON has an end of line for that, so there
// every mistake stays in its line.
package cloudevents

import (
	"fmt"
	"net/http"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/path"
)

// Future says what happens to an event whose time lies beyond arrival plus skew.
type Future uint8

const (
	FutureReject Future = iota // refused with CodeTimeFuture
	FutureClamp                // its time becomes arrival + skew
	FutureAccept               // taken as it is
)

// Rules are what one stream asks of its events. They may be shared by any number of parsers and must not change.
type Rules struct {
	Segment       path.Path // zero, or missing in an event: partitionkey, else id
	Partitions    int       // of the stream; at least 1
	EventBytesMax int       // bytes of one event as it was sent; 0: no bound of its own
	BatchMax      int       // events in one request; 0: no bound of its own
	KeyPartMax    int       // bytes of a segment; 0: no bound of its own
	Skew          int64     // ms
	Future        Future
	UnitCheck     bool // refuse integer times that look like another unit than milliseconds
}

// Rejection is one event that was refused while the rest of its request went on. All its text is valid UTF-8.
type Rejection struct {
	Index   int    // place among the request's events, from 0
	ID      string // as far as it could be read
	Code    string // one of the Code constants
	Field   string // the member at fault, if there is one
	Value   string // what it held, cut to valueBytesMax
	Message string
	Hint    string
}

// Problem is a request that is refused as a whole: nothing of it may be stored. All its text is valid UTF-8.
type Problem struct {
	Status                            int // HTTP status
	Code, Message, Field, Value, Hint string
}

func (p *Problem) Error() string { return p.Message }

// Parser reads requests into batches. It is made for reuse: the zero Parser is ready, keeps its memory between
// requests, and belongs to one goroutine at a time. Its fields are the result of the last Parse or ParseFields, and
// valid until the next.
type Parser struct {
	Batches  []event.Batch // one per partition
	Rejected []Rejection   // in the order of the request
	Sent     int           // events in the request, refused ones included
	Single   bool          // the request is one event, not a batch: its refusal is a Problem too

	rules   *Rules
	arrival int64
	draft   draft       // the event at hand, as it was sent
	event   event.Event // and as it was understood
	arena   []byte      // unescaped text of the event at hand
	segment []byte
	hashed  []byte
}

// Parse reads one HTTP request: Content-Type (and the ce-* headers) of header say what body is. arrival is in ms since
// the epoch. The error is a *Problem.
func (p *Parser) Parse(rules *Rules, header http.Header, body []byte, arrival int64) error {
	p.reset(rules, arrival)
	kind, err := kindOf(header)
	if err != nil {
		return err
	}
	switch kind {
	case kindBatch:
		err = p.parseBatch(skipMark(body))
	case kindLines:
		err = p.parseLines(skipMark(body))
	case kindStructured:
		err = p.parseSingle(skipMark(body))
	case kindBinary:
		err = p.parseBinary(header, body)
	}
	return p.finish(err)
}

// ParseFields reads the name/value pairs of one XADD: id, type, time (RFC 3339 or decimal milliseconds), segment (sets
// partitionkey), source and data (JSON); any other name is an extension and its value a string. The error is a *Problem.
func (p *Parser) ParseFields(rules *Rules, fields [][]byte, arrival int64) error {
	p.reset(rules, arrival)
	return p.finish(p.parseFields(fields))
}

func (p *Parser) reset(rules *Rules, arrival int64) {
	p.rules, p.arrival = rules, arrival
	p.Rejected, p.Sent, p.Single = p.Rejected[:0], 0, false
	// The memory of batches that a stream of fewer partitions left unused is found again behind the slice's end.
	p.Batches = p.Batches[:min(cap(p.Batches), rules.Partitions)]
	for len(p.Batches) < rules.Partitions {
		p.Batches = append(p.Batches, event.Batch{})
	}
	p.emptyBatches()
}

func (p *Parser) emptyBatches() {
	for i := range p.Batches {
		p.Batches[i].Reset()
	}
}

// finish turns the refusal of a single event into a Problem and makes sure that a Problem leaves nothing to store.
func (p *Parser) finish(err error) error {
	if err == nil && p.Single && len(p.Rejected) > 0 {
		r := &p.Rejected[0]
		err = &Problem{Status: http.StatusBadRequest, Code: r.Code, Message: r.Message, Field: r.Field, Value: r.Value, Hint: r.Hint}
	}
	if err != nil {
		p.emptyBatches()
	}
	p.draft.reset() // the body is the caller's again
	p.event = event.Event{}
	return err
}

// admit counts one more event, and refuses the request when there are too many.
func (p *Parser) admit() error {
	p.Sent++
	if p.rules.BatchMax > 0 && p.Sent > p.rules.BatchMax {
		return &Problem{Status: http.StatusRequestEntityTooLarge, Code: CodeBatchTooLarge,
			Message: fmt.Sprintf("cannot take the request: got more than %d events; want at most %d in one request (limits.batch)", p.rules.BatchMax, p.rules.BatchMax),
			Hint:    "send the events in several requests"}
	}
	return nil
}
