// Package jsonscan reads JSON where it lies: it validates bytes and hands out slices of them, and allocates nothing.
//
// Two families of functions share the grammar of RFC 8259. Value and Fields read bytes that nobody has checked: what
// they return is valid JSON in valid UTF-8, nested at most DepthMax deep. Get, Elements and the Append functions read
// bytes that Value or Fields returned: they skip without checking again, stay within bounds on any bytes, and mean
// nothing on bytes that are not valid.
//
// The scanner accepts what encoding/json.Valid accepts, except for three things that would make two readers see two
// different texts: bytes that are no UTF-8, escaped surrogates without their other half (RFC 7493 forbids both, and
// CloudEvents follows it), and nesting beyond the bound. docs/design/0004-json.md measures it against libraries.
package jsonscan

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// DepthMax is how deep arrays and objects may nest: deep enough for any event, and shallow enough for every stack.
const DepthMax = 128

// Reason is why bytes were refused.
type Reason uint8

const (
	None      Reason = iota
	Syntax           // not the grammar of RFC 8259
	Truncated        // the grammar, but the end is missing
	UTF8             // a string holds bytes that are no UTF-8
	Surrogate        // a \u escape of one half of a surrogate pair
	Depth            // arrays and objects nest deeper than the bound
)

var reasonTexts = [...]string{None: "valid JSON", Syntax: "unexpected byte", Truncated: "unexpected end",
	UTF8: "bytes that are no UTF-8", Surrogate: "half of a surrogate pair", Depth: "nested too deep"}

func (r Reason) String() string { return reasonTexts[r] }

// Error says where JSON stops to be valid.
type Error struct {
	Reason Reason
	Offset int // in the bytes that were scanned
	Byte   byte
}

func (e *Error) Error() string {
	if e.Reason == Syntax {
		return fmt.Sprintf("cannot read JSON: got unexpected byte %q at offset %d", e.Byte, e.Offset)
	}
	return fmt.Sprintf("cannot read JSON: got %s at offset %d", e.Reason, e.Offset)
}

func newError(src []byte, at int, why Reason) *Error {
	e := &Error{Reason: why, Offset: min(at, len(src))}
	if at >= 0 && at < len(src) {
		e.Byte = src[at]
	} else if why == Syntax {
		e.Reason = Truncated
	}
	return e
}

// Value validates the JSON value at the head of src, white space before it aside, and returns its bytes and what
// follows. depthMax bounds the nesting of arrays and objects. The error is an *Error.
func Value(src []byte, depthMax int) (value, tail []byte, err error) {
	start := skipSpace(src, 0)
	end, why := scanValue(src, start, depthMax)
	if why != None {
		return nil, nil, newError(src, end, why)
	}
	return src[start:end:end], src[end:], nil
}

// Document is Value for bytes that hold one value and nothing else but white space.
func Document(src []byte, depthMax int) (value []byte, err error) {
	value, tail, err := Value(src, depthMax)
	if err != nil {
		return nil, err
	}
	if at := skipSpace(tail, 0); at < len(tail) {
		return nil, newError(src, len(src)-len(tail)+at, Syntax)
	}
	return value, nil
}

// TrimSpace returns src without the white space of JSON at its head.
func TrimSpace(src []byte) []byte { return src[skipSpace(src, 0):] }

func skipSpace(src []byte, i int) int {
	for i < len(src) && src[i] <= ' ' && (src[i] == ' ' || src[i] == '\n' || src[i] == '\r' || src[i] == '\t') {
		i++
	}
	return i
}

// scanValue validates the value at src[i]. end is where it ends, or the offset of what is wrong with it. depth is how
// many more levels may open.
func scanValue(src []byte, i, depth int) (end int, why Reason) {
	if i >= len(src) {
		return i, Truncated
	}
	switch c := src[i]; {
	case c == '"':
		return scanString(src, i+1)
	case c == '{':
		return scanObject(src, i+1, depth)
	case c == '[':
		return scanArray(src, i+1, depth)
	case c == '-' || c-'0' <= 9:
		return scanNumber(src, i)
	case c == 't':
		return scanWord(src, i, "true")
	case c == 'f':
		return scanWord(src, i, "false")
	case c == 'n':
		return scanWord(src, i, "null")
	}
	return i, Syntax
}

