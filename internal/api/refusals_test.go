package api

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/counter"
	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/shard"
	"github.com/weirstream/weir/internal/slide"
)

// TestEngineRefusals maps what the log and the counters answer to what clients see.
func TestEngineRefusals(t *testing.T) {
	var overloads []string
	h := New(Options{Events: Events{Overloaded: func(stream, reason string) { overloads = append(overloads, stream+" "+reason) }}})
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	def := counter.Definition{Name: "seen", Key: []string{"data.user"}}
	for _, c := range []struct {
		err        error
		status     int
		code       string
		retryAfter string
		overload   string
	}{
		{&eventlog.Overload{Partition: 1, RetryAfter: 50 * time.Millisecond}, 429, codeOverloaded, "1", "s queue"},
		{fmt.Errorf("no: %w", &eventlog.Overload{RetryAfter: 4500 * time.Millisecond}), 429, codeOverloaded, "5", "s queue"},
		{eventlog.ErrDiskFull, 429, codeDiskFull, "5", "s disk"},
		{eventlog.ErrClosed, 503, codeNotReady, "1", ""},
		{eventlog.ErrFailed, 500, codeInternal, "", ""},
		{&counter.BuildingError{Counter: "seen", Progress: 0.25}, 503, codeCounterBuilding, "1", ""},
		{counter.ErrKeyParts, 400, codeKeyParts, "", ""},
		{counter.ErrClosed, 503, codeNotReady, "1", ""},
		{counter.ErrFailed, 500, codeInternal, "", ""},
	} {
		w := httptest.NewRecorder()
		asked := &call{w: &reply{ResponseWriter: w}, r: httptest.NewRequest("GET", "/", nil)}
		overloads = nil
		f := h.notAppended(asked, &Stream{Name: "s"}, c.err)
		if f.code == codeInternal {
			f = h.notAnswered(asked, def, c.err)
		}
		f.write(w)
		if w.Code != c.status || f.code != c.code || w.Header().Get("Retry-After") != c.retryAfter {
			t.Errorf("%v: got %d %s, Retry-After %q; want %d %s, %q", c.err, w.Code, w.Body, w.Header().Get("Retry-After"), c.status, c.code, c.retryAfter)
		}
		if c.overload != "" && (len(overloads) != 1 || overloads[0] != c.overload) {
			t.Errorf("%v: told %q; want %q", c.err, overloads, c.overload)
		}
	}
	building := h.notAnswered(nil, def, &counter.BuildingError{Counter: "seen", Progress: 0.25})
	if got, want := string(building.appendJSON(nil)), `{"error":{"code":"counter_building","message":"counter seen is being built from the log: 25.0 % done","field":"counter","value":"seen","hint":"other counters answer; this one does when it is complete","progress":0.2500}}`+"\n"; got != want {
		t.Errorf("building: got %s\nwant %s", got, want)
	}
	w := &reply{ResponseWriter: httptest.NewRecorder(), control: http.NewResponseController(httptest.NewRecorder())}
	asked := &call{w: w, r: httptest.NewRequest("GET", "/", nil).WithContext(gone)}
	if f := h.notAppended(asked, &Stream{}, errors.Join(context.Canceled)); f != nil || w.status != statusGone {
		t.Errorf("a client that left: got %v, counted as %d", f, w.status)
	}
}

