package cloudevents

import (
	"bytes"
	"net/http"

	"github.com/weirstream/weir/internal/jsonscan"
)

const wantArray = "send one JSON array of events, or one event a line as " + mediaLines

// parseBatch reads a JSON array of events. An empty body is an empty batch.
func (p *Parser) parseBatch(body []byte) error {
	rest := jsonscan.TrimSpace(body)
	if len(rest) == 0 {
		return nil
	}
	if rest[0] != '[' {
		return badBody(&jsonscan.Error{Reason: jsonscan.Syntax, Byte: rest[0]}, len(body)-len(rest), wantArray)
	}
	rest = jsonscan.TrimSpace(rest[1:])
	for more := len(rest) == 0 || rest[0] != ']'; more; {
		if err := p.admit(); err != nil {
			return err
		}
		tail, err := p.element(rest)
		if err != nil {
			return badBody(err, len(body)-len(rest), wantArray)
		}
		rest = jsonscan.TrimSpace(tail)
		if more = len(rest) > 0 && rest[0] == ','; more {
			rest = rest[1:]
		}
	}
	if len(rest) == 0 || rest[0] != ']' {
		return p.arrayBroken(body, rest)
	}
	if rest = jsonscan.TrimSpace(rest[1:]); len(rest) > 0 {
		return p.arrayBroken(body, rest)
	}
	return nil
}

func (p *Parser) arrayBroken(body, rest []byte) error {
	e := &jsonscan.Error{Reason: jsonscan.Truncated}
	if len(rest) > 0 {
		e.Reason, e.Byte = jsonscan.Syntax, rest[0]
	}
	return badBody(e, len(body)-len(rest), wantArray)
}

// element reads the event at the head of src and returns what follows it. The error is of the array's grammar.
func (p *Parser) element(src []byte) (tail []byte, err error) {
	f := jsonscan.Open(src, jsonscan.DepthMax)
	p.gather(&f)
	err = f.Err()
	if err == nil {
		tail = f.Tail()
		p.take(len(jsonscan.TrimSpace(src)) - len(tail))
		return tail, nil
	}
	// Another type than an object is valid JSON and no event; text that CloudEvents forbids, and nesting, leave the
	// grammar of the array whole. Both are the element's own fault.
	value, tail, valueErr := jsonscan.Value(src, jsonscan.DepthMax)
	if valueErr == nil {
		r := wrongType("", value, "an object")
		p.reject(r, nil)
		return tail, nil
	}
	if reason := valueErr.(*jsonscan.Error).Reason; reason == jsonscan.Syntax || reason == jsonscan.Truncated {
		return nil, valueErr
	}
	tail, ok := jsonscan.SkipBroken(src)
	if !ok {
		return nil, valueErr
	}
	r := notJSON(valueErr, "")
	id, _ := p.text("id", p.draft.id)
	p.reject(r, id)
	return tail, nil
}

// parseLines reads one event a line.
func (p *Parser) parseLines(body []byte) error {
	for len(body) > 0 {
		line := body
		if end := bytes.IndexByte(body, '\n'); end >= 0 {
			line, body = body[:end], body[end+1:]
		} else {
			body = nil
		}
		line = trimSpace(line)
		if len(line) == 0 {
			continue
		}
		if err := p.admit(); err != nil {
			return err
		}
		p.object(line)
	}
	return nil
}

// parseSingle reads one event that is the whole body.
func (p *Parser) parseSingle(body []byte) error {
	p.Single = true
	body = trimSpace(body)
	if len(body) == 0 {
		return &Problem{Status: http.StatusBadRequest, Code: CodeBadJSON, Message: "cannot read the event: got an empty body; want a JSON object",
			Hint: `send {"id":"…","type":"…"}`}
	}
	if err := p.admit(); err != nil {
		return err
	}
	p.object(body)
	return nil
}

// object reads an event that is all of src, which has no white space at its ends, or rejects it.
func (p *Parser) object(src []byte) {
	f := jsonscan.Open(src, jsonscan.DepthMax)
	p.gather(&f)
	err := f.Err()
	if err == nil && len(f.Tail()) > 0 {
		_, err = jsonscan.Document(src, jsonscan.DepthMax)
	}
	if err == nil {
		p.take(len(src))
		return
	}
	r := notJSON(err, "")
	if value, err := jsonscan.Document(src, jsonscan.DepthMax); err == nil {
		r = wrongType("", value, "an object")
	}
	r.value = cut(src)
	id, _ := p.text("id", p.draft.id) // whatever was read before the mistake
	p.reject(r, id)
}

// gather collects the members of one event as they were sent.
func (p *Parser) gather(f *jsonscan.Fields) {
	d := &p.draft
	d.reset()
	p.arena = p.arena[:0]
	for f.Next() {
		if d.assign(f.Key, f.Value) {
			continue
		}
		key := f.Key
		if bytes.IndexByte(key, '\\') >= 0 {
			if key = p.unescape(key); d.assign(key, f.Value) {
				continue
			}
		}
		d.set(attr{name: key, value: f.Value, json: true})
	}
}

// unescape returns the text that the inside of a JSON string spells, in the arena of the event at hand.
func (p *Parser) unescape(inside []byte) []byte {
	start := len(p.arena)
	p.arena = jsonscan.Unescape(p.arena, inside)
	return p.arena[start:len(p.arena):len(p.arena)]
}

// trimSpace leaves off the white space of JSON at both ends.
func trimSpace(src []byte) []byte {
	src = jsonscan.TrimSpace(src)
	for len(src) > 0 {
		switch src[len(src)-1] {
		case ' ', '\t', '\r', '\n':
			src = src[:len(src)-1]
			continue
		}
		break
	}
	return src
}
