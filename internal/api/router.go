package api

import (
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// variable is the path part that stands for a name.
const variable = "{}"

// call is one request on its way through its endpoint.
type call struct {
	w    *reply
	r    *http.Request
	name string // the path's variable part: a stream or a counter
}

// endpoint serves one method of one route. A failure it returns is written by the router, so nothing of the reply may have been sent.
type endpoint func(*call) *failure

// route is one path and its methods. HEAD is served by GET's endpoint, OPTIONS by the router.
type route struct {
	path    string // with {} for a name; also the route's label in metrics
	parts   []string
	methods map[string]endpoint
}

func newRoute(path string, methods map[string]endpoint) route {
	return route{path: path, parts: strings.Split(path, "/"), methods: methods}
}

// match returns the path's variable part, unescaped.
func (rt *route) match(parts []string) (name string, ok bool) {
	if len(parts) != len(rt.parts) {
		return "", false
	}
	for i, want := range rt.parts {
		switch {
		case want != variable && want != parts[i], want == variable && parts[i] == "":
			return "", false
		case want == variable:
			unescaped, err := url.PathUnescape(parts[i])
			if err != nil {
				return "", false
			}
			name = unescaped
		}
	}
	return name, true
}

// allow lists the methods of rt as the Allow header does.
func (rt *route) allow() string {
	methods := []string{http.MethodOptions}
	for m := range rt.methods {
		methods = append(methods, m)
		if m == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// writePatience is how long a client may take to make room for one write.
const writePatience = 30 * time.Second

// reply remembers what was answered, and gives every write a deadline.
type reply struct {
	http.ResponseWriter
	control *http.ResponseController
	status  int
}

func (w *reply) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *reply) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.extend()
	return w.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController the writer beneath.
func (w *reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// extend gives the next write its time. The deadline stays with the connection, so each request begins with one.
func (w *reply) extend() { _ = w.control.SetWriteDeadline(time.Now().Add(writePatience)) }

// liftReadDeadline is for endpoints that answer for longer than a request may take to come in: past the deadline net/http
// takes the client for gone.
func (w *reply) liftReadDeadline() { _ = w.control.SetReadDeadline(time.Time{}) }

// statusGone is what a request is counted as whose client went away before it was answered.
const statusGone = 499

// abort ends the reply so that it cannot be taken for a whole one: net/http's own last write fails, and it closes the connection.
func (w *reply) abort(status int) {
	if w.status == 0 {
		w.status = status
	}
	_ = w.control.SetWriteDeadline(time.Unix(1, 0))
}

// flush sends what was written, the header included.
func (w *reply) flush() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.extend()
	return w.control.Flush()
}

// ServeHTTP finds the route, refuses what no endpoint should see, and reports how it went.
func (h *Handler) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	start := time.Now()
	w := &reply{ResponseWriter: rw, control: http.NewResponseController(rw)}
	w.extend()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	rt, name := h.find(r)
	label := "none"
	if rt != nil {
		label = rt.path
	}
	defer func() {
		if caught := recover(); caught != nil {
			h.recovered(w, r, caught)
		}
		if h.events.Request != nil {
			h.events.Request(label, methodLabel(r.Method), w.status, time.Since(start))
		}
	}()
	if f := h.serve(rt, &call{w: w, r: r, name: name}); f != nil {
		f.write(w)
	}
}

func (h *Handler) serve(rt *route, c *call) *failure {
	if f := h.guard.check(c.r); f != nil {
		return f
	}
	if rt == nil {
		return h.unknownRoute(c.r)
	}
	if c.r.Method == http.MethodOptions {
		c.w.Header().Set("Allow", rt.allow())
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	serve, ok := rt.methods[method]
	if !ok {
		c.w.Header().Set("Allow", rt.allow())
		return &failure{status: http.StatusMethodNotAllowed, code: codeMethodNotAllowed, field: "method", value: c.r.Method,
			message: "cannot " + cut(c.r.Method) + " " + rt.path, hint: "allowed: " + rt.allow()}
	}
	return serve(c)
}

func (h *Handler) find(r *http.Request) (*route, string) {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	for i := range h.routes {
		if name, ok := h.routes[i].match(parts); ok {
			return &h.routes[i], name
		}
	}
	return nil, ""
}

func (h *Handler) unknownRoute(r *http.Request) *failure {
	paths := make([]string, 0, len(h.routes))
	for i := range h.routes {
		paths = append(paths, strings.ReplaceAll(h.routes[i].path, variable, "NAME"))
	}
	return &failure{status: http.StatusNotFound, code: codeNotFound, field: "path", value: r.URL.Path,
		message: "there is nothing at this path", hint: hintOf(r.URL.Path, "path", paths)}
}

// recovered turns a panic into a 500 where that can still be said, and cuts the connection where it cannot.
func (h *Handler) recovered(w *reply, r *http.Request, caught any) {
	h.logger.Error("request panicked", slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Any("panic", caught), slog.String("stack", string(debug.Stack())))
	if w.status != 0 {
		w.abort(w.status)
		return
	}
	internalError().write(w)
}

func internalError() *failure {
	return &failure{status: http.StatusInternalServerError, code: codeInternal,
		message: "the node failed to serve this request; its log says why", hint: "report it with the log's lines"}
}

// methodLabel keeps a client from inventing label values.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions, http.MethodPut, http.MethodDelete, http.MethodPatch:
		return method
	}
	return "other"
}