// TestAppendAnswer renders what only counters in odd states say.
func TestAppendAnswer(t *testing.T) {
	q := question{name: "seen", only: -1, windows: []slide.Window{{Name: "1m"}, {Name: "60m"}}}
	window := func(count, most int64, exact, complete bool) slide.WindowAnswer {
		return slide.WindowAnswer{Count: count, Max: most, Exact: exact, Complete: complete}
	}
	l := &lookup{key: [][]byte{[]byte("u1"), {0xff}}}
	for _, c := range []struct {
		first, second  slide.WindowAnswer
		expiry, behind int64
		only           int
		want           string
	}{
		{window(1, 1, true, true), window(2, 2, true, true), 9, 0, -1,
			`"windows":{"1m":{"count":1,"max":1,"exact":true},"60m":{"count":2,"max":2,"exact":true}},"next_expiry":9}`},
		{window(1, 1, true, true), window(2, 5, false, false), slide.NoExpiry, 0, -1,
			`"windows":{"1m":{"count":1,"max":1,"exact":true},"60m":{"count":2,"max":null,"exact":false}},"next_expiry":null,"complete_since":-5}`},
		{window(1, 1, true, true), window(2, 5, false, false), slide.NoExpiry, 0, 0,
			`"windows":{"1m":{"count":1,"max":1,"exact":true}},"next_expiry":null}`},
		{window(1, 4, false, true), window(2, 5, false, true), 9, 3, 1,
			`"windows":{"60m":{"count":2,"max":5,"exact":false}},"next_expiry":9,"behind":3}`},
	} {
		l.answer = counter.Answer{AsOf: 7, CompleteSince: -5, Behind: c.behind}
		l.answer.Windows, l.answer.NextExpiry = []slide.WindowAnswer{c.first, c.second}, c.expiry
		q.only = c.only
		if got, want := string(q.appendAnswer(nil, l)), `{"counter":"seen","key":["u1","\ufffd"],"as_of":7,`+c.want+"\n"; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	buffer := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { buffer = q.appendAnswer(buffer[:0], l) }); n != 0 {
		t.Errorf("an answer allocates %v times; want 0", n)
	}
}

// TestReadBehindRetention asks for an offset that retention removed: reading begins at the first that is left.
func TestReadBehindRetention(t *testing.T) {
	n := newTestNode(t, func(o *eventlog.Options) { o.Retention, o.MemtableBytes = time.Minute, 256<<10 })
	partition := n.stream.Log.Partition(shard.Of([]byte("u1"), testPartitions))
	random := rand.New(rand.NewPCG(1, 2))
	padding := make([]byte, 20<<10)
	posted := 0
	// Files are written and given up in the background: events come until some are gone.
	for partition.Frontiers().First == 0 && posted < 2000 {
		for i := range padding {
			padding[i] = byte(random.Uint32())
		}
		n.post(strings.Replace(eventOf(-10*posted, "u1"), `"user"`, fmt.Sprintf(`"pad":"%x","user"`, padding), 1))
		posted++
		n.clock.Advance(10_000)
		n.must(n.set.Flush())
		n.must(n.stream.Log.Trim(n.clock.NowMS()))
	}
	first := partition.Frontiers().First
	a := n.get(eventsPath + "?segment=u1&limit=100000&offset=0")
	events := parseEvents(t, a.body)
	if first == 0 || a.status != 200 || len(events) != posted-int(first) || events[0].WeirOffset != first {
		t.Errorf("after retention moved to %d of %d: got %d, %d events", first, posted, a.status, len(events))
	}
}

// TestNothingPerEvent posts few and many events: what is allocated belongs to the request. The events are duplicates, so that
// nothing works in the background.
func TestNothingPerEvent(t *testing.T) {
	n := newTestNode(t, nil)
	h := New(Options{Backend: n, Clock: n.clock})
	allocations := func(events int) float64 {
		var lines strings.Builder
		for i := range events {
			lines.WriteString(eventOf(i, fmt.Sprintf("u%d", i%50)) + "\n")
		}
		body := lines.String()
		return testing.AllocsPerRun(50, func() {
			r := httptest.NewRequest("POST", eventsPath, strings.NewReader(body))
			r.Header.Set("Content-Type", typeLines)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != 200 {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
		})
	}
	many, few := allocations(900), allocations(10)
	if many > few+90 {
		t.Errorf("900 events allocate %v times, 10 allocate %v times; want about the same", many, few)
	}
	t.Logf("a request allocates %v times", few)
}
