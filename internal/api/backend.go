package api

import (
	"time"

	"github.com/weirstream/weir/internal/cloudevents"
	"github.com/weirstream/weir/internal/counter"
	"github.com/weirstream/weir/internal/eventlog"
)

// Backend is what the API serves: the node's streams and counters. All methods may be called at any time from any
// goroutine, also while the node recovers and drains.
type Backend interface {
	// Stream returns the stream of that name.
	Stream(name string) (*Stream, bool)
	// Streams returns all streams in the configured order.
	Streams() []*Stream
	// Counter returns the counter of that name.
	Counter(name string) (*counter.Counter, bool)
	// Counters returns what is known of all counters, in the configured order.
	Counters() []counter.Info
	// Ready says whether the node takes events and look-ups, and if not why: recovering, restoring or draining.
	Ready() (status string, ok bool)
	// Node returns the node's own figures.
	Node() Node
	// AdmitBody sets memory aside for bytes of a request's body. False: others hold it all; nothing was set aside.
	AdmitBody(bytes int64) bool
	// ReleaseBody gives back what AdmitBody set aside.
	ReleaseBody(bytes int64)
}

// Stream is one stream as the API serves it. A Stream does not change once the backend has given it out.
type Stream struct {
	Name      string
	Segment   string        // the configured path; empty: partitionkey, else id
	Retention time.Duration // from arrival
	Rules     *cloudevents.Rules
	Log       *eventlog.Log
	// Rejected counts the stream's refused events. RESP and HTTP share one.
	Rejected Rejections
}

// Rejections counts refused events by code.
type Rejections interface {
	Add(code string, events int)
	Total() int64
}

// Node is the part of /v1/info that belongs to no stream and no counter.
type Node struct {
	Version          string
	StartedMS        int64 // ms since the epoch
	MemoryLimitBytes int64 // memory:
	MemoryUsedBytes  int64 // resident
	DiskUsedBytes    int64 // by the data folder
	DiskFreeBytes    int64
	DiskFull         bool // events are refused for want of space
}

// Limits bound one request. Zero fields take the defaults behind them.
type Limits struct {
	BodyBytesMax    int64 // a body, also after it was expanded; 16 MiB
	KeyPartBytesMax int   // one part of a counter's key; 256
}

const (
	bodyBytesDefault    = 16 << 20
	keyPartBytesDefault = 256
)

func (l Limits) withDefaults() Limits {
	if l.BodyBytesMax == 0 {
		l.BodyBytesMax = bodyBytesDefault
	}
	if l.KeyPartBytesMax == 0 {
		l.KeyPartBytesMax = keyPartBytesDefault
	}
	return l
}

// Events is what the API tells while it works. Each function may be nil and must return quickly.
type Events struct {
	// Request is called after each request. route is the path with {} for names, or "none"; method and route have few values.
	Request func(route, method string, status int, took time.Duration)
	// Overloaded is called for each refused append. reason is queue, memory or disk.
	Overloaded func(stream, reason string)
	// LookedUp is called after each look-up that was answered.
	LookedUp func(counter string, took time.Duration)
}
