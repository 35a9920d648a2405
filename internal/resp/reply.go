package resp

import (
	"strconv"
	"unicode/utf8"
)

// echoBytesMax bounds what an error repeats of a client's argument.
const echoBytesMax = 128

func appendStatus(dst []byte, s string) []byte {
	return append(append(append(dst, '+'), s...), '\r', '\n')
}

// appendError appends an error: code is its first word in capitals. Neither may come from a client as it is: see
// echo.
func appendError(dst []byte, code, message string) []byte {
	dst = append(append(append(append(dst, '-'), code...), ' '), message...)
	return append(dst, '\r', '\n')
}

func appendInt(dst []byte, n int64) []byte {
	return append(strconv.AppendInt(append(dst, ':'), n, 10), '\r', '\n')
}

func appendHeader(dst []byte, kind byte, n int) []byte {
	dst = append(dst, kind)
	if n >= 0 && n < 10 {
		return append(dst, byte('0'+n), '\r', '\n')
	}
	return append(strconv.AppendInt(dst, int64(n), 10), '\r', '\n')
}

func appendArray(dst []byte, n int) []byte { return appendHeader(dst, '*', n) }

// appendMap appends the head of n pairs: RESP2 has no maps and lists names and values in turn.
func appendMap(dst []byte, proto, n int) []byte {
	if proto >= 3 {
		return appendHeader(dst, '%', n)
	}
	return appendHeader(dst, '*', 2*n)
}

func appendNull(dst []byte, proto int) []byte {
	if proto >= 3 {
		return append(dst, "_\r\n"...)
	}
	return append(dst, "$-1\r\n"...)
}

// appendBool appends a boolean, which RESP2 spells as an integer.
func appendBool(dst []byte, proto int, b bool) []byte {
	switch {
	case proto >= 3 && b:
		return append(dst, "#t\r\n"...)
	case proto >= 3:
		return append(dst, "#f\r\n"...)
	case b:
		return append(dst, ":1\r\n"...)
	}
	return append(dst, ":0\r\n"...)
}

func appendBulk[T string | []byte](dst []byte, s T) []byte {
	dst = appendHeader(dst, '$', len(s))
	return append(append(dst, s...), '\r', '\n')
}

// appendText appends a text meant for people to read, which RESP3 marks as such.
func appendText(dst []byte, proto int, s []byte) []byte {
	if proto < 3 {
		return appendBulk(dst, s)
	}
	dst = append(appendHeader(dst, '=', len(s)+len("txt:")), "txt:"...)
	return append(append(dst, s...), '\r', '\n')
}

// appendBulkInt appends a bulk string with n in decimal.
func appendBulkInt(dst []byte, n int64) []byte {
	var digits [20]byte
	return appendBulk(dst, strconv.AppendInt(digits[:0], n, 10))
}

// echo makes text from a client fit to be repeated in an error: printable, on one line, of bounded length.
func echo[T string | []byte](s T) string {
	cut := len(s) > echoBytesMax
	if cut {
		s = s[:echoBytesMax]
	}
	out := make([]byte, 0, len(s)+3)
	for _, r := range string(s) {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			r = '?'
		}
		out = utf8.AppendRune(out, r)
	}
	if cut {
		out = append(out, "..."...)
	}
	return string(out)
}

// oneLine makes a message of the backend, which may quote a client, fit for an error.
func oneLine(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c < ' ' || c == 0x7f {
			out[i] = ' '
		}
	}
	return string(out)
}