func scanWord(src []byte, i int, word string) (end int, why Reason) {
	if len(src)-i >= len(word) && string(src[i:i+len(word)]) == word {
		return i + len(word), None
	}
	for k := 0; k < len(word); k++ {
		if i+k >= len(src) {
			return i + k, Truncated
		}
		if src[i+k] != word[k] {
			return i + k, Syntax
		}
	}
	return i + len(word), None
}

func scanObject(src []byte, i, depth int) (end int, why Reason) {
	if depth <= 0 {
		return i - 1, Depth
	}
	i = skipSpace(src, i)
	if i < len(src) && src[i] == '}' {
		return i + 1, None
	}
	for {
		if i, why = scanKey(src, i); why != None {
			return i, why
		}
		if i, why = scanValue(src, i, depth-1); why != None {
			return i, why
		}
		if i < len(src) && src[i] <= ' ' {
			i = skipSpace(src, i)
		}
		if i >= len(src) {
			return i, Truncated
		}
		if src[i] == '}' {
			return i + 1, None
		}
		if src[i] != ',' {
			return i, Syntax
		}
		i++
		if i < len(src) && src[i] <= ' ' {
			i = skipSpace(src, i)
		}
	}
}

// scanKey validates a member's name and colon at src[i] and returns where its value begins.
func scanKey(src []byte, i int) (valueAt int, why Reason) {
	if i >= len(src) {
		return i, Truncated
	}
	if src[i] != '"' {
		return i, Syntax
	}
	if i, why = scanString(src, i+1); why != None {
		return i, why
	}
	return scanColon(src, i)
}

func scanColon(src []byte, i int) (valueAt int, why Reason) {
	if i < len(src) && src[i] <= ' ' {
		i = skipSpace(src, i)
	}
	if i >= len(src) {
		return i, Truncated
	}
	if src[i] != ':' {
		return i, Syntax
	}
	i++
	if i < len(src) && src[i] <= ' ' {
		i = skipSpace(src, i)
	}
	return i, None
}

func scanArray(src []byte, i, depth int) (end int, why Reason) {
	if depth <= 0 {
		return i - 1, Depth
	}
	i = skipSpace(src, i)
	if i < len(src) && src[i] == ']' {
		return i + 1, None
	}
	for {
		if i, why = scanValue(src, i, depth-1); why != None {
			return i, why
		}
		if i < len(src) && src[i] <= ' ' {
			i = skipSpace(src, i)
		}
		if i >= len(src) {
			return i, Truncated
		}
		if src[i] == ']' {
			return i + 1, None
		}
		if src[i] != ',' {
			return i, Syntax
		}
		i = skipSpace(src, i+1)
	}
}

func scanNumber(src []byte, i int) (end int, why Reason) {
	if src[i] == '-' {
		i++
		if i >= len(src) {
			return i, Truncated
		}
		if src[i]-'0' > 9 {
			return i, Syntax
		}
	}
	if src[i] == '0' {
		i++
	} else {
		i = skipDigits(src, i)
	}
	if i < len(src) && src[i] == '.' {
		if i, why = scanDigits(src, i+1); why != None {
			return i, why
		}
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		return scanDigits(src, i)
	}
	return i, None
}

// scanDigits wants at least one digit at src[i].
func scanDigits(src []byte, i int) (end int, why Reason) {
	end = skipDigits(src, i)
	if end > i {
		return end, None
	}
	if i >= len(src) {
		return i, Truncated
	}
	return i, Syntax
}

func skipDigits(src []byte, i int) int {
	for i < len(src) && src[i]-'0' <= 9 {
		i++
	}
	return i
}

