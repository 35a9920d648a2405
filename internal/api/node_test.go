package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/clock"
	"github.com/weirstream/weir/internal/cloudevents"
	"github.com/weirstream/weir/internal/counter"
	"github.com/weirstream/weir/internal/dash"
	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/metrics"
	"github.com/weirstream/weir/internal/path"
	"github.com/weirstream/weir/internal/slide"
)

const (
	testNow        = 1_796_083_200_000 // 2026-12-01T00:00:00Z
	testPartitions = 3
)

// testNode is a whole node in memory: a real log, real counters and a real HTTP server.
type testNode struct {
	t       testing.TB
	clock   *clock.Manual
	stream  *Stream
	set     *counter.Set
	metrics *metrics.Metrics
	server  *httptest.Server
	drain   chan struct{}

	mu        sync.Mutex
	status    string // "" while ready
	bodies    int64  // bytes of bodies that are still admitted
	bodiesMax int64
}

// newTestNode starts a node with the stream impressions and the counters seen and total. change may alter what the log is opened
// with.
func newTestNode(t testing.TB, change func(*eventlog.Options)) *testNode {
	t.Helper()
	n := &testNode{t: t, clock: &clock.Manual{}, drain: make(chan struct{}), bodiesMax: 1 << 30}
	n.clock.Set(testNow)
	fs := vfs.NewMem()
	options := eventlog.Options{
		FS: fs, Dir: "streams/impressions", Stream: "impressions", Partitions: testPartitions, Segment: "data.user",
		RingBytes: 8 << 20, MemtableBytes: 1 << 20, EventBytesMax: 128 << 10, DiskReserve: -1, BallastBytes: -1, Clock: n.clock,
		Fatal: func(err error) { panic(err) },
	}
	if change != nil {
		change(&options)
	}
	log, err := eventlog.Open(options)
	n.must(err)
	segment, err := path.Parse("data.user")
	n.must(err)
	n.metrics = metrics.New(metrics.Options{Version: "test", Sources: metrics.Sources{
		Streams:           func() []metrics.Stream { return []metrics.Stream{{Name: "impressions", Log: log}} },
		Counters:          func() []counter.Info { return n.set.Info() },
		CounterPartitions: func() []counter.PartitionInfo { return n.set.Partitions() },
		Node:              func() metrics.Node { return metrics.Node{Ready: true, DiskFreeBytes: 1 << 30} },
	}})
	n.stream = &Stream{
		Name: "impressions", Segment: "data.user", Retention: 8 * 24 * time.Hour, Log: log, Rejected: n.metrics.Rejections("impressions"),
		Rules: &cloudevents.Rules{Segment: segment, Partitions: testPartitions, EventBytesMax: 64 << 10, BatchMax: 1000, KeyPartMax: 256, Skew: 300_000, UnitCheck: true},
	}
	hour := []slide.Window{{Name: "1m", Millis: 60_000}, {Name: "60m", Millis: 3_600_000}, {Name: "7d", Millis: 7 * 86_400_000}}
	n.set, err = counter.Open(counter.Options{
		FS: fs, Dir: "counters", Streams: []counter.Stream{{Name: "impressions", Log: log, Segment: "data.user"}},
		Definitions: []counter.Definition{
			{Name: "seen", Stream: "impressions", Where: `type == "impression"`, Key: []string{"data.user", "data.ad"}, Windows: hour, LatenessMS: 3_600_000},
			{Name: "total", Stream: "impressions", Key: []string{"data.ad"}, Windows: hour[:1], LatenessMS: 3_600_000},
		},
		Epoch: time.Millisecond, Clock: n.clock, Fatal: func(err error) { panic(err) },
	})
	n.must(err)
	n.must(n.set.WaitCaughtUp(context.Background()))
	n.server = httptest.NewUnstartedServer(nil)
	n.server.Config = NewServer(New(Options{
		Backend: n, Clock: n.clock, Page: dash.New(), Metrics: n.metrics.Handler(), Drain: n.drain,
		Limits: Limits{BodyBytesMax: 256 << 10},
		Events: Events{Request: n.metrics.Request, Overloaded: n.metrics.Overloaded, LookedUp: n.metrics.LookedUp},
	}), slog.New(slog.DiscardHandler))
	n.server.Start()
	t.Cleanup(func() {
		n.server.Close()
		n.must(n.set.Close())
		n.must(log.Close(context.Background()))
	})
	return n
}

func (n *testNode) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *testNode) Stream(name string) (*Stream, bool)           { return n.stream, name == n.stream.Name }
func (n *testNode) Streams() []*Stream                           { return []*Stream{n.stream} }
func (n *testNode) Counter(name string) (*counter.Counter, bool) { return n.set.Counter(name) }
func (n *testNode) Counters() []counter.Info                     { return n.set.Info() }
func (n *testNode) Node() Node {
	return Node{Version: "test", StartedMS: testNow - 61_000, MemoryLimitBytes: 1 << 30, MemoryUsedBytes: 1 << 28, DiskFreeBytes: 5 << 30, DiskUsedBytes: 7 << 20}
}

func (n *testNode) Ready() (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.status, n.status == ""
}

// be sets what keeps the node from being ready; "" for nothing.
func (n *testNode) be(status string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.status = status
}

func (n *testNode) AdmitBody(bytes int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bodies+bytes > n.bodiesMax {
		return false
	}
	n.bodies += bytes
	return true
}

func (n *testNode) ReleaseBody(bytes int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bodies -= bytes
}

func (n *testNode) admitted() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bodies
}

// answer is a reply that was read whole.
type answer struct {
	status  int
	header  http.Header
	trailer http.Header
	body    string
}

// do sends one request. header holds names and values in turn.
func (n *testNode) do(method, target, body string, header ...string) answer {
	n.t.Helper()
	r, err := http.NewRequest(method, n.server.URL+target, strings.NewReader(body))
	n.must(err)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	reply, err := n.server.Client().Do(r)
	n.must(err)
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	n.must(err)
	return answer{reply.StatusCode, reply.Header, reply.Trailer, string(text)}
}

func (n *testNode) get(target string) answer {
	n.t.Helper()
	return n.do(http.MethodGet, target, "")
}

const eventsPath = "/v1/streams/impressions/events"

// post stores lines and wants them all accepted.
func (n *testNode) post(lines ...string) {
	n.t.Helper()
	a := n.do(http.MethodPost, eventsPath, strings.Join(lines, "\n"), "Content-Type", "application/x-ndjson")
	var got struct{ Accepted int }
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK || got.Accepted != len(lines) {
		n.t.Fatalf("posting %d events: got %d %s", len(lines), a.status, a.body)
	}
}

// errorOf reads an error reply and checks its form.
func (n *testNode) errorOf(a answer) map[string]any {
	n.t.Helper()
	var reply struct {
		Error map[string]any `json:"error"`
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(a.body)))
	if err := decoder.Decode(&reply); err != nil || reply.Error == nil {
		n.t.Fatalf("%d %q is no error reply: %v", a.status, a.body, err)
	}
	for _, field := range []string{"code", "message", "field", "value", "hint"} {
		if _, ok := reply.Error[field].(string); !ok {
			n.t.Fatalf("error %s has no %s", a.body, field)
		}
	}
	if a.header.Get("Content-Type") != "application/json" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		n.t.Fatalf("error with headers %v", a.header)
	}
	return reply.Error
}
