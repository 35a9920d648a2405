package jsonscan

import (
	"bytes"
	"unicode/utf8"
)

// Inside returns a valid JSON string without its quotes. ok is false for a value of another type.
func Inside(value []byte) (inside []byte, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, false
	}
	return value[1 : len(value)-1], true
}

// Unescape appends the text that the inside of a valid JSON string spells.
func Unescape(dst, inside []byte) []byte {
	for {
		slash := bytes.IndexByte(inside, '\\')
		if slash < 0 {
			return append(dst, inside...)
		}
		dst = append(dst, inside[:slash]...)
		var n int
		dst, n = appendEscape(dst, inside[slash:])
		inside = inside[slash+n:]
	}
}

// appendEscape appends what the escape at the head of src stands for and returns the escape's length.
func appendEscape(dst, src []byte) (out []byte, n int) {
	if len(src) < 2 {
		return dst, len(src)
	}
	switch c := src[1]; c {
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'u':
		r, n := unicodeEscape(src)
		return utf8.AppendRune(dst, r), n
	default:
		return append(dst, c), 2
	}
}

func unicodeEscape(src []byte) (r rune, n int) {
	r, bad := hex4(src, 2)
	if bad >= 0 {
		return utf8.RuneError, len(src)
	}
	if r < surrogateHigh || r > surrogateLast {
		return r, 6
	}
	low, bad := hex4(src, 8)
	if bad >= 0 || r >= surrogateLow || low < surrogateLow || low > surrogateLast {
		return utf8.RuneError, 6
	}
	return (r-surrogateHigh)<<10 + (low - surrogateLow) + 0x10000, 12
}

// CompareText orders the text that the inside of a valid JSON string spells against text, byte by byte: -1, 0 or +1.
func CompareText(inside []byte, text string) int {
	var room [utf8.UTFMax]byte
	for {
		slash := bytes.IndexByte(inside, '\\')
		run := inside
		if slash >= 0 {
			run = inside[:slash]
		}
		n := min(len(run), len(text))
		if c := bytes.Compare(run[:n], []byte(text[:n])); c != 0 {
			return c
		}
		if len(run) > n {
			return 1
		}
		text = text[n:]
		if slash < 0 {
			return lengthOrder(0, len(text))
		}
		piece, used := appendEscape(room[:0], inside[slash:])
		inside = inside[slash+used:]
		n = min(len(piece), len(text))
		if c := bytes.Compare(piece[:n], []byte(text[:n])); c != 0 {
			return c
		}
		if len(piece) > n {
			return 1
		}
		text = text[n:]
	}
}

func lengthOrder(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD, control characters
// escapes.
func AppendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if !plain(c) {
				dst = appendEscaped(append(dst, s[start:i]...), c)
				start = i + 1
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(s[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(append(dst, s[start:i]...), "\ufffd"...)
			start = i + 1
		}
		i += n
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}
