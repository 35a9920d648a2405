package metrics

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/weirstream/weir/internal/clock"
	"github.com/weirstream/weir/internal/counter"
	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/shard"
	"github.com/weirstream/weir/internal/slide"
)

const testNow = 1_796_083_200_000

// newTestMetrics returns metrics over a real log with three events, one of them twice, and a counter that skips one.
func newTestMetrics(t *testing.T) *Metrics {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := &clock.Manual{}
	now.Set(testNow)
	fs := vfs.NewMem()
	fatal := func(err error) { panic(err) }
	log, err := eventlog.Open(eventlog.Options{FS: fs, Dir: "log", Stream: "clicks", Partitions: 2, RingBytes: 4 << 20, MemtableBytes: 1 << 20,
		EventBytesMax: 64 << 10, DiskReserve: -1, BallastBytes: -1, Clock: now, Fatal: fatal})
	must(err)
	set, err := counter.Open(counter.Options{FS: fs, Dir: "counters", Streams: []counter.Stream{{Name: "clicks", Log: log}},
		Definitions: []counter.Definition{{Name: "seen", Stream: "clicks", Where: `type == "click"`, Key: []string{"type"},
			Windows: []slide.Window{{Name: "1h", Millis: 3_600_000}}, LatenessMS: 1000}},
		Epoch: time.Millisecond, Clock: now, Fatal: fatal})
	must(err)
	t.Cleanup(func() {
		must(set.Close())
		must(log.Close(context.Background()))
	})
	must(set.WaitCaughtUp(context.Background()))
	batches := make([]event.Batch, 2)
	for i, kind := range []string{"click", "click", "view", "click"} {
		e := event.Event{ID: []byte{byte('a' + i%3)}, Segment: []byte{byte('a' + i%3)}, Type: []byte(kind), Time: testNow, Arrival: testNow}
		hash, _ := event.HashOf(nil, e.Segment, e.ID)
		batches[shard.Of(e.Segment, 2)].Add(&e, hash, i)
	}
	must(log.Append(context.Background(), batches, eventlog.AckDisk))
	// A look-up waits for what was appended before it, and says how much is missing.
	seen, _ := set.Counter("seen")
	for a := (counter.Answer{Behind: 1}); a.Behind > 0; {
		must(seen.Lookup(context.Background(), [][]byte{[]byte("click")}, testNow, &a))
	}
	m := New(Options{Version: "v1", Sources: Sources{
		Streams:           func() []Stream { return []Stream{{Name: "clicks", Log: log}} },
		Counters:          set.Info,
		CounterPartitions: set.Partitions,
		Node:              func() Node { return Node{Ready: true, MemoryLimitBytes: 1 << 30, DiskFreeBytes: 5, DiskFull: true} },
	}})
	m.Request("/v1/info", "GET", 200, time.Millisecond)
	m.Overloaded("clicks", "queue")
	m.ConnectionRefused("http")
	m.Fsync("clicks", time.Millisecond)
	m.LookedUp("seen", time.Microsecond)
	m.LookedUp("seen", time.Microsecond)
	rejections := m.Rejections("clicks")
	rejections.Add("bad_time", 2)
	rejections.Add("missing_id", 1)
	if rejections.Total() != 3 {
		t.Fatalf("%d rejections; want 3", rejections.Total())
	}
	return m
}

// TestLint has Prometheus's own linter judge names, help and types.
func TestLint(t *testing.T) {
	gathered, err := newTestMetrics(t).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(gathered).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		// weir_counter_… are metrics of Weir's counters: the word is the product's, not the metric's type.
		word := strings.HasPrefix(p.Metric, "weir_counter_") && p.Text == "metric name should not include type 'counter'"
		if strings.HasPrefix(p.Metric, "weir_") && !word {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// gather returns the sums of a registry's metrics over their labels, and the labels by name.
func gather(t *testing.T, m *Metrics) (sums map[string]float64, families map[string]*dto.MetricFamily) {
	t.Helper()
	gathered, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums, families = map[string]float64{}, map[string]*dto.MetricFamily{}
	for _, f := range gathered {
		families[f.GetName()] = f
		for _, s := range f.GetMetric() {
			sums[f.GetName()] += s.GetCounter().GetValue() + s.GetGauge().GetValue() + float64(s.GetHistogram().GetSampleCount())
		}
	}
	return sums, families
}

func TestValues(t *testing.T) {
	sums, _ := gather(t, newTestMetrics(t))
	for name, want := range map[string]float64{
		"weir_build_info": 1, "weir_ready": 1, "weir_disk_full": 1, "weir_disk_free_bytes": 5, "weir_memory_limit_bytes": 1 << 30,
		"weir_events_accepted_total": 3, "weir_events_duplicate_total": 1, "weir_events_rejected_total": 3,
		"weir_log_first_offset": 0, "weir_log_appended_offset": 3, "weir_log_durable_offset": 3,
		"weir_counter_applied_total": 2, "weir_counter_skipped_total": 1, "weir_counter_late_total": 0, "weir_counter_conflicts_total": 0,
		"weir_counter_lag_events": 0, "weir_counter_building_ratio": 1, "weir_counter_failed": 0,
		"weir_requests_total": 1, "weir_request_seconds": 1, "weir_overload_total": 1, "weir_connections_refused_total": 1,
		"weir_fsync_seconds": 1, "weir_lookup_seconds": 2, "weir_ring_spills_total": 0,
	} {
		if got, ok := sums[name]; !ok || got != want {
			t.Errorf("%s: got %v (there: %v); want %v", name, got, ok, want)
		}
	}
	if sums["weir_ring_bytes"] <= 0 {
		t.Errorf("weir_ring_bytes: got %v; want more than 0", sums["weir_ring_bytes"])
	}
}

func TestHandler(t *testing.T) {
	w := httptest.NewRecorder()
	newTestMetrics(t).Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("got %d, %v", w.Code, w.Header())
	}
	for _, line := range []string{
		`weir_events_rejected_total{code="bad_time",stream="clicks"} 2`,
		`weir_requests_total{code="200",method="GET",route="/v1/info"} 1`,
		`weir_counter_skipped_total{counter="seen",partition="`,
		"# TYPE weir_lookup_seconds histogram",
		"go_goroutines ",
		"process_resident_memory_bytes ",
	} {
		if !strings.Contains(w.Body.String(), "\n"+line) {
			t.Errorf("there is no line %q", line)
		}
	}
}

const page = "../../docs/reference/metrics.md"

// TestPublished compares the reference page with the registry. To write the page's table anew, copy what the test prints.
func TestPublished(t *testing.T) {
	_, families := gather(t, newTestMetrics(t))
	var rows []string
	for name, f := range families {
		if !strings.HasPrefix(name, "weir_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", name, strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp()))
	}
	sort.Strings(rows)
	want := "| Name | Type | Labels | Meaning |\n|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n"+want) {
		t.Errorf("%s does not hold the registry's table:\n%s", page, want)
	}
}
