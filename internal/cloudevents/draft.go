package cloudevents

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/jsonscan"
	"github.com/weirstream/weir/internal/shard"
)

const (
	// attrsMax bounds the attributes of one event that have no field of their own.
	attrsMax = 64
	// specVersion is the version of CloudEvents that is spoken here.
	specVersion  = "1.0"
	partitionKey = "partitionkey"
	contentType  = "datacontenttype"
)

// The attributes that Weir adds on the way out. On the way in they say where a copy of the event once lay: they are
// left off, so that what was read from one stream can be sent to another.
const (
	attrPartition = "weirpartition"
	attrOffset    = "weiroffset"
	attrArrival   = "weirarrival"
)

// draft is one event as raw JSON values of the body; nil where a member is missing.
type draft struct {
	id, eventType, source, version, time, data, base64 []byte

	attrs    []attr
	overflow bool // more than attrsMax
}

// attr is an attribute as it was sent: a JSON value, or text that is the value itself.
type attr struct {
	name, value []byte
	json        bool
}

func (d *draft) reset() {
	clear(d.attrs)
	*d = draft{attrs: d.attrs[:0]}
}

// assign keeps the value of a member that has a place of its own. ok is false for any other name.
func (d *draft) assign(name, value []byte) (ok bool) {
	switch string(name) {
	case "id":
		d.id = value
	case "type":
		d.eventType = value
	case "time":
		d.time = value
	case "data":
		d.data = value
	case "source":
		d.source = value
	case "specversion":
		d.version = value
	case "data_base64":
		d.base64 = value
	default:
		return false
	}
	return true
}

// set adds an attribute, or replaces the one of that name.
func (d *draft) set(a attr) {
	for i := range d.attrs {
		if bytes.Equal(d.attrs[i].name, a.name) {
			d.attrs[i] = a
			return
		}
	}
	if len(d.attrs) == attrsMax {
		d.overflow = true
		return
	}
	d.attrs = append(d.attrs, a)
}

// take checks the gathered event, which was size bytes long, and adds it to the batch of its partition or rejects it.
func (p *Parser) take(size int) {
	r := p.understand()
	if r == nil {
		r = p.store(size)
	}
	if r != nil {
		p.reject(r, p.event.ID)
	}
}

// understand fills the event from the members of the draft.
func (p *Parser) understand() (r *refusal) {
	d, e := &p.draft, &p.event
	*e = event.Event{Arrival: p.arrival, Attrs: e.Attrs[:0]}
	if e.ID, r = p.text("id", d.id); r != nil {
		return r
	}
	if e.Type, r = p.text("type", d.eventType); r != nil {
		return r
	}
	if e.Source, r = p.text("source", d.source); r != nil {
		return r
	}
	if r = p.checkVersion(d.version); r != nil {
		return r
	}
	if e.Time, r = p.readTime(d.time); r != nil {
		return r
	}
	if r = p.readAttrs(); r != nil {
		return r
	}
	return p.readData()
}

// text returns the text of a JSON string; none for a member that is missing or null.
func (p *Parser) text(name string, raw []byte) (text []byte, r *refusal) {
	if absent(raw) {
		return nil, nil
	}
	inside, ok := jsonscan.Inside(raw)
	if !ok {
		return nil, wrongType(name, raw, "a string")
	}
	if bytes.IndexByte(inside, '\\') >= 0 {
		inside = p.unescape(inside)
	}
	return inside, nil
}

func absent(raw []byte) bool { return len(raw) == 0 || raw[0] == 'n' }

func (p *Parser) checkVersion(raw []byte) *refusal {
	version, r := p.text("specversion", raw)
	if r != nil || absent(raw) || string(version) == specVersion {
		return r
	}
	return badVersion(version)
}

func badVersion(version []byte) *refusal {
	return &refusal{code: CodeBadVersion, field: "specversion", value: cut(version),
		message: fmt.Sprintf("cannot read the event: got specversion %q; want %q", cut(version), specVersion),
		hint:    "send specversion 1.0, or leave it out"}
}

// readAttrs checks and encodes the attributes that have no field of their own.
func (p *Parser) readAttrs() *refusal {
	if p.draft.overflow {
		return &refusal{code: CodeTooManyAttrs, message: fmt.Sprintf("cannot take the event: got more than %d attributes; want at most that many", attrsMax),
			hint: "put what describes the happening into data"}
	}
	for i := range p.draft.attrs {
		a := &p.draft.attrs[i]
		if !attrName(a.name) {
			return &refusal{code: CodeBadAttribute, field: cut(a.name), value: cut(a.value),
				message: fmt.Sprintf("cannot take attribute %q: want a name of a-z and 0-9 only", cut(a.name)), hint: "put the field into data"}
		}
		switch string(a.name) {
		case attrPartition, attrOffset, attrArrival:
			continue
		}
		if r := p.readAttr(a); r != nil {
			return r
		}
	}
	return nil
}

func attrName(name []byte) bool {
	for _, c := range name {
		if c-'a' > 'z'-'a' && c-'0' > 9 {
			return false
		}
	}
	return len(name) > 0
}

