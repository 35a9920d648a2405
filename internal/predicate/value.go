package predicate

import (
	"bytes"
	"strconv"
	"unsafe"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/jsonscan"
	"github.com/weirstream/weir/internal/path"
)

type kind uint8

const (
	kindNil kind = iota
	kindBool
	kindInteger
	kindFloat
	kindString
	kindOther // an object or an array, as JSON
)

// value is what an operation of the tree gives. Its bytes alias the event or the expression.
type value struct {
	kind    kind
	truth   bool
	integer int64
	float   float64
	bytes   []byte
}

func (v *value) number() bool { return v.kind == kindInteger || v.kind == kindFloat }

func (v *value) asFloat() float64 {
	if v.kind == kindInteger {
		return float64(v.integer)
	}
	return v.float
}

// valueOf reads what a path led to. Only a string with escapes needs memory of its own.
func valueOf(raw []byte, k path.Kind) value {
	switch k {
	case path.Text:
		return value{kind: kindString, bytes: raw}
	case path.String:
		inside, _ := jsonscan.Inside(raw)
		if bytes.IndexByte(inside, '\\') >= 0 {
			inside = jsonscan.Unescape(nil, inside)
		}
		return value{kind: kindString, bytes: inside}
	case path.Number:
		return number(raw)
	case path.Bool:
		return truth(raw[0] == 't')
	case path.Object, path.Array:
		return value{kind: kindOther, bytes: raw}
	}
	return value{}
}

// number reads a JSON number: an integer if it is written as one and fits, else the nearest float.
func number(raw []byte) value {
	if i, ok := integer(raw); ok {
		return value{kind: kindInteger, integer: i}
	}
	// ParseFloat keeps its argument only in errors, where it is copied. Beyond its range it gives an infinity.
	f, _ := strconv.ParseFloat(unsafe.String(unsafe.SliceData(raw), len(raw)), 64)
	return value{kind: kindFloat, float: f}
}

// integer reads up to 19 digits behind an optional minus.
func integer(raw []byte) (v int64, ok bool) {
	digits := bytes.TrimPrefix(raw, []byte("-"))
	const digitsMax = 19
	if len(digits) == 0 || len(digits) > digitsMax {
		return 0, false
	}
	var u uint64 // 19 digits always fit
	for _, c := range digits {
		if c-'0' > 9 {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if len(digits) < len(raw) {
		return int64(-u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}

// environment decodes e for the machine.
func environment(e *event.Event) map[string]any {
	env := map[string]any{"id": string(e.ID), "type": string(e.Type), "segment": string(e.Segment), "time": int(e.Time)}
	if len(e.Source) > 0 {
		env["source"] = string(e.Source)
	}
	for attrs := e.Attrs; ; {
		k, name, text, rest, ok := attrs.Next()
		if !ok {
			break
		}
		attrs = rest
		if _, taken := env[string(name)]; taken {
			continue // the event's own fields go first, and so does the first attribute of a name
		}
		switch k {
		case event.AttrString:
			env[string(name)] = string(text)
		case event.AttrInteger:
			env[string(name)] = native(number(text))
		case event.AttrBoolean:
			env[string(name)] = string(text) == "true"
		}
	}
	delete(env, "data")
	if e.Kind == event.DataJSON {
		env["data"] = decode(e.Data)
	}
	return env
}

// decode turns valid JSON into what the machine works on.
func decode(raw []byte) any {
	switch k := path.KindOf(raw); k {
	case path.Array:
		list := []any{}
		for elements := jsonscan.Array(raw); ; {
			element, ok := elements.Next()
			if !ok {
				return list
			}
			list = append(list, decode(element))
		}
	case path.Object:
		object := map[string]any{}
		fields := jsonscan.Open(raw, jsonscan.DepthMax)
		for fields.Next() {
			object[string(jsonscan.Unescape(nil, fields.Key))] = decode(fields.Value)
		}
		return object
	default:
		return native(valueOf(raw, k))
	}
}

func native(v value) any {
	switch v.kind {
	case kindBool:
		return v.truth
	case kindInteger:
		return int(v.integer)
	case kindFloat:
		return v.float
	case kindString:
		return string(v.bytes)
	}
	return nil
}
