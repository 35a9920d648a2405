package api

import (
	"net/http"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendString writes s as a JSON string. Bytes that are not UTF-8 become U+FFFD. Characters that mean something in
// HTML are escaped as well: a reply is harmless even where a reader takes it for a page.
func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f {
				dst = append(dst, s[start:i]...)
				dst = appendEscape(dst, c)
				start = i + 1
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, `\ufffd`...)
			start = i + 1
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// object writes the members of one JSON object in the order of the calls. It exists because the replies of this package are
// written without reflection and without maps, whose order is not that of the configuration.
type object struct {
	dst   []byte
	empty bool // the innermost object or array has no member yet
}

func (o *object) comma() {
	if !o.empty {
		o.dst = append(o.dst, ',')
	}
	o.empty = false
}

func (o *object) open(bracket byte) {
	o.dst = append(o.dst, bracket)
	o.empty = true
}

func (o *object) close(bracket byte) {
	o.dst = append(o.dst, bracket)
	o.empty = false
}

// item begins an array element.
func (o *object) item() { o.comma() }

func (o *object) key(name string) {
	o.comma()
	o.dst = appendString(o.dst, name)
	o.dst = append(o.dst, ':')
}

func (o *object) str(name, value string) {
	o.key(name)
	o.dst = appendString(o.dst, value)
}

func (o *object) int(name string, value int64) {
	o.key(name)
	o.dst = strconv.AppendInt(o.dst, value, 10)
}

func (o *object) float(name string, value float64, digits int) {
	o.key(name)
	o.dst = strconv.AppendFloat(o.dst, value, 'f', digits, 64)
}

func (o *object) bool(name string, value bool) {
	o.key(name)
	o.dst = strconv.AppendBool(o.dst, value)
}

// null writes a member that is known to have no value.
func (o *object) null(name string) {
	o.key(name)
	o.dst = append(o.dst, "null"...)
}

func (o *object) strings(name string, values []string) {
	o.key(name)
	o.open('[')
	for _, v := range values {
		o.item()
		o.dst = appendString(o.dst, v)
	}
	o.close(']')
}

// writeJSON sends a whole reply.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone when this fails: nobody to tell
}