func (p *Parser) readAttr(a *attr) *refusal {
	e := &p.event
	if !a.json {
		e.Attrs = e.Attrs.AppendAttr(event.AttrString, a.name, a.value)
		return nil
	}
	if absent(a.value) {
		return nil
	}
	first := a.value[0]
	switch string(a.name) {
	case "subject", "dataschema", contentType:
		if first != '"' {
			return wrongType(string(a.name), a.value, "a string")
		}
	}
	switch {
	case first == '"':
		text, r := p.text("", a.value)
		e.Attrs = e.Attrs.AppendAttr(event.AttrString, a.name, text)
		return r
	case first == 't' || first == 'f':
		e.Attrs = e.Attrs.AppendAttr(event.AttrBoolean, a.name, a.value)
		return nil
	case first == '{' || first == '[':
		return notAnAttr(a, typeName(a.value))
	}
	start := len(p.arena)
	number, ok := jsonscan.AppendCanonicalNumber(p.arena, a.value)
	text := number[start:]
	if _, whole := parseInteger(text); !ok || !whole {
		return notAnAttr(a, "a number that is no 64-bit integer")
	}
	p.arena = number
	e.Attrs = e.Attrs.AppendAttr(event.AttrInteger, a.name, text)
	return nil
}

func notAnAttr(a *attr, got string) *refusal {
	return &refusal{code: CodeBadAttribute, field: cut(a.name), value: cut(a.value),
		message: fmt.Sprintf("cannot take attribute %q: got %s; want a string, an integer or a boolean", cut(a.name), got),
		hint:    "put the field into data, or send it as a string"}
}

// readData finds the payload. A payload in JSON is kept as it was sent.
func (p *Parser) readData() *refusal {
	d, e := &p.draft, &p.event
	if absent(d.base64) {
		if d.data != nil {
			e.Data, e.Kind = d.data, event.DataJSON
		}
		return nil
	}
	if d.data != nil {
		return &refusal{code: CodeTwoPayloads, field: "data_base64", value: cut(d.base64),
			message: "cannot take the event: got both data and data_base64; want one of them"}
	}
	text, r := p.text("data_base64", d.base64)
	if r != nil {
		return r
	}
	start := len(p.arena)
	p.arena = append(p.arena, make([]byte, base64.StdEncoding.DecodedLen(len(text)))...)
	n, err := base64.StdEncoding.Decode(p.arena[start:], text)
	if err != nil {
		return &refusal{code: CodeBadBase64, field: "data_base64", value: cut(text),
			message: fmt.Sprintf("cannot read data_base64: got %s; want base64 of RFC 4648 section 4, padded", err)}
	}
	e.Data, e.Kind = p.arena[start:start+n], event.DataBinary
	return nil
}

// store holds the event against the bounds that it shares with every other form, finds its segment and encodes it.
func (p *Parser) store(size int) *refusal {
	e, rules := &p.event, p.rules
	switch {
	case rules.EventBytesMax > 0 && size > rules.EventBytesMax:
		return &refusal{code: CodeEventTooLarge, value: strconv.Itoa(size),
			message: fmt.Sprintf("cannot take the event: got %d bytes; want at most %d (limits.event)", size, rules.EventBytesMax)}
	case len(e.ID) == 0:
		return &refusal{code: CodeMissingID, field: "id", message: "cannot take the event: got no id; want a string that is not empty",
			hint: "an id names the event among those of its segment, so that it can be sent again without being counted twice"}
	case len(e.ID) > event.IDBytesMax:
		return &refusal{code: CodeIDTooLong, field: "id", value: cut(e.ID),
			message: fmt.Sprintf("cannot take the event: got an id of %d bytes; want at most %d", len(e.ID), event.IDBytesMax)}
	case len(e.Type) == 0:
		return &refusal{code: CodeMissingType, field: "type", message: "cannot take the event: got no type; want a string that is not empty",
			hint: "a type says what happened, such as \"click\""}
	}
	if r := p.findSegment(); r != nil {
		return r
	}
	hash, hashed := event.HashOf(p.hashed, e.Segment, e.ID)
	p.hashed = hashed
	p.Batches[shard.Of(e.Segment, rules.Partitions)].Add(e, hash, p.Sent-1)
	return nil
}

// findSegment follows the stream's segment path; where it leads nowhere, the partitionkey, else the id is the segment.
func (p *Parser) findSegment() *refusal {
	e, field := &p.event, partitionKey
	e.Segment = e.ID
	if _, key, ok := e.Attrs.Get(partitionKey); ok && len(key) > 0 {
		e.Segment = key
	}
	if !p.rules.Segment.IsZero() {
		if text, ok := p.rules.Segment.AppendKeyPart(p.segment[:0], e); ok {
			p.segment, e.Segment, field = text, text, p.rules.Segment.String()
		}
	}
	if bound := p.rules.KeyPartMax; bound > 0 && len(e.Segment) > bound {
		return &refusal{code: CodeSegmentLong, field: field, value: cut(e.Segment),
			message: fmt.Sprintf("cannot take the event: got a segment of %d bytes in %s; want at most %d (limits.key_part)", len(e.Segment), field, bound)}
	}
	return nil
}

// parseInteger reads decimal digits behind an optional minus. ok is false for any other text and beyond 64 bits.
func parseInteger(text []byte) (v int64, ok bool) {
	digits := text
	if len(text) > 0 && text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) == 0 {
		return 0, false
	}
	var u uint64
	for _, c := range digits {
		if c-'0' > 9 || u > (1<<64-1)/10-1 {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if len(digits) < len(text) {
		return int64(-u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}
