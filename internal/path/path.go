// Package path says where in an event a value is found: a CloudEvents attribute by its name, or a field of the payload.
//
// A path is parsed once, when the configuration is read, and looked up once an event. The look-up reads the event's
// bytes where they lie, decodes nothing and allocates nothing.
package path

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/jsonscan"
)

const (
	// textBytesMax bounds the text of a path.
	textBytesMax = 256
	// namesMax bounds how many fields deep a path may lead.
	namesMax = 16
	// dataName is the first part of every path into the payload.
	dataName = "data"
)

// Kind is what a path leads to in one event.
type Kind uint8

const (
	Missing Kind = iota // nothing there
	Null                // JSON null
	String              // a JSON string
	Text                // a string that lies in the event as it is, without quotes and escapes: an attribute
	Number              // a JSON number
	Bool                // true or false
	Object              // a JSON object
	Array               // a JSON array
)

type place uint8

const (
	placeAttr place = iota // an attribute that has no field of its own, by name
	placeID
	placeType
	placeSource
	placeTime
	placeSegment
	placeData
)

// Path leads to one value of an event. The zero Path leads nowhere: see IsZero.
type Path struct {
	text  string
	place place
	names []string // below data
}

// Parse reads a path: an attribute ("id", "type", "source", "subject", "time", "partitionkey", an extension), "segment"
// for what the event is routed by, or "data.a.b" for a field of the payload ("data" for all of it). "time" is a number
// of milliseconds. Names below data may hold anything but a dot.
func Parse(s string) (Path, error) {
	if s == "" || len(s) > textBytesMax {
		return Path{}, fmt.Errorf("cannot read path %.64q: got %d bytes; want 1 to %d", s, len(s), textBytesMax)
	}
	p := Path{text: s}
	names := strings.Split(s, ".")
	if names[0] == dataName {
		p.place, p.names = placeData, names[1:]
		return p, p.checkNames()
	}
	if len(names) > 1 {
		return Path{}, fmt.Errorf("cannot read path %q: got a field of attribute %q; want an attribute such as %q, or a field of the payload such as %q",
			s, names[0], names[0], "data."+s)
	}
	for i := range len(s) {
		if c := s[i]; c-'a' > 'z'-'a' && c-'0' > 9 {
			return Path{}, fmt.Errorf("cannot read path %q: got %q in an attribute's name; want a-z and 0-9 only", s, c)
		}
	}
	switch s {
	case "id":
		p.place = placeID
	case "type":
		p.place = placeType
	case "source":
		p.place = placeSource
	case "time":
		p.place = placeTime
	case "segment":
		p.place = placeSegment
	}
	return p, nil
}

func (p Path) checkNames() error {
	if len(p.names) > namesMax {
		return fmt.Errorf("cannot read path %q: got %d names; want at most %d below data", p.text, len(p.names), namesMax)
	}
	for _, name := range p.names {
		if name == "" {
			return fmt.Errorf("cannot read path %q: got an empty name; want one between any two dots", p.text)
		}
	}
	return nil
}

// String returns the path as it was written.
func (p Path) String() string { return p.text }

// IsZero tells the zero Path.
func (p Path) IsZero() bool { return p.text == "" }

// Below returns the names of the fields that lead from the payload's root to the value. ok is false for a path to an
// attribute.
func (p Path) Below() (names []string, ok bool) { return p.names, p.place == placeData }

// Raw returns the bytes of the value in e, and what they are. They alias e, except that the time of an event is
// written into scratch. A Text is the string itself, every other kind its JSON.
//
// The payload counts as JSON only where it was sent as JSON: below binary data everything is missing.
func (p Path) Raw(e *event.Event, scratch []byte) (raw []byte, kind Kind) {
	switch p.place {
	case placeID:
		return e.ID, Text
	case placeType:
		return e.Type, Text
	case placeSource:
		return optional(e.Source)
	case placeTime:
		return strconv.AppendInt(scratch[:0], e.Time, 10), Number
	case placeSegment:
		return e.Segment, Text
	case placeData:
		return p.rawData(e)
	}
	return p.rawAttr(e)
}

func optional(text []byte) (raw []byte, kind Kind) {
	if len(text) == 0 {
		return nil, Missing
	}
	return text, Text
}

func (p Path) rawAttr(e *event.Event) (raw []byte, kind Kind) {
	attr, value, ok := e.Attrs.Get(p.text)
	switch {
	case !ok:
		return nil, Missing
	case attr == event.AttrInteger:
		return value, Number
	case attr == event.AttrBoolean:
		return value, Bool
	}
	return value, Text
}

func (p Path) rawData(e *event.Event) (raw []byte, kind Kind) {
	if e.Kind != event.DataJSON {
		return nil, Missing
	}
	raw, ok := jsonscan.Get(e.Data, p.names...)
	if !ok {
		return nil, Missing
	}
	return raw, KindOf(raw)
}

// KindOf returns the kind of a valid JSON value.
func KindOf(raw []byte) Kind {
	if len(raw) == 0 {
		return Missing
	}
	switch raw[0] {
	case '"':
		return String
	case '{':
		return Object
	case '[':
		return Array
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

// AppendKeyPart appends the text of the value as part of a counter's key, or as a segment: strings as they are,
// numbers in canonical JSON (jsonscan.AppendCanonicalNumber), booleans as true and false; so "1", 1 and 1.0 are one
// key. ok is false, and dst unchanged, for a value that is missing, null, an object or an array, and for a number whose
// exponent has no canonical text.
func (p Path) AppendKeyPart(dst []byte, e *event.Event) (out []byte, ok bool) {
	if p.place == placeTime {
		return strconv.AppendInt(dst, e.Time, 10), true
	}
	raw, kind := p.Raw(e, nil)
	return appendKeyPart(dst, raw, kind)
}

func appendKeyPart(dst, raw []byte, kind Kind) (out []byte, ok bool) {
	switch kind {
	case Text, Bool:
		return append(dst, raw...), true
	case String:
		inside, ok := jsonscan.Inside(raw)
		return jsonscan.Unescape(dst, inside), ok
	case Number:
		return jsonscan.AppendCanonicalNumber(dst, raw)
	}
	return dst, false
}
