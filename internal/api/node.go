package api

import (
	"net/http"
	"slices"
	"time"
)

// notReadyRetry is what a client is told to wait while the node is not ready.
const notReadyRetry = time.Second

// stream returns the stream that the path names, if the node serves at all.
func (h *Handler) stream(c *call) (*Stream, *failure) {
	if status, ok := h.backend.Ready(); !ok {
		return nil, notReady(status)
	}
	stream, ok := h.backend.Stream(c.name)
	if !ok {
		var names []string
		for _, s := range h.backend.Streams() {
			names = append(names, s.Name)
		}
		return nil, unknownName(codeUnknownStream, "stream", c.name, names)
	}
	return stream, nil
}

func unknownName(code, what, name string, names []string) *failure {
	slices.Sort(names)
	return &failure{status: http.StatusNotFound, code: code, field: what, value: name,
		message: "there is no such " + what, hint: hintOf(name, what, names)}
}

func notReady(status string) *failure {
	return &failure{status: http.StatusServiceUnavailable, code: codeNotReady, field: "status", value: status, retryAfter: notReadyRetry,
		message: "the node is " + status, hint: "/readyz answers 200 when it is ready"}
}

// getHealth says that the process lives, whatever else it does.
func (h *Handler) getHealth(c *call) *failure {
	writeJSON(c.w, http.StatusOK, []byte("{\"status\":\"ok\"}\n"))
	return nil
}

// getReady says whether the node takes events and look-ups.
func (h *Handler) getReady(c *call) *failure {
	status, ok := h.backend.Ready()
	code := http.StatusServiceUnavailable
	if ok {
		code, status = http.StatusOK, "ready"
	}
	o := object{empty: true}
	o.open('{')
	o.str("status", status)
	o.close('}')
	writeJSON(c.w, code, append(o.dst, '\n'))
	return nil
}
