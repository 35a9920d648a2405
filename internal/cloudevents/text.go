package cloudevents

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirstream/weir/internal/event"
)

// parseBinary reads an event in the binary mode of the CloudEvents HTTP binding: attributes in headers, the payload in
// the body.
func (p *Parser) parseBinary(header http.Header, body []byte) error {
	p.Single = true
	if err := p.admit(); err != nil {
		return err
	}
	p.begin()
	names := make([]string, 0, len(header))
	for name := range header {
		if strings.HasPrefix(name, headerPrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names) // a map has no order, and one request must always make one record
	size := len(body)
	r := p.setText(contentType, []byte(header.Get(headerMedia)))
	for _, name := range names {
		value := header[name][len(header[name])-1]
		size += len(name) + len(value)
		attr := strings.ToLower(name[len(headerPrefix):])
		if r == nil && attr != contentType {
			r = p.setText(attr, decodeHeader(value))
		}
	}
	if r == nil {
		r = p.readAttrs()
	}
	if r == nil {
		r = p.binaryData(header, body)
	}
	p.storeText(r, size)
	return nil
}

// binaryData takes the body as what Content-Type says it is. Without one, it is JSON if it reads as JSON.
func (p *Parser) binaryData(header http.Header, body []byte) (r *refusal) {
	e, media := &p.event, header.Get(headerMedia)
	if len(body) == 0 {
		return nil
	}
	if jsonMedia(media) {
		e.Kind = event.DataJSON
		e.Data, r = checkData(body)
		return r
	}
	e.Data, e.Kind = body, event.DataBinary
	if media == "" {
		if value, r := checkData(body); r == nil {
			e.Data, e.Kind = value, event.DataJSON
		}
	}
	return nil
}

// decodeHeader undoes what the binding does to a header's value: quotes around it, then percent escapes. A percent
// sign that begins no escape stands for itself, since not every sender encodes.
func decodeHeader(value string) []byte {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = unquoteHeader(value[1 : len(value)-1])
	}
	text := make([]byte, 0, len(value))
	for i := 0; i < len(value); i++ {
		if value[i] == '%' && i+2 < len(value) {
			high, low := hexDigit(value[i+1]), hexDigit(value[i+2])
			if high >= 0 && low >= 0 {
				text = append(text, byte(high<<4|low))
				i += 2
				continue
			}
		}
		text = append(text, value[i])
	}
	return text
}

func unquoteHeader(inside string) string {
	if !strings.Contains(inside, `\`) {
		return inside
	}
	var text strings.Builder
	for i := 0; i < len(inside); i++ {
		if inside[i] == '\\' && i+1 < len(inside) {
			i++
		}
		text.WriteByte(inside[i])
	}
	return text.String()
}

func hexDigit(c byte) int {
	switch {
	case c-'0' <= 9:
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// parseFields reads the name/value pairs of one XADD.
func (p *Parser) parseFields(fields [][]byte) error {
	p.Single = true
	if len(fields)%2 != 0 {
		return &Problem{Status: http.StatusBadRequest, Code: CodeBadFields, Value: cut(fields[len(fields)-1]),
			Message: "cannot read the event: got a name without a value; want name and value in turn"}
	}
	if err := p.admit(); err != nil {
		return err
	}
	p.begin()
	var r *refusal
	size := 0
	for i := 0; i < len(fields) && r == nil; i += 2 {
		name, value := fields[i], fields[i+1]
		size += len(name) + len(value)
		if string(name) == "data" {
			p.event.Kind = event.DataJSON
			p.event.Data, r = checkData(value)
			continue
		}
		if string(name) == "segment" {
			name = []byte(partitionKey)
		}
		r = p.setText(string(name), value)
	}
	if r == nil {
		r = p.readAttrs()
	}
	p.storeText(r, size)
	return nil
}

// begin starts an event whose members are text.
func (p *Parser) begin() {
	p.draft.reset()
	p.arena = p.arena[:0]
	p.event = event.Event{Arrival: p.arrival, Time: p.arrival, Attrs: p.event.Attrs[:0]}
}

// setText sets one attribute from its text. An empty attribute is none, but for id and type, which store misses then.
func (p *Parser) setText(name string, value []byte) (r *refusal) {
	e := &p.event
	if !utf8.Valid(value) {
		return &refusal{code: CodeBadUTF8, field: cut([]byte(name)), value: cut(value),
			message: fmt.Sprintf("cannot read %s: got bytes that are no UTF-8", cut([]byte(name)))}
	}
	switch name {
	case "id":
		e.ID = value
	case "type":
		e.Type = value
	case "source":
		e.Source = value
	case "specversion":
		if string(value) != specVersion {
			return badVersion(value)
		}
	case "time":
		e.Time, r = p.looseTime(value)
	case "data", "data_base64":
		return &refusal{code: CodeBadAttribute, field: name, value: cut(value),
			message: fmt.Sprintf("cannot take attribute %q: the name is that of the payload", name), hint: "send the payload as the body"}
	default:
		if len(value) > 0 {
			p.draft.set(attr{name: []byte(name), value: value})
		}
	}
	return r
}

// storeText ends an event whose members are text.
func (p *Parser) storeText(r *refusal, size int) {
	if r == nil {
		r = p.store(size)
	}
	if r != nil {
		p.reject(r, p.event.ID)
	}
}
