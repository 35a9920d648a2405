package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const ndjson = "application/x-ndjson"

// rejection is one refused event of a batch.
type rejection struct {
	Index int    `json:"index"`
	ID    string `json:"id"`
	Code  string `json:"code"`
	Field string `json:"field"`
	Value string `json:"value"`
	Error string `json:"error"`
}

// receipt is the answer to events that were sent.
type receipt struct {
	Accepted   int         `json:"accepted"`
	Duplicates int         `json:"duplicates"`
	Rejected   []rejection `json:"rejected"`
}

// refusal is the answer in the form of every error.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field"`
	Value   string `json:"value"`
	Hint    string `json:"hint"`
}

// windowAnswer is the answer for one window. Max is nil where nothing bounds the truth.
type windowAnswer struct {
	Count int64  `json:"count"`
	Max   *int64 `json:"max"`
	Exact bool   `json:"exact"`
}

// answer is a counter's answer for one key.
type answer struct {
	Counter       string                  `json:"counter"`
	Key           []string                `json:"key"`
	AsOf          int64                   `json:"as_of"`
	Windows       map[string]windowAnswer `json:"windows"`
	NextExpiry    *int64                  `json:"next_expiry"`
	CompleteSince *int64                  `json:"complete_since"`
	Behind        int64                   `json:"behind"`
}

// stored is one event as the log gives it back.
type stored struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Time      string          `json:"time"`
	Segment   string          `json:"partitionkey"`
	Partition int             `json:"weirpartition"`
	Offset    int64           `json:"weiroffset"`
	Arrival   json.RawMessage `json:"weirarrival"`
	Data      json.RawMessage `json:"data"`
}

// send posts NDJSON to a stream and fails the test unless it is answered with 200.
func (n *node) send(stream string, lines ...string) receipt {
	n.t.Helper()
	status, body, err := n.try(http.MethodPost, "/v1/streams/"+stream+"/events", ndjson, []byte(strings.Join(lines, "\n")))
	if err != nil || status != http.StatusOK {
		n.t.Fatalf("cannot send %d events: status %d, %v\n%s", len(lines), status, err, body)
	}
	return decode[receipt](n.t, body)
}

// sendAll is send for events that must all be new and right.
func (n *node) sendAll(stream string, lines ...string) {
	n.t.Helper()
	if r := n.send(stream, lines...); r.Accepted != len(lines) {
		n.t.Fatalf("sent %d events, accepted %d: %+v", len(lines), r.Accepted, r)
	}
}

// count asks a counter over HTTP. asOf nil: now.
func (n *node) count(counter string, asOf *int64, key ...string) answer {
	n.t.Helper()
	query := url.Values{"key": key}
	if asOf != nil {
		query.Set("as_of", strconv.FormatInt(*asOf, 10))
	}
	status, body, err := n.try(http.MethodGet, "/v1/counters/"+counter+"?"+query.Encode(), "", nil)
	if err != nil || status != http.StatusOK {
		n.t.Fatalf("cannot ask %s for %q: status %d, %v\n%s", counter, key, status, err, body)
	}
	return decode[answer](n.t, body)
}

// events reads what query selects from stream events.
func (n *node) events(query string) []stored {
	n.t.Helper()
	resp, err := n.client.Get(n.url("/v1/streams/events/events?" + query))
	if err != nil {
		n.t.Fatalf("cannot read events: %v", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		n.t.Fatalf("cannot read events %s: status %d", query, resp.StatusCode)
	}
	var all []stored
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 2<<20)
	for lines.Scan() {
		all = append(all, decode[stored](n.t, lines.Bytes()))
	}
	if err := lines.Err(); err != nil {
		n.t.Fatalf("cannot read events %s to their end: %v", query, err)
	}
	return all
}

// partition reads all of one partition and checks that its offsets are dense from 0.
func (n *node) partition(i int) []stored {
	n.t.Helper()
	const allOfThem = 1 << 40
	all := n.events(fmt.Sprintf("partition=%d&offset=0&limit=%d", i, allOfThem))
	for offset, e := range all {
		if e.Offset != int64(offset) || e.Partition != i {
			n.t.Fatalf("event %d of partition %d says it is at offset %d of partition %d", offset, i, e.Offset, e.Partition)
		}
	}
	return all
}

// xadd appends one event over RESP. fields are pairs of name and value.
func xadd(c *redis.Client, fields ...string) (string, error) {
	args := []any{"XADD", "events", "*"}
	for _, f := range fields {
		args = append(args, f)
	}
	return c.Do(context.Background(), args...).Text()
}

// respWindow is one window of WEIR.COUNT. Max is nil where nothing bounds the truth.
type respWindow struct {
	name  string
	count int64
	max   *int64
	exact bool
}

// weirCount asks a counter with WEIR.COUNT. asOf nil: now.
func weirCount(t testing.TB, c *redis.Client, counter string, asOf *int64, key ...string) (windows []respWindow, nextExpiry *int64) {
	t.Helper()
	args := []any{"WEIR.COUNT", counter}
	for _, k := range key {
		args = append(args, k)
	}
	if asOf != nil {
		args = append(args, "ASOF", *asOf)
	}
	reply, err := c.Do(context.Background(), args...).Slice()
	if err != nil || len(reply) == 0 {
		t.Fatalf("WEIR.COUNT %s %q: %v, %v", counter, key, reply, err)
	}
	for _, item := range reply[:len(reply)-1] {
		w, ok := item.([]any)
		if !ok || len(w) != 4 {
			t.Fatalf("WEIR.COUNT %s %q: a window is %v; want name, count, max, exact", counter, key, item)
		}
		count, _ := w[1].(int64)
		exact := w[3] == int64(1) || w[3] == true
		windows = append(windows, respWindow{fmt.Sprint(w[0]), count, optional(w[2]), exact})
	}
	return windows, optional(reply[len(reply)-1])
}

func optional(v any) *int64 {
	if n, ok := v.(int64); ok {
		return &n
	}
	return nil
}

func decode[T any](t testing.TB, body []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("cannot read %.200q: %v", body, err)
	}
	return v
}

// show writes an optional number.
func show(n *int64) string {
	if n == nil {
		return "null"
	}
	return strconv.FormatInt(*n, 10)
}

func at(ms int64) *int64 { return &ms }
