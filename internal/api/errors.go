package api

import (
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
)

// The codes of the errors that this package answers with. Codes are stable: clients tell errors apart by them, never
// by their messages. Those of single events and of bodies are cloudevents' own; Codes lists all.
const (
	codeBadArgument      = "bad_argument"
	codeUnknownParameter = "unknown_parameter"
	codeNoArchive        = "no_archive"
	codeKeyParts         = "key_parts"
	codeBadEncoding      = "bad_encoding"
	codeBodyIncomplete   = "body_incomplete"
	codeCrossOrigin      = "cross_origin"
	codeForeignHost      = "foreign_host"
	codeNotFound         = "not_found"
	codeUnknownStream    = "unknown_stream"
	codeUnknownCounter   = "unknown_counter"
	codeMethodNotAllowed = "method_not_allowed"
	codeSlowBody         = "slow_body"
	codeBodyTooLarge     = "body_too_large"
	codeUnsupportedCode  = "unsupported_encoding"
	codeOverloaded       = "overloaded"
	codeDiskFull         = "disk_full"
	codeConnections      = "too_many_connections"
	codeInternal         = "internal"
	codeNotReady         = "not_ready"
	codeCounterBuilding  = "counter_building"
)

// Code is one row of the table of errors: docs/reference/errors.md is written from it, and a test compares the two.
type Code struct {
	Code    string
	Status  int    // of the reply that it comes with
	Meaning string // what happened
	Cure    string // what to do about it
}

// valueBytesMax bounds how much of an offending value is echoed, in bytes.
const valueBytesMax = 128

// failure is a request that is refused: the error reply before it is written.
type failure struct {
	status     int
	code       string
	message    string
	field      string
	value      string
	hint       string
	retryAfter time.Duration // sent with 429 and 503, in whole seconds, at least one
	progress   float64       // 0..1, sent with counter_building
}

func (f *failure) Error() string { return f.message }

// badArgument refuses the value of one parameter.
func badArgument(field, value, message, hint string) *failure {
	return &failure{status: http.StatusBadRequest, code: codeBadArgument, message: message, field: field, value: value, hint: hint}
}

// write sends f. Nothing of the reply may have been sent before.
func (f *failure) write(w http.ResponseWriter) {
	if f.status == http.StatusTooManyRequests || f.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.FormatInt(retrySeconds(f.retryAfter), 10))
	}
	writeJSON(w, f.status, f.appendJSON(nil))
}

// appendJSON writes the error object. All five fields are always there, so that a client may read them unasked.
func (f *failure) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"error":{"code":`...)
	dst = appendString(dst, f.code)
	dst = append(dst, `,"message":`...)
	dst = appendString(dst, f.message)
	dst = append(dst, `,"field":`...)
	dst = appendString(dst, f.field)
	dst = append(dst, `,"value":`...)
	dst = appendString(dst, cut(f.value))
	dst = append(dst, `,"hint":`...)
	dst = appendString(dst, f.hint)
	if f.code == codeCounterBuilding {
		dst = append(dst, `,"progress":`...)
		dst = strconv.AppendFloat(dst, min(max(f.progress, 0), 1), 'f', 4, 64)
	}
	return append(dst, "}}\n"...)
}

// retrySeconds rounds d up to what Retry-After can say.
func retrySeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// cut shortens s to valueBytesMax bytes without splitting a character.
func cut(s string) string {
	if len(s) <= valueBytesMax {
		return s
	}
	end := valueBytesMax
	for end > valueBytesMax-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
