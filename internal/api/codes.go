package api

import (
	"net/http"

	"github.com/weirstream/weir/internal/cloudevents"
)

// Codes returns the table of all error codes of the HTTP interface, those of single events first.
func Codes() []Code { return append(eventCodes(), requestCodes()...) }

// eventCodes are found in "rejected", and with status 400 where the request is a single event.
func eventCodes() []Code {
	return []Code{
		{cloudevents.CodeBadJSON, http.StatusBadRequest, "The event, or the whole body, is not the JSON that it should be.", "Send each event as one JSON object; in NDJSON, one on a line."},
		{cloudevents.CodeBadUTF8, http.StatusBadRequest, "A text is not UTF-8, or holds half a surrogate pair.", "Send UTF-8; put other bytes into data_base64."},
		{cloudevents.CodeBadType, http.StatusBadRequest, "A member has another JSON type than its attribute.", "Strings for attributes; integers and booleans for extensions only."},
		{cloudevents.CodeMissingID, http.StatusBadRequest, "There is no id, or an empty one.", "Give every event an id of its own: it is what makes sending twice count once."},
		{cloudevents.CodeMissingType, http.StatusBadRequest, "There is no type, or an empty one.", "Say what happened: \"type\":\"click\"."},
		{cloudevents.CodeIDTooLong, http.StatusBadRequest, "The id has more than 128 bytes.", "Use a shorter id, such as a UUID or a hash."},
		{cloudevents.CodeBadVersion, http.StatusBadRequest, "The specversion is not 1.0.", "Send CloudEvents 1.0."},
		{cloudevents.CodeBadTime, http.StatusBadRequest, "The time is neither RFC 3339 nor whole milliseconds, or lies outside the years 1 to 9999.", "Send 2026-12-01T00:00:00.123Z or 1796083200123."},
		{cloudevents.CodeTimeUnit, http.StatusBadRequest, "An integer time looks like seconds, microseconds or nanoseconds.", "Send milliseconds; the hint says which unit would fit. Old data: time.unit_check: false."},
		{cloudevents.CodeTimeFuture, http.StatusBadRequest, "The time lies further ahead of the node's clock than time.skew.", "Check the producer's clock, or set time.future to clamp or accept."},
		{cloudevents.CodeBadAttribute, http.StatusBadRequest, "An attribute's name or value is not one that CloudEvents allows.", "Names are lower-case letters and digits; nested values belong into data."},
		{cloudevents.CodeTooManyAttrs, http.StatusBadRequest, "The event has more attributes than are kept.", "Put the rest into data."},
		{cloudevents.CodeBadBase64, http.StatusBadRequest, "data_base64 is not Base64.", "Use the standard alphabet, with padding."},
		{cloudevents.CodeTwoPayloads, http.StatusBadRequest, "The event has both data and data_base64.", "Send one of the two."},
		{cloudevents.CodeEventTooLarge, http.StatusBadRequest, "The event is larger than limits.event.", "Send less, or raise limits.event."},
		{cloudevents.CodeSegmentLong, http.StatusBadRequest, "The segment is longer than limits.key_part.", "Use a shorter one, or raise limits.key_part."},
		{cloudevents.CodeBadFields, http.StatusBadRequest, "A field of XADD has no value (RESP only).", "Send names and values in pairs."},
	}
}

// requestCodes refuse a request as a whole.
func requestCodes() []Code {
	return []Code{
		{codeBadArgument, http.StatusBadRequest, "A parameter has a value that cannot be used.", "field names it, hint says what is wanted."},
		{codeUnknownParameter, http.StatusBadRequest, "The endpoint has no such parameter.", "hint proposes the one that was probably meant."},
		{codeNoArchive, http.StatusBadRequest, "ack=archive, and the node has no archive.", "Use ack=disk."},
		{codeKeyParts, http.StatusBadRequest, "The key has not as many parts as the counter's.", "Send key= once for each part, in the counter's order."},
		{codeBadEncoding, http.StatusBadRequest, "The body is not what its Content-Encoding says.", "Check how it is compressed."},
		{codeBodyIncomplete, http.StatusBadRequest, "The body ended before its end.", "Send it again; events that were stored count once."},
		{codeCrossOrigin, http.StatusForbidden, "A web page of another site tried to change something.", "Send the request from a program, or through a server of yours."},
		{codeForeignHost, http.StatusForbidden, "The request came over loopback under a name that is not this machine's.", "Address the node as localhost or 127.0.0.1; let a proxy set Host so."},
		{codeNotFound, http.StatusNotFound, "There is nothing at this path.", "hint proposes a path."},
		{codeUnknownStream, http.StatusNotFound, "There is no such stream.", "hint proposes a name; /v1/streams lists all."},
		{codeUnknownCounter, http.StatusNotFound, "There is no such counter.", "hint proposes a name; /v1/counters lists all."},
		{codeMethodNotAllowed, http.StatusMethodNotAllowed, "The path does not know the method.", "The Allow header lists those that it knows."},
		{codeSlowBody, http.StatusRequestTimeout, "The body came too slowly.", "Send at least 4 KiB a second."},
		{codeBodyTooLarge, http.StatusRequestEntityTooLarge, "The body, or what it expands to, is larger than limits.body.", "Send several requests, or raise limits.body."},
		{cloudevents.CodeBatchTooLarge, http.StatusRequestEntityTooLarge, "The request has more events than limits.batch.", "Send several requests, or raise limits.batch."},
		{cloudevents.CodeUnsupportedMedia, http.StatusUnsupportedMediaType, "The Content-Type is not one of the four that carry events.", "application/x-ndjson, application/cloudevents+json, application/cloudevents-batch+json, or ce- headers."},
		{codeUnsupportedCode, http.StatusUnsupportedMediaType, "The Content-Encoding is not known.", "Send the body as it is, or as gzip or zstd."},
		{codeOverloaded, http.StatusTooManyRequests, "The stream's queue, or the memory for bodies, is full. Nothing was stored.", "Send the same request again after Retry-After."},
		{codeDiskFull, http.StatusTooManyRequests, "The node's disk is full: what is free, 256 MiB at most, stays in reserve. Nothing was stored.", "Make room or shorten retention; the node goes on by itself."},
		{codeConnections, http.StatusTooManyRequests, "The node has as many connections as limits.connections. The connection is closed.", "Use one connection for many requests."},
		{codeInternal, http.StatusInternalServerError, "The node failed. Its log says why.", "Report it with the log's lines."},
		{codeNotReady, http.StatusServiceUnavailable, "The node is recovering, restoring or draining: value says which.", "Send again after Retry-After; /readyz is 200 when it is ready."},
		{codeCounterBuilding, http.StatusServiceUnavailable, "The counter is being built from the log. The error has one more member, progress, from 0 to 1.", "Ask again; other counters answer meanwhile."},
	}
}
