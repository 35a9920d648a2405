// Package api is the HTTP interface of a node: events in, events out, counters out, and how the node is.
//
// A request takes one straight way: the router finds its endpoint, a guard keeps web pages of other sites out, the endpoint
// checks every parameter before it does anything, and whatever is refused comes back as one *failure, which the router writes in
// the one error form. Bodies are read into buffers that are used again, after their memory was admitted; events are parsed,
// appended and written out in batches, and replies are written by appending, so that nothing is allocated for a
// single event.
//
// Replies that stream (events out) set a deadline for every write and none for the whole, so that a slow reader is told
// apart from a long answer.
package api

import (
	"log/slog"
	"net/http"
	"sync"

	"github.com/weirstream/weir/internal/clock"
)

// Options configures a Handler.
type Options struct {
	Backend Backend         // required
	Limits  Limits          //
	Clock   clock.Clock     // default: the machine's
	Logger  *slog.Logger    // default: none
	Page    http.Handler    // GET /; nil: 404
	Metrics http.Handler    // GET /metrics; nil: 404
	Events  Events          // who wants to know
	Hosts   []string        // names that the node answers to over loopback, besides localhost and addresses
	Drain   <-chan struct{} // closed when the node drains: ends the replies that follow a stream; nil: never
}

// Handler serves the API. It may be shared.
type Handler struct {
	backend Backend
	limits  Limits
	clock   clock.Clock
	logger  *slog.Logger
	events  Events
	drain   <-chan struct{}
	guard   *guard
	routes  []route
	bodies  bodies
	parsers sync.Pool // *cloudevents.Parser
	lookups sync.Pool // *lookup
	buffers sync.Pool // *[]byte
	turns   turns
}

// New returns the API of opts.Backend.
func New(opts Options) *Handler {
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Handler{
		backend: opts.Backend, limits: opts.Limits.withDefaults(), clock: opts.Clock, logger: opts.Logger,
		events: opts.Events, drain: opts.Drain, guard: newGuard(opts.Hosts), turns: make(turns, turnsMax),
	}
	h.bodies.backend, h.bodies.bytesMax = h.backend, h.limits.BodyBytesMax
	h.routes = []route{
		get("/v1/counters/{}", h.getCounter),
		newRoute("/v1/streams/{}/events", map[string]endpoint{http.MethodPost: h.postEvents, http.MethodGet: h.getEvents}),
		get("/v1/streams", h.getStreams),
		get("/v1/counters", h.getCounters),
		get("/v1/info", h.getInfo),
		get("/healthz", h.getHealth),
		get("/readyz", h.getReady),
	}
	if opts.Metrics != nil {
		h.routes = append(h.routes, get("/metrics", serveBy(opts.Metrics)))
	}
	if opts.Page != nil {
		h.routes = append(h.routes, get("/", serveBy(opts.Page)))
	}
	return h
}

func get(path string, serve endpoint) route {
	return newRoute(path, map[string]endpoint{http.MethodGet: serve})
}

func serveBy(handler http.Handler) endpoint {
	return func(c *call) *failure {
		handler.ServeHTTP(c.w, c.r)
		return nil
	}
}