// The words of the eight-bytes-at-a-time search: a constant byte in each of the eight places.
const (
	ones      = 0x0101010101010101
	highs     = 0x8080808080808080
	quotes    = '"' * ones
	slashes   = '\\' * ones
	spaces    = ' ' * ones
	wordBytes = 8
)

// scanString validates the string whose opening quote lies before src[i]; end is behind its closing quote.
//
// A byte needs a look when it is a quote, a backslash, a control character or beyond ASCII. Eight bytes are tested at
// once: subtracting carries into the high bit of a byte that is too small, and a borrow can only spoil bytes above the
// first true hit, which is the one that is used.
func scanString(src []byte, i int) (end int, why Reason) {
	for i+wordBytes <= len(src) {
		w := binary.LittleEndian.Uint64(src[i:])
		hit := (w | (w - spaces) | ((w ^ quotes) - ones) | ((w ^ slashes) - ones)) & highs
		if hit == 0 {
			i += wordBytes
			continue
		}
		i += bits.TrailingZeros64(hit) / wordBytes
		if src[i] == '"' {
			return i + 1, None
		}
		if i, why = scanOdd(src, i); why != None {
			return i, why
		}
	}
	for i < len(src) {
		if plain(src[i]) {
			i++
			continue
		}
		if src[i] == '"' {
			return i + 1, None
		}
		if i, why = scanOdd(src, i); why != None {
			return i, why
		}
	}
	return i, Truncated
}

// scanOdd validates what begins at src[i], which is neither plain nor a quote.
func scanOdd(src []byte, i int) (end int, why Reason) {
	switch c := src[i]; {
	case c == '\\':
		return scanEscape(src, i)
	case c >= utf8.RuneSelf:
		return scanRunes(src, i)
	}
	return i, Syntax
}

func plain(c byte) bool { return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' }

// scanRunes validates the run of characters beyond ASCII at src[i].
func scanRunes(src []byte, i int) (end int, why Reason) {
	for i < len(src) && src[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n <= 1 {
			return i, UTF8
		}
		i += n
	}
	return i, None
}

// scanEscape validates the escape whose backslash is src[i].
func scanEscape(src []byte, i int) (end int, why Reason) {
	if i+1 >= len(src) {
		return len(src), Truncated
	}
	switch src[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, None
	case 'u':
		return scanUnicode(src, i)
	}
	return i + 1, Syntax
}

func scanUnicode(src []byte, i int) (end int, why Reason) {
	first, bad := hex4(src, i+2)
	if bad >= 0 {
		return bad, cutOff(src, bad)
	}
	switch {
	case first < surrogateHigh || first > surrogateLast:
		return i + 6, None
	case first >= surrogateLow || i+7 >= len(src) || src[i+6] != '\\' || src[i+7] != 'u':
		return i, Surrogate
	}
	second, bad := hex4(src, i+8)
	if bad >= 0 {
		return bad, cutOff(src, bad)
	}
	if second < surrogateLow || second > surrogateLast {
		return i, Surrogate
	}
	return i + 12, None
}

// The three borders of the surrogates: high halves begin, low halves begin, the last low half.
const (
	surrogateHigh = 0xD800
	surrogateLow  = 0xDC00
	surrogateLast = 0xDFFF
)

func cutOff(src []byte, at int) Reason {
	if at >= len(src) {
		return Truncated
	}
	return Syntax
}

// hex4 reads four hexadecimal digits. bad is the offset of the first that is none, or -1.
func hex4(src []byte, i int) (v rune, bad int) {
	for k := i; k < i+4; k++ {
		if k >= len(src) {
			return 0, len(src)
		}
		d := src[k]
		switch {
		case d-'0' <= 9:
			d -= '0'
		case d|0x20 >= 'a' && d|0x20 <= 'f':
			d = d | 0x20 - 'a' + 10
		default:
			return 0, k
		}
		v = v<<4 | rune(d)
	}
	return v, -1
}
