package cloudevents

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/weirstream/weir/internal/jsonscan"
)

// The codes of refusals. They are stable: clients tell refusals apart by them. All but the last three are of single
// events; those are of requests, and CodeBadJSON is of both.
const (
	CodeBadJSON       = "bad_json"        // not JSON, or not in its place
	CodeBadUTF8       = "bad_utf8"        // text that is no UTF-8, or half a surrogate pair
	CodeBadType       = "bad_type"        // a member of another JSON type than its attribute has
	CodeMissingID     = "missing_id"      // no id, or an empty one
	CodeMissingType   = "missing_type"    // no type, or an empty one
	CodeIDTooLong     = "id_too_long"     // an id of more than 128 bytes
	CodeBadVersion    = "bad_specversion" // a specversion other than 1.0
	CodeBadTime       = "bad_time"        // a time that is neither RFC 3339 nor whole milliseconds, or outside the years 1 to 9999
	CodeTimeUnit      = "time_unit"       // an integer time that looks like another unit than milliseconds
	CodeTimeFuture    = "time_future"     // beyond arrival plus skew
	CodeBadAttribute  = "bad_attribute"   // an attribute whose name or value CloudEvents does not allow
	CodeTooManyAttrs  = "too_many_attributes"
	CodeBadBase64     = "bad_base64"
	CodeTwoPayloads   = "two_payloads" // both data and data_base64
	CodeEventTooLarge = "event_too_large"
	CodeSegmentLong   = "segment_too_long" // a segment longer than limits.key_part

	CodeBatchTooLarge    = "batch_too_large"        // more events in one request than limits.batch: 413
	CodeUnsupportedMedia = "unsupported_media_type" // 415
	CodeBadFields        = "bad_fields"             // XADD: a name without a value
)

// valueBytesMax bounds how much of an offending value, or id, a refusal repeats, in bytes.
const valueBytesMax = 128

// refusal is why an event is refused. nil means that it is not.
type refusal struct {
	code, field, value, message, hint string
}

// reject records that the event at hand, the last that was admitted, is refused.
func (p *Parser) reject(r *refusal, id []byte) {
	p.Rejected = append(p.Rejected, Rejection{Index: p.Sent - 1, ID: cut(id), Code: r.code, Field: r.field, Value: r.value,
		Message: r.message, Hint: r.hint})
}

// cut copies text as valid UTF-8 of at most valueBytesMax bytes, not counting the mark of what was left off.
func cut(text []byte) string {
	if len(text) <= valueBytesMax {
		return strings.ToValidUTF8(string(text), "\ufffd")
	}
	end := valueBytesMax
	for end > valueBytesMax-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(string(text[:end]), "\ufffd") + "…"
}

// notJSON explains a mistake that jsonscan found in an event.
func notJSON(err error, field string) *refusal {
	code, hint := CodeBadJSON, "send each event as one JSON object"
	var e *jsonscan.Error
	if errors.As(err, &e) {
		switch e.Reason {
		case jsonscan.UTF8:
			code, hint = CodeBadUTF8, "send UTF-8; put other bytes into data_base64"
		case jsonscan.Surrogate:
			code, hint = CodeBadUTF8, `write a character beyond U+FFFF as itself or as both halves: \ud83d\ude00`
		case jsonscan.Depth:
			hint = fmt.Sprintf("nest arrays and objects at most %d deep", jsonscan.DepthMax)
		}
	}
	return &refusal{code: code, field: field, message: err.Error(), hint: hint}
}

// badBody refuses a request whose grammar is broken.
func badBody(err error, offset int, hint string) error {
	message := err.Error()
	var e *jsonscan.Error
	if errors.As(err, &e) {
		at := *e
		at.Offset += offset
		message = at.Error()
	}
	return &Problem{Status: http.StatusBadRequest, Code: CodeBadJSON, Message: message, Hint: hint}
}

// wrongType refuses a member of the wrong JSON type; without a field, the event itself.
func wrongType(field string, raw []byte, want string) *refusal {
	what := field
	if what == "" {
		what = "the event"
	}
	return &refusal{code: CodeBadType, field: field, value: cut(raw), message: fmt.Sprintf("cannot read %s: got %s; want %s", what, typeName(raw), want)}
}

// typeName names the type of a valid JSON value.
func typeName(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
