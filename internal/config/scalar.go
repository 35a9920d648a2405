package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/path"
	"github.com/weirstream/weir/internal/predicate"
)

// text reads any text but the empty one.
func (r *reader) text(v value, dst *string) {
	if text, _, ok := r.filled(v); ok {
		*dst = text
	}
}

// filled is scalar without the empty text.
func (r *reader) filled(v value) (text string, at place, ok bool) {
	text, at, ok = r.scalar(v)
	if ok && text == "" {
		r.mistake(v.path, at, "is empty", "give it a value, or remove it to use the default")
		return "", at, false
	}
	return text, at, ok
}

func (r *reader) boolean(v value, dst *bool) {
	text, at, ok := r.scalar(v)
	if !ok {
		return
	}
	switch strings.ToLower(text) {
	case "true":
		*dst = true
	case "false":
		*dst = false
	default:
		r.mistake(v.path, at, fmt.Sprintf("want true or false, got %q", text), "write true or false")
	}
}

// integer reports whether it read one.
func (r *reader) integer(v value, dst *int, low, high int) bool {
	text, at, ok := r.scalar(v)
	if !ok {
		return false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.mistake(v.path, at, fmt.Sprintf("want a whole number, got %q", text), fmt.Sprintf("write a number from %d to %d, digits only", low, high))
		return false
	}
	if n < int64(low) || n > int64(high) {
		r.mistake(v.path, at, fmt.Sprintf("%d is out of range", n), fmt.Sprintf("write a number from %d to %d", low, high))
		return false
	}
	*dst = int(n)
	return true
}

// size reports whether it read one.
func (r *reader) size(v value, dst *int64, low, high int64) bool {
	text, at, ok := r.scalar(v)
	if !ok {
		return false
	}
	n, err := ParseSize(text)
	if err != nil {
		r.mistake(v.path, at, fmt.Sprintf("want a size, got %q", text), "write a whole number and KiB, MiB or GiB, such as "+FormatSize(max(low, min(64<<20, high)))+"; a number alone is bytes")
		return false
	}
	if n < low || n > high {
		r.mistake(v.path, at, text+" is out of range", fmt.Sprintf("write a size from %s to %s", FormatSize(low), FormatSize(high)))
		return false
	}
	*dst = n
	return true
}

// duration reports whether it read one.
func (r *reader) duration(v value, dst *int64, low, high int64) bool {
	text, at, ok := r.scalar(v)
	if !ok {
		return false
	}
	ms, err := ParseDuration(text)
	if err != nil {
		r.mistake(v.path, at, fmt.Sprintf("want a duration, got %q", text), "write whole numbers with ms, s, m, h, d or w, largest first, such as 90s or 1h30m")
		return false
	}
	if ms < low || ms > high {
		r.mistake(v.path, at, text+" is out of range", fmt.Sprintf("write a duration from %s to %s", FormatDuration(low), FormatDuration(high)))
		return false
	}
	*dst = ms
	return true
}

func (r *reader) future(v value, dst *Future) {
	text, at, ok := r.scalar(v)
	if !ok {
		return
	}
	switch f := Future(text); f {
	case FutureReject, FutureClamp, FutureAccept:
		*dst = f
	default:
		r.mistake(v.path, at, fmt.Sprintf("want reject, clamp or accept, got %q", text), "reject refuses events from beyond the skew, clamp moves them to its end, accept takes them as they are")
	}
}

func (r *reader) measure(v value, dst *string) {
	text, at, ok := r.scalar(v)
	if !ok {
		return
	}
	if text != MeasureCount {
		r.mistake(v.path, at, fmt.Sprintf("this version of Weir cannot measure %q", text), "write count, or remove the line: counting events is what this version measures")
		return
	}
	*dst = text
}

// path reads where a value is found in an event.
func (r *reader) path(v value, dst *string) {
	text, at, ok := r.filled(v)
	if !ok {
		return
	}
	if _, err := path.Parse(text); err != nil {
		r.mistake(v.path, at, err.Error(), "name an attribute of the event (id, type, source, subject, partitionkey, an extension), or a field of its data as data.a.b")
		return
	}
	*dst = text
}

// condition reads a counter's where.
func (r *reader) condition(v value, dst *string) {
	text, at, ok := r.filled(v)
	if !ok {
		return
	}
	if len(text) > whereBytesMax {
		r.mistake(v.path, at, fmt.Sprintf("is %d bytes long, longer than %d", len(text), whereBytesMax), "let producers compute part of it into a field of the event")
		return
	}
	if _, err := predicate.Compile(text); err != nil {
		r.mistake(v.path, at, err.Error(), "write a condition on the event, such as type == \"click\" && data.price > 0, or remove the line to count every event")
		return
	}
	*dst = text
}

// checkName checks the name of a stream or counter.
func (r *reader) checkName(path, name string, at place) {
	ok := name != "" && len(name) <= nameBytesMax && name[0] != '_' && name[0] != '-'
	for i := range len(name) {
		c := name[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		r.mistake(path, at, fmt.Sprintf("%q is no name", name), fmt.Sprintf("use up to %d of a-z, 0-9, _ and -, beginning with a letter or digit", nameBytesMax))
	}
}
