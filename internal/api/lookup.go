package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/counter"
	"github.com/weirstream/weir/internal/slide"
)

// counterParameters are those of GET /v1/counters/{counter}.
var counterParameters = [...]string{"key", "as_of", "window"}

// lookup is the memory of one look-up, which the next one uses again.
type lookup struct {
	answer counter.Answer
	key    [][]byte
	text   []byte // the parts of key, one behind the other
	reply  []byte
}

// question is what is asked of a counter, checked.
type question struct {
	name    string
	windows []slide.Window
	only    int // index of the one window that is wanted; -1: all
	asOf    int64
}

// getCounter answers for one key of one counter.
func (h *Handler) getCounter(c *call) *failure {
	found, f := h.counter(c)
	if f != nil {
		return f
	}
	p, f := parseParameters(c.r.URL.RawQuery, counterParameters[:], "key")
	if f != nil {
		return f
	}
	l, ok := h.lookups.Get().(*lookup)
	if !ok {
		l = new(lookup)
	}
	defer h.lookups.Put(l)
	q, f := h.question(p, found, l)
	if f != nil {
		return f
	}
	start := time.Now()
	if err := found.Lookup(c.r.Context(), l.key, q.asOf, &l.answer); err != nil {
		return h.notAnswered(c, found.Definition(), err)
	}
	if h.events.LookedUp != nil {
		h.events.LookedUp(c.name, time.Since(start))
	}
	l.reply = q.appendAnswer(l.reply[:0], l)
	writeJSON(c.w, http.StatusOK, l.reply)
	return nil
}

// counter returns the counter that the path names, if the node serves at all.
func (h *Handler) counter(c *call) (*counter.Counter, *failure) {
	if status, ok := h.backend.Ready(); !ok {
		return nil, notReady(status)
	}
	found, ok := h.backend.Counter(c.name)
	if !ok {
		var names []string
		for _, info := range h.backend.Counters() {
			names = append(names, info.Definition.Name)
		}
		return nil, unknownName(codeUnknownCounter, "counter", c.name, names)
	}
	return found, nil
}

// question checks the parameters and puts the key into l.
func (h *Handler) question(p parameters, c *counter.Counter, l *lookup) (question, *failure) {
	def := c.Definition()
	q := question{name: def.Name, windows: def.Windows, only: -1}
	parts := p.values["key"]
	if len(parts) != len(def.Key) {
		return q, &failure{status: http.StatusBadRequest, code: codeKeyParts, field: "key", value: strings.Join(parts, ","),
			message: fmt.Sprintf("counter %s has keys of %d parts: got %d", def.Name, len(def.Key), len(parts)), hint: keyHint(&def)}
	}
	l.key, l.text = l.key[:0], l.text[:0]
	for _, part := range parts {
		if len(part) > h.limits.KeyPartBytesMax {
			return q, badArgument("key", part, fmt.Sprintf("a key part has %d bytes: want at most %d", len(part), h.limits.KeyPartBytesMax), "limits.key_part")
		}
		l.text = append(l.text, part...)
	}
	rest := l.text
	for _, part := range parts {
		l.key, rest = append(l.key, rest[:len(part):len(part)]), rest[len(part):]
	}
	if p.has("window") {
		if q.only = windowIndex(def.Windows, p.get("window")); q.only < 0 {
			names := windowNames(def.Windows)
			return q, badArgument("window", p.get("window"), "counter "+def.Name+" has no such window", "want "+strings.Join(names, ", "))
		}
	}
	var f *failure
	q.asOf, f = p.instant("as_of", h.clock.NowMS())
	return q, f
}

// keyHint shows how a key of this counter is asked for.
func keyHint(def *counter.Definition) string {
	parts := make([]string, len(def.Key))
	for i, path := range def.Key {
		parts[i] = "key=<" + path + ">"
	}
	return "ask /v1/counters/" + url.PathEscape(def.Name) + "?" + strings.Join(parts, "&")
}

func windowIndex(windows []slide.Window, name string) int {
	for i := range windows {
		if windows[i].Name == name {
			return i
		}
	}
	return -1
}

func windowNames(windows []slide.Window) []string {
	names := make([]string, len(windows))
	for i := range windows {
		names[i] = windows[i].Name
	}
	return names
}

// notAnswered turns a counter's refusal into the reply.
func (h *Handler) notAnswered(c *call, def counter.Definition, err error) *failure {
	name := def.Name
	var building *counter.BuildingError
	switch {
	case errors.As(err, &building):
		return &failure{status: http.StatusServiceUnavailable, code: codeCounterBuilding, field: "counter", value: name, progress: building.Progress,
			message: fmt.Sprintf("counter %s is being built from the log: %.1f %% done", name, 100*building.Progress),
			hint:    "other counters answer; this one does when it is complete", retryAfter: time.Second}
	case errors.Is(err, counter.ErrKeyParts):
		return &failure{status: http.StatusBadRequest, code: codeKeyParts, field: "key", message: err.Error(), hint: keyHint(&def)}
	case errors.Is(err, counter.ErrClosed):
		return notReady("draining")
	case errors.Is(err, context.Canceled) && c.r.Context().Err() != nil:
		c.w.abort(statusGone)
		return nil
	}
	h.logger.Error("look-up failed", slog.String("counter", name), slog.Any("err", err))
	return internalError()
}

// appendAnswer writes the reply: windows in the configured order, what is unknown as null or not at all.
func (q *question) appendAnswer(dst []byte, l *lookup) []byte {
	a := &l.answer
	dst = append(dst, `{"counter":`...)
	dst = appendString(dst, q.name)
	dst = append(dst, `,"key":[`...)
	for i, part := range l.key {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, part)
	}
	dst = append(dst, `],"as_of":`...)
	dst = strconv.AppendInt(dst, a.AsOf, 10)
	dst = append(dst, `,"windows":{`...)
	complete, comma := true, false
	for i := range a.Windows {
		if q.only >= 0 && q.only != i {
			continue
		}
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		complete = complete && a.Windows[i].Complete
		dst = appendWindow(dst, q.windows[i].Name, &a.Windows[i])
	}
	dst = append(dst, `},"next_expiry":`...)
	if a.NextExpiry == slide.NoExpiry {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, a.NextExpiry, 10)
	}
	if !complete {
		dst = append(dst, `,"complete_since":`...)
		dst = strconv.AppendInt(dst, a.CompleteSince, 10)
	}
	if a.Behind > 0 {
		dst = append(dst, `,"behind":`...)
		dst = strconv.AppendInt(dst, a.Behind, 10)
	}
	return append(dst, "}\n"...)
}

func appendWindow(dst []byte, name string, w *slide.WindowAnswer) []byte {
	dst = appendString(dst, name)
	dst = append(dst, `:{"count":`...)
	dst = strconv.AppendInt(dst, w.Count, 10)
	dst = append(dst, `,"max":`...)
	if w.Complete {
		dst = strconv.AppendInt(dst, w.Max, 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"exact":`...)
	dst = strconv.AppendBool(dst, w.Exact)
	return append(dst, '}')
}
