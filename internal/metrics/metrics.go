// Package metrics shows a node to Prometheus.
//
// It has two halves. What the engine counts itself (offsets, tiers, counters) is read when somebody scrapes, from the snapshots
// that the engine keeps anyway: a node that nobody watches pays nothing for it. What happens at the border (requests,
// refusals, durations) is told to a Metrics as it happens.
//
// Names and labels are an interface: docs/reference/metrics.md lists them, and a test compares. No label is ever a key, a
// segment or an id, or a flood of users would become a flood of series.
package metrics

import (
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapesMax bounds the scrapes that are served at once; one more is answered 503.
const scrapesMax = 4

// Options configures New.
type Options struct {
	Version string       // of the binary
	Logger  *slog.Logger // default: none
	Sources Sources
}

// Metrics is the registry of one node and what is told to it. All methods may be called from any goroutine.
type Metrics struct {
	registry *prometheus.Registry
	logger   *slog.Logger

	requests       *prometheus.CounterVec
	requestSeconds *prometheus.HistogramVec
	rejected       *prometheus.CounterVec
	overloads      *prometheus.CounterVec
	refused        *prometheus.CounterVec
	fsyncs         *prometheus.HistogramVec
	lookups        *prometheus.HistogramVec
}

// New returns the metrics of one node in a registry of their own.
func New(opts Options) *Metrics {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Metrics{registry: prometheus.NewRegistry(), logger: opts.Logger}
	m.requests = counts("weir_requests_total", "HTTP requests by route, method and status code.", "route", "method", "code")
	m.requestSeconds = histogram("weir_request_seconds", "How long HTTP requests took, by route.",
		prometheus.ExponentialBuckets(250e-6, 2, 17), "route")
	m.rejected = counts("weir_events_rejected_total", "Events refused one by one, by code.", "stream", "code")
	m.overloads = counts("weir_overload_total", "Requests refused for overload: the queue, the memory for bodies or the disk was full.", "stream", "reason")
	m.refused = counts("weir_connections_refused_total", "Connections refused because limits.connections was reached.", "listener")
	m.fsyncs = histogram("weir_fsync_seconds", "How long fsyncs of a stream's log took.", prometheus.ExponentialBuckets(50e-6, 2, 16), "stream")
	m.lookups = histogram("weir_lookup_seconds", "How long look-ups of a counter over HTTP took.", prometheus.ExponentialBuckets(2e-6, 2, 18), "counter")
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_build_info", Help: "1, with what this node runs.",
		ConstLabels: prometheus.Labels{"version": opts.Version, "goversion": runtime.Version()}})
	build.Set(1)
	m.registry.MustRegister(m.requests, m.requestSeconds, m.rejected, m.overloads, m.refused, m.fsyncs, m.lookups, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newSnapshots(opts.Sources))
	return m
}

func counts(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// Handler serves the registry in the Prometheus text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(m.logger.Handler(), slog.LevelError),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: scrapesMax,
	})
}

// Request counts one HTTP request. route and method must have few values.
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.requestSeconds.WithLabelValues(route).Observe(took.Seconds())
}

// Overloaded counts one refused append. reason is queue, memory or disk.
func (m *Metrics) Overloaded(stream, reason string) {
	m.overloads.WithLabelValues(stream, reason).Inc()
}

// ConnectionRefused counts one connection too many on a listener.
func (m *Metrics) ConnectionRefused(listener string) { m.refused.WithLabelValues(listener).Inc() }

// Fsync counts one fsync of a stream's log.
func (m *Metrics) Fsync(stream string, took time.Duration) {
	m.fsyncs.WithLabelValues(stream).Observe(took.Seconds())
}

// LookedUp counts one look-up.
func (m *Metrics) LookedUp(counter string, took time.Duration) {
	m.lookups.WithLabelValues(counter).Observe(took.Seconds())
}

// Rejections counts the refused events of one stream.
type Rejections struct {
	series *prometheus.CounterVec
	total  atomic.Int64
}

// Rejections returns a new count of the refused events of stream: call it once a stream.
func (m *Metrics) Rejections(stream string) *Rejections {
	return &Rejections{series: m.rejected.MustCurryWith(prometheus.Labels{"stream": stream})}
}

// Add counts events refused with code.
func (r *Rejections) Add(code string, events int) {
	r.total.Add(int64(events))
	r.series.WithLabelValues(code).Add(float64(events))
}

// Total returns the refused events since the start.
func (r *Rejections) Total() int64 { return r.total.Load() }
