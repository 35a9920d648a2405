package cloudevents

import (
	"bytes"
	"encoding/base64"
	"strconv"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/jsonscan"
)

// defaultSource is the source of an event that was sent without one: CloudEvents asks for a URI reference, and this one
// says that the event entered at this node and claims nothing more.
const defaultSource = "/weir"

// AppendJSON appends e as one CloudEvents JSON object on one line, without the end of line: every attribute that was
// stored, and where and when it was stored. weirpartition is an integer; weiroffset is one too, and larger than the 32
// bits of a CloudEvents integer once a partition holds that many events; weirarrival is RFC 3339 with milliseconds, as
// time is. Text that is no UTF-8, which only a record from elsewhere can hold, is shown with U+FFFD.
func AppendJSON(dst []byte, e *event.Event, partition int, offset int64) []byte {
	dst = append(dst, `{"specversion":"1.0","id":`...)
	dst = jsonscan.AppendString(dst, e.ID)
	dst = append(dst, `,"source":`...)
	if len(e.Source) == 0 {
		dst = append(dst, `"`+defaultSource+`"`...)
	} else {
		dst = jsonscan.AppendString(dst, e.Source)
	}
	dst = append(dst, `,"type":`...)
	dst = jsonscan.AppendString(dst, e.Type)
	dst = append(dst, `,"time":"`...)
	dst = append(AppendTime(dst, e.Time), '"')
	dst = appendAttrs(dst, e.Attrs)
	dst = appendData(dst, e)
	dst = append(dst, `,"weirpartition":`...)
	dst = strconv.AppendInt(dst, int64(partition), 10)
	dst = append(dst, `,"weiroffset":`...)
	dst = strconv.AppendInt(dst, offset, 10)
	dst = append(dst, `,"weirarrival":"`...)
	return append(AppendTime(dst, e.Arrival), '"', '}')
}

func appendAttrs(dst []byte, attrs event.Attrs) []byte {
	for {
		kind, name, value, rest, ok := attrs.Next()
		if !ok {
			return dst
		}
		dst = append(dst, ',')
		dst = jsonscan.AppendString(dst, name)
		dst = append(dst, ':')
		if kind == event.AttrString {
			dst = jsonscan.AppendString(dst, value)
		} else {
			dst = append(dst, value...)
		}
		attrs = rest
	}
}

func appendData(dst []byte, e *event.Event) []byte {
	switch e.Kind {
	case event.DataJSON:
		return appendLine(append(dst, `,"data":`...), e.Data)
	case event.DataBinary:
		dst = append(dst, `,"data_base64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, e.Data)
		return append(dst, '"')
	}
	return dst
}

// appendLine appends valid JSON without its line ends. They are white space there: a string cannot hold them as they
// are.
func appendLine(dst, value []byte) []byte {
	for {
		at := bytes.IndexAny(value, "\r\n")
		if at < 0 {
			return append(dst, value...)
		}
		dst = append(dst, value[:at]...)
		value = value[at+1:]
	}
}
