package jsonscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Fields walks the members of an object that nobody has checked yet, in one pass: what Next returned is valid.
//
//	f := jsonscan.Open(src, jsonscan.DepthMax)
//	for f.Next() {
//		use(f.Key, f.Value)
//	}
//	err := f.Err()
type Fields struct {
	Key   []byte // the name between its quotes, escapes as they were sent: see Unescape
	Value []byte // the value's bytes

	src   []byte
	at    int
	depth int
	why   Reason
	state fieldsState
}

type fieldsState uint8

const (
	fieldsFirst fieldsState = iota
	fieldsMore
	fieldsDone
)

// Open starts at the object at the head of src. A value of another type is a Syntax error at its first byte.
func Open(src []byte, depthMax int) Fields {
	f := Fields{src: src, at: skipSpace(src, 0), depth: depthMax - 1}
	switch {
	case f.at >= len(src):
		f.fail(f.at, Truncated)
	case src[f.at] != '{':
		f.fail(f.at, Syntax)
	case depthMax <= 0:
		f.fail(f.at, Depth)
	default:
		f.at++
	}
	return f
}

func (f *Fields) fail(at int, why Reason) bool {
	f.at, f.why, f.state = at, why, fieldsDone
	return false
}

// Next moves to the next member. It is false at the end and at the first mistake: see Err.
func (f *Fields) Next() bool {
	if f.state == fieldsDone {
		return false
	}
	i := skipSpace(f.src, f.at)
	if i >= len(f.src) {
		return f.fail(i, Truncated)
	}
	switch c := f.src[i]; {
	case c == '}':
		f.at, f.state = i+1, fieldsDone
		return false
	case f.state == fieldsFirst:
		f.state = fieldsMore
	case c != ',':
		return f.fail(i, Syntax)
	default:
		i = skipSpace(f.src, i+1)
	}
	return f.member(i)
}

func (f *Fields) member(i int) bool {
	if i >= len(f.src) {
		return f.fail(i, Truncated)
	}
	if f.src[i] != '"' {
		return f.fail(i, Syntax)
	}
	end, why := scanString(f.src, i+1)
	if why != None {
		return f.fail(end, why)
	}
	f.Key = f.src[i+1 : end-1]
	start, why := scanColon(f.src, end)
	if why != None {
		return f.fail(start, why)
	}
	end, why = scanValue(f.src, start, f.depth)
	if why != None {
		return f.fail(end, why)
	}
	f.Value, f.at = f.src[start:end:end], end
	return true
}

// Err returns what stopped Next: nil at the end of a whole object, else an *Error.
func (f *Fields) Err() error {
	if f.why == None {
		return nil
	}
	return newError(f.src, f.at, f.why)
}

// Tail returns what follows the object, once Next has reached its end without a mistake.
func (f *Fields) Tail() []byte { return f.src[f.at:] }

// Get returns the value under names, one object inside the other, in the valid JSON value. ok is false where there is
// none. Of several members of one name the last is the one, as in encoding/json.
func Get(value []byte, names ...string) (found []byte, ok bool) {
	for _, name := range names {
		if value, ok = member(value, name); !ok {
			return nil, false
		}
	}
	return value, len(value) > 0
}

// member returns the last member called name of a valid object.
func member(object []byte, name string) (value []byte, ok bool) {
	w := members(object)
	for w.next() {
		if KeyIs(w.key, name) {
			value, ok = w.value, true
		}
	}
	return value, ok
}

// Members sets values[i] to the value of the last member called names[i] of the valid JSON value, and to nil where there is
// none: Get for several names in one walk.
func Members(object []byte, names []string, values [][]byte) {
	clear(values)
	w := members(object)
	for w.next() {
		for i, name := range names {
			if KeyIs(w.key, name) {
				values[i] = w.value
			}
		}
	}
}

// walk goes from member to member of a valid object.
type walk struct {
	object     []byte
	at         int
	key, value []byte // the key without its quotes, escapes and all
}

// members starts at a valid JSON value; one that is no object has no members.
func members(object []byte) walk {
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return walk{}
	}
	return walk{object: object, at: i + 1}
}

func (w *walk) next() bool {
	object, i := w.object, w.at
	for i < len(object) && (object[i] <= ' ' || object[i] == ',') {
		i++
	}
	if i >= len(object) || object[i] != '"' {
		return false
	}
	keyEnd := skipString(object, i+1)
	w.key = object[i+1 : max(keyEnd-1, i+1)]
	i = keyEnd
	for i < len(object) && (object[i] <= ' ' || object[i] == ':') {
		i++
	}
	w.at = skipValue(object, i)
	w.value = object[i:w.at:w.at]
	return true
}

// KeyIs tells whether the inside of a valid JSON string, escapes and all, spells text.
func KeyIs(inside []byte, text string) bool {
	if string(inside) == text {
		return true
	}
	if len(inside) <= len(text) || bytes.IndexByte(inside, '\\') < 0 {
		return false // an escape is never shorter than what it stands for
	}
	return CompareText(inside, text) == 0
}

// Elements walks the elements of an array that Value has checked.
type Elements struct {
	src []byte
	at  int
}

// Array starts at the valid array at the head of src; a value of another type has no elements.
func Array(array []byte) Elements {
	i := skipSpace(array, 0)
	if i >= len(array) || array[i] != '[' {
		return Elements{}
	}
	return Elements{src: array, at: i + 1}
}

// Next returns the next element.
func (e *Elements) Next() (value []byte, ok bool) {
	i := e.at
	for i < len(e.src) && (e.src[i] <= ' ' || e.src[i] == ',') {
		i++
	}
	if i >= len(e.src) || e.src[i] == ']' {
		e.at = len(e.src)
		return nil, false
	}
	end := skipValue(e.src, i)
	if end == i { // only where the bytes are not valid
		end = len(e.src)
	}
	e.at = end
	return e.src[i:end:end], true
}

// skipValue returns the end of the valid value at src[i].
func skipValue(src []byte, i int) int {
	if i >= len(src) {
		return len(src)
	}
	switch src[i] {
	case '"':
		return skipString(src, i+1)
	case '{', '[':
		return skipContainer(src, i)
	}
	for i < len(src) && src[i] > ' ' && src[i] != ',' && src[i] != '}' && src[i] != ']' {
		i++
	}
	return i
}

func skipContainer(src []byte, i int) int {
	for depth := 0; i < len(src); {
		switch src[i] {
		case '"':
			i = skipString(src, i+1)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return i
}

// skipString returns the end, behind the closing quote, of the valid string whose opening quote lies before src[i].
func skipString(src []byte, i int) int {
	for i+wordBytes <= len(src) {
		w := binary.LittleEndian.Uint64(src[i:])
		q, s := w^quotes, w^slashes
		hit := ((q-ones)&^q | (s-ones)&^s) & highs
		if hit == 0 {
			i += wordBytes
			continue
		}
		i += bits.TrailingZeros64(hit) / wordBytes
		if src[i] == '"' {
			return i + 1
		}
		i += 2
	}
	for i < len(src) {
		switch src[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
		i++
	}
	return len(src)
}

// SkipBroken returns what follows the array element at the head of src, judging by quotes and brackets alone: so a
// reader gets past an element that Value refused. ok is false where no end is found.
func SkipBroken(src []byte) (tail []byte, ok bool) {
	i := skipSpace(src, 0)
	end := skipValue(src, i)
	return src[end:], end > i && end < len(src)
}
