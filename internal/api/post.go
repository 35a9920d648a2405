package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/weirstream/weir/internal/cloudevents"
	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/eventlog"
)

// diskFullRetry is how long a client waits before it tries a full disk again: space returns when somebody makes room.
const diskFullRetry = 5 * time.Second

// parsedBytesPooled bounds the parsers that are kept, by the records they hold.
const parsedBytesPooled = 16 << 20

// postEvents stores the body's events and says what became of them.
func (h *Handler) postEvents(c *call) *failure {
	stream, f := h.stream(c)
	if f != nil {
		return f
	}
	ack, f := parseAck(c.r.URL.RawQuery)
	if f != nil {
		return f
	}
	p, ok := h.parsers.Get().(*cloudevents.Parser)
	if !ok {
		p = new(cloudevents.Parser)
	}
	f = h.ingest(c, stream, p, ack)
	if heldBytes(p) <= parsedBytesPooled {
		h.parsers.Put(p)
	}
	return f
}

// ingest parses, appends and answers. The body is given back before the append waits for the disk: what was parsed does
// not refer to it.
func (h *Handler) ingest(c *call, stream *Stream, p *cloudevents.Parser, ack eventlog.Ack) *failure {
	held, f := h.bodies.read(c)
	if f != nil {
		if f.status == http.StatusTooManyRequests {
			h.overloaded(stream.Name, "memory")
		}
		return f
	}
	err := p.Parse(stream.Rules, c.r.Header, held.bytes, h.clock.NowMS())
	h.bodies.release(held)
	if err != nil {
		return h.refused(stream, p, err)
	}
	for i := range p.Rejected {
		stream.Rejected.Add(p.Rejected[i].Code, 1)
	}
	if p.Sent > len(p.Rejected) {
		if err := stream.Log.Append(c.r.Context(), p.Batches, ack); err != nil {
			return h.notAppended(c, stream, err)
		}
	}
	buffer, ok := h.buffers.Get().(*[]byte)
	if !ok {
		buffer = new([]byte)
	}
	*buffer = appendOutcome((*buffer)[:0], p)
	writeJSON(c.w, http.StatusOK, *buffer)
	if cap(*buffer) <= bufferBytesPooled {
		h.buffers.Put(buffer)
	}
	return nil
}

func parseAck(rawQuery string) (eventlog.Ack, *failure) {
	p, f := parseParameters(rawQuery, []string{"ack"}, "")
	if f != nil {
		return 0, f
	}
	switch text := p.get("ack"); {
	case !p.has("ack"), text == "disk":
		return eventlog.AckDisk, nil
	case text == "memory":
		return eventlog.AckMemory, nil
	case text == "archive":
		return 0, &failure{status: http.StatusBadRequest, code: codeNoArchive, field: "ack", value: text,
			message: "cannot acknowledge from the archive: this node has no archive", hint: "ack=disk waits until the events are fsynced here"}
	default:
		return 0, badArgument("ack", text, "cannot use ack: want memory or disk", "")
	}
}

// refused turns the parser's refusal of a request into the reply.
func (h *Handler) refused(stream *Stream, p *cloudevents.Parser, err error) *failure {
	var problem *cloudevents.Problem
	if !errors.As(err, &problem) {
		h.logger.Error("parsing events failed", slog.String("stream", stream.Name), slog.Any("err", err))
		return internalError()
	}
	if p.Single {
		stream.Rejected.Add(problem.Code, 1)
	}
	return &failure{status: problem.Status, code: problem.Code, message: problem.Message, field: problem.Field, value: problem.Value, hint: problem.Hint}
}

// notAppended turns the log's refusal into the reply.
func (h *Handler) notAppended(c *call, stream *Stream, err error) *failure {
	var overload *eventlog.Overload
	switch {
	case errors.As(err, &overload):
		h.overloaded(stream.Name, "queue")
		return &failure{status: http.StatusTooManyRequests, code: codeOverloaded, field: "stream", value: stream.Name, retryAfter: overload.RetryAfter,
			message: "the stream takes no more events at this moment", hint: "nothing of this request was stored: send it again after Retry-After"}
	case errors.Is(err, eventlog.ErrDiskFull):
		h.overloaded(stream.Name, "disk")
		return &failure{status: http.StatusTooManyRequests, code: codeDiskFull, field: "stream", value: stream.Name, retryAfter: diskFullRetry,
			message: fmt.Sprintf("the node's disk is full: less than %d MiB are free, which stay in reserve", eventlog.DiskReserveDefault>>20),
			hint:    "nothing of this request was stored: make room or shorten retention; the node goes on by itself"}
	case errors.Is(err, eventlog.ErrClosed):
		return notReady("draining")
	case errors.Is(err, context.Canceled) && c.r.Context().Err() != nil:
		c.w.abort(statusGone)
		return nil
	}
	h.logger.Error("appending events failed", slog.String("stream", stream.Name), slog.Any("err", err))
	return internalError()
}

func (h *Handler) overloaded(stream, reason string) {
	if h.events.Overloaded != nil {
		h.events.Overloaded(stream, reason)
	}
}

// appendOutcome writes the reply to a request that was taken.
func appendOutcome(dst []byte, p *cloudevents.Parser) []byte {
	accepted, duplicates := outcome(p.Batches)
	dst = append(dst, `{"accepted":`...)
	dst = strconv.AppendInt(dst, accepted, 10)
	dst = append(dst, `,"duplicates":`...)
	dst = strconv.AppendInt(dst, duplicates, 10)
	dst = append(dst, `,"rejected":[`...)
	for i := range p.Rejected {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendRejection(dst, &p.Rejected[i])
	}
	return append(dst, "]}\n"...)
}

func outcome(batches []event.Batch) (accepted, duplicates int64) {
	for i := range batches {
		for j := range batches[i].Items {
			if batches[i].Items[j].Duplicate {
				duplicates++
			} else {
				accepted++
			}
		}
	}
	return accepted, duplicates
}

func appendRejection(dst []byte, r *cloudevents.Rejection) []byte {
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(r.Index), 10)
	dst = append(dst, `,"id":`...)
	dst = appendString(dst, r.ID)
	dst = append(dst, `,"code":`...)
	dst = appendString(dst, r.Code)
	dst = append(dst, `,"field":`...)
	dst = appendString(dst, r.Field)
	dst = append(dst, `,"value":`...)
	dst = appendString(dst, r.Value)
	dst = append(dst, `,"error":`...)
	dst = appendString(dst, r.Message)
	if r.Hint != "" {
		dst = append(dst, `,"hint":`...)
		dst = appendString(dst, r.Hint)
	}
	return append(dst, '}')
}

func heldBytes(p *cloudevents.Parser) int {
	held := 0
	for i := range p.Batches {
		held += cap(p.Batches[i].Records)
	}
	return held
}
