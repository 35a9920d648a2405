package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const (
	structured = "application/cloudevents+json"
	batched    = "application/cloudevents-batch+json"
)

// tableSettings are those of the tests that are tables of requests.
const tableSettings = `limits: {body: 64KiB, event: 2KiB, batch: 50, key_part: 128}
streams:
  events: {partitions: 2, segment: data.user}
  plain: {partitions: 2}
counters:
  - {name: pair, stream: events, key: [data.user, data.ad], windows: [1m, 1h]}
  - {name: ad, stream: events, key: [data.ad], windows: [1h]}
`

// TestContentTypes sends events in each of the four forms and reads them back.
func TestContentTypes(t *testing.T) {
	n := Start(t, tableSettings)
	const event = `{"specversion":"1.0","id":"%s","source":"/app","type":"impression","time":"2026-11-30T12:00:00.1239Z","data":{"user":"u1"},"region":"eu"}`
	one := func(id string) string { return fmt.Sprintf(event, id) }
	for _, c := range []struct {
		name, contentType, body string
		headers                 []string
		accepted                int
	}{
		{"batch", batched, "[" + one("b1") + "," + one("b2") + "]", nil, 2},
		{"batch with a charset", batched + "; charset=utf-8", "[" + one("b3") + "]", nil, 1},
		{"an empty batch", batched, "[]", nil, 0},
		{"structured", structured, one("s1"), nil, 1},
		{"lines", ndjson, one("l1") + "\n\n" + one("l2") + "\r\n" + one("l3"), nil, 3},
		{"lines without version and source", ndjson, `{"id":"l4","type":"t"}` + "\n", nil, 1},
		{"no lines", ndjson, "\n\n", nil, 0},
		{"binary", "application/json", `{"user":"u1"}`, []string{"ce-specversion", "1.0", "ce-id", "n1", "ce-type", "impression", "ce-source", "/app", "ce-time", "2026-11-30T12:00:00Z", "ce-region", "eu"}, 1},
		{"binary with any bytes", "image/png", "\x89PNG", []string{"ce-specversion", "1.0", "ce-id", "n2", "ce-type", "t", "ce-source", "/app"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body, err := n.try(http.MethodPost, "/v1/streams/events/events", c.contentType, []byte(c.body), c.headers...)
			if err != nil || status != http.StatusOK {
				t.Fatalf("status %d, %v: %s", status, err, body)
			}
			if r := decode[receipt](t, body); r.Accepted != c.accepted || r.Duplicates != 0 || len(r.Rejected) != 0 {
				t.Errorf("got %s; want %d accepted", body, c.accepted)
			}
			if !strings.Contains(string(body), `"rejected":[]`) {
				t.Errorf("rejected is not an empty array: %s", body)
			}
		})
	}
	var ids []string
	for p := range 2 {
		for _, e := range n.partition(p) {
			ids = append(ids, e.ID)
			if strings.HasPrefix(e.ID, "b") && e.Time != "2026-11-30T12:00:00.123Z" {
				t.Errorf("%s has time %s; want it cut off below the millisecond", e.ID, e.Time)
			}
		}
	}
	slices.Sort(ids)
	if want := []string{"b1", "b2", "b3", "l1", "l2", "l3", "l4", "n1", "n2", "s1"}; !slices.Equal(ids, want) {
		t.Errorf("the log holds %v; want %v", ids, want)
	}
	whole := map[string]map[string]any{}
	for _, line := range strings.Split(strings.TrimSpace(n.text("/v1/streams/events/events")), "\n") {
		e := decode[map[string]any](t, []byte(line))
		whole[e["id"].(string)] = e
	}
	for _, id := range []string{"b1", "s1", "l1", "n1"} {
		e := whole[id]
		data, _ := e["data"].(map[string]any)
		if e["specversion"] != "1.0" || e["source"] != "/app" || e["region"] != "eu" || e["type"] != "impression" || data["user"] != "u1" ||
			e["weirpartition"] == nil || e["weiroffset"] == nil || e["weirarrival"] == nil {
			t.Errorf("%s comes back as %v", id, e)
		}
	}
	if e := whole["n2"]; e["data_base64"] != "iVBORw==" || e["datacontenttype"] != "image/png" {
		t.Errorf("bytes come back as %v", e)
	}
	if e := whole["l4"]; e["specversion"] != "1.0" || e["source"] == nil || e["time"] == nil {
		t.Errorf("defaults are not filled in: %v", e)
	}
}

// text reads a whole reply that has to be 200.
func (n *node) text(path string) string {
	n.t.Helper()
	status, body, err := n.try(http.MethodGet, path, "", nil)
	if err != nil || status != http.StatusOK {
		n.t.Fatalf("GET %s: status %d, %v\n%s", path, status, err, body)
	}
	return string(body)
}

// TestRefusedRequests is a table of requests that are refused whole. The reply is an error with a stable code, and
// nothing is stored.
func TestRefusedRequests(t *testing.T) {
	n := Start(t, tableSettings)
	const events = "/v1/streams/events/events"
	const good = `{"id":"x","type":"t"}`
	for _, c := range []struct {
		name, method, path, contentType, body string
		status                                int
		code                                  string // empty: only the status is fixed
	}{
		{"unknown stream", "POST", "/v1/streams/nope/events", ndjson, good, 404, "unknown_stream"},
		{"unknown stream to read", "GET", "/v1/streams/nope/events", "", "", 404, "unknown_stream"},
		{"unknown counter", "GET", "/v1/counters/nope?key=a", "", "", 404, "unknown_counter"},
		{"unknown path", "GET", "/v1/nope", "", "", 404, "not_found"},
		{"another method", "DELETE", events, "", "", 405, "method_not_allowed"},
		{"no content type", "POST", events, "", good, 415, "unsupported_media_type"},
		{"another content type", "POST", events, "text/plain", good, 415, "unsupported_media_type"},
		{"another charset", "POST", events, ndjson + "; charset=latin1", good, 415, "unsupported_media_type"},
		{"unknown ack", "POST", events + "?ack=maybe", ndjson, good, 400, "bad_argument"},
		{"no archive", "POST", events + "?ack=archive", ndjson, good, 400, "no_archive"},
		{"unknown parameter", "POST", events + "?acks=disk", ndjson, good, 400, "unknown_parameter"},
		{"broken batch", "POST", events, batched, `[` + good, 400, "bad_json"},
		{"no batch", "POST", events, batched, good, 400, "bad_json"},
		{"broken event", "POST", events, structured, `{"id":`, 400, "bad_json"},
		{"no event", "POST", events, structured, ``, 400, "bad_json"},
		{"an event without id", "POST", events, structured, `{"specversion":"1.0","source":"/a","type":"t"}`, 400, "missing_id"},
		{"an event without type", "POST", events, structured, `{"specversion":"1.0","source":"/a","id":"t"}`, 400, "missing_type"},
		{"another version", "POST", events, structured, `{"specversion":"0.3","source":"/a","id":"t","type":"t"}`, 400, "bad_specversion"},
		{"a body too large", "POST", events, ndjson, strings.Repeat("\n", 64<<10+1), 413, "body_too_large"},
		{"a batch too large", "POST", events, ndjson, strings.Repeat(good+"\n", 51), 413, "batch_too_large"},
		{"no key", "GET", "/v1/counters/pair", "", "", 400, "key_parts"},
		{"half a key", "GET", "/v1/counters/pair?key=u", "", "", 400, "key_parts"},
		{"too much of a key", "GET", "/v1/counters/pair?key=u&key=a&key=b", "", "", 400, "key_parts"},
		{"a key part too long", "GET", "/v1/counters/ad?key=" + strings.Repeat("x", 129), "", "", 400, ""},
		{"another window", "GET", "/v1/counters/ad?key=u&window=2h", "", "", 400, "bad_argument"},
		{"as_of no time", "GET", "/v1/counters/ad?key=u&as_of=soon", "", "", 400, "bad_argument"},
		{"partition and segment", "GET", events + "?partition=0&segment=a", "", "", 400, "bad_argument"},
		{"no such partition", "GET", events + "?partition=2", "", "", 400, "bad_argument"},
		{"offset without partition", "GET", events + "?offset=1", "", "", 400, "bad_argument"},
		{"a limit of nothing", "GET", events + "?limit=0", "", "", 400, "bad_argument"},
		{"from no time", "GET", events + "?from=yesterday", "", "", 400, "bad_argument"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body, err := n.try(c.method, c.path, c.contentType, []byte(c.body))
			if err != nil || status != c.status {
				t.Fatalf("status %d, %v; want %d\n%s", status, err, c.status, body)
			}
			e := decode[struct{ Error refusal }](t, body).Error
			if e.Code == "" || e.Message == "" || c.code != "" && e.Code != c.code {
				t.Errorf("got %s; want code %q", body, c.code)
			}
		})
	}
	for p := range 2 {
		if all := n.partition(p); len(all) > 0 {
			t.Errorf("partition %d holds %+v", p, all)
		}
	}
}

// TestRejectedEvents is a table of events that are refused alone: their neighbours in the batch are stored.
func TestRejectedEvents(t *testing.T) {
	n := Start(t, tableSettings)
	for i, c := range []struct{ name, event, code, field, says string }{
		{"no JSON", `{"id":"x"`, "bad_json", "", ""},
		{"no object", `["id"]`, "bad_type", "", ""},
		{"no id", `{"type":"t"}`, "missing_id", "id", ""},
		{"an empty id", `{"id":"","type":"t"}`, "missing_id", "id", ""},
		{"no type", `{"id":"x"}`, "missing_type", "type", ""},
		{"an id of another type", `{"id":7,"type":"t"}`, "bad_type", "id", ""},
		{"an id too long", `{"id":"` + strings.Repeat("x", 129) + `","type":"t"}`, "id_too_long", "id", ""},
		{"an event too large", `{"id":"x","type":"t","data":"` + strings.Repeat("x", 2048) + `"}`, "event_too_large", "", ""},
		{"a segment too long", `{"id":"x","type":"t","data":{"user":"` + strings.Repeat("x", 129) + `"}}`, "segment_too_long", "data.user", ""},
		{"no time", `{"id":"x","type":"t","time":"noon"}`, "bad_time", "time", ""},
		{"a fraction of a time", `{"id":"x","type":"t","time":1.5}`, "bad_time", "time", ""},
		{"seconds", `{"id":"x","type":"t","time":1767225600}`, "time_unit", "time", "second"},
		{"microseconds", `{"id":"x","type":"t","time":1767225600000000}`, "time_unit", "time", "microsecond"},
		{"nanoseconds", `{"id":"x","type":"t","time":1767225600000000000}`, "time_unit", "time", "nanosecond"},
		{"the largest time", `{"id":"x","type":"t","time":9223372036854775807}`, "", "time", ""},
		{"a time beyond int64", `{"id":"x","type":"t","time":9223372036854775808}`, "bad_time", "time", ""},
		{"the future", `{"id":"x","type":"t","time":"2100-01-01T00:00:00Z"}`, "time_future", "time", ""},
		{"two payloads", `{"id":"x","type":"t","data":1,"data_base64":"AA=="}`, "two_payloads", "", ""},
		{"no base64", `{"id":"x","type":"t","data_base64":"?"}`, "bad_base64", "data_base64", ""},
		{"an attribute that is an object", `{"id":"x","type":"t","extra":{}}`, "", "extra", ""},
		{"bytes that are no text", "{\"id\":\"\xff\",\"type\":\"t\"}", "bad_utf8", "", ""},
		{"another version", `{"specversion":"2.0","id":"x","type":"t"}`, "bad_specversion", "specversion", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := n.send("events", fmt.Sprintf(`{"id":"before%d","type":"t"}`, i), c.event, fmt.Sprintf(`{"id":"behind%d","type":"t"}`, i))
			if r.Accepted != 2 || r.Duplicates != 0 || len(r.Rejected) != 1 {
				t.Fatalf("got %+v; want the neighbours accepted", r)
			}
			got := r.Rejected[0]
			if got.Index != 1 || got.Code == "" || got.Error == "" || c.code != "" && got.Code != c.code || c.field != "" && got.Field != c.field {
				t.Errorf("got %+v; want index 1, code %q, field %q", got, c.code, c.field)
			}
			status, body, _ := n.try(http.MethodPost, "/v1/streams/events/events", ndjson, []byte(c.event))
			if all := decode[receipt](t, body); status != http.StatusOK || len(all.Rejected) != 1 || all.Accepted != 0 {
				t.Errorf("alone in its batch: status %d, %s; want 200 and one rejected", status, body)
			}
			if c.says != "" && !strings.Contains(string(body), c.says) {
				t.Errorf("%s does not say which unit would fit: %q", body, c.says)
			}
		})
	}
	// What looks odd and is right.
	for name, event := range map[string]string{
		"RFC 3339 is never unit-checked": `{"id":"ok1","type":"t","time":"1969-12-31T23:59:59Z"}`,
		"a lower-case zone":              `{"id":"ok2","type":"t","time":"2001-02-03T04:05:06z"}`,
		"an offset":                      `{"id":"ok3","type":"t","time":"2001-02-03T04:05:06.7+09:00"}`,
		"a missing segment":              `{"id":"ok4","type":"t","data":{"user":null}}`,
		"an id of 128 bytes":             `{"id":"` + strings.Repeat("x", 128) + `","type":"t"}`,
	} {
		if r := n.send("events", event); r.Accepted != 1 {
			t.Errorf("%s: %+v; want it accepted", name, r)
		}
	}
}

// TestDuplicates: a copy is acknowledged and not stored again, in one batch, in two requests, over either protocol, with any
// ack, and after a restart or a crash. The same id of another segment is another event.
func TestDuplicates(t *testing.T) {
	n := Start(t, tableSettings)
	line := func(user, id string) string {
		return fmt.Sprintf(`{"id":%q,"type":"t","data":{"user":%q,"ad":"a"}}`, id, user)
	}
	expect := func(what string, r receipt, accepted, duplicates int) {
		t.Helper()
		if r.Accepted != accepted || r.Duplicates != duplicates || len(r.Rejected) != 0 {
			t.Errorf("%s: got %+v; want %d accepted and %d duplicates", what, r, accepted, duplicates)
		}
	}
	expect("in one batch", n.send("events", line("u1", "x"), line("u1", "x"), line("u2", "x"), line("u1", "y")), 3, 1)
	expect("in another request", n.send("events", line("u2", "x"), line("u1", "z")), 1, 1)
	expect("with ack=memory", decode[receipt](t, []byte(n.posted("/v1/streams/events/events?ack=memory", line("u1", "z")))), 0, 1)

	c := n.redis(2)
	first, err := xadd(c, "id", "r", "type", "t", "data", `{"user":"u1","ad":"a"}`)
	if err != nil {
		t.Fatal(err)
	}
	again, err := xadd(c, "id", "r", "type", "t", "data", `{"user":"u1","ad":"a"}`)
	if err != nil || again != first {
		t.Errorf("XADD of a copy answers %q, %v; want the first one's %q", again, err, first)
	}
	expect("added by XADD", n.send("events", line("u1", "r")), 0, 1)
	n.restart()
	expect("after a restart", n.send("events", line("u1", "r"), line("u2", "x"), line("u3", "x")), 1, 2)
	n.crash()
	expect("after a crash", n.send("events", line("u1", "y"), line("u3", "x"), line("u4", "x")), 1, 2)
	if again, err := xadd(n.redis(3), "id", "r", "type", "t", "data", `{"user":"u1","ad":"a"}`); err != nil || again != first {
		t.Errorf("XADD of a copy after restarts answers %q, %v; want the first one's %q", again, err, first)
	}
	for user, want := range map[string]int64{"u1": 4, "u2": 1, "u3": 1, "u4": 1} {
		if w := n.count("pair", nil, user, "a").Windows["1h"]; w.Count != want || !w.Exact {
			t.Errorf("%s counts %+v; want %d", user, w, want)
		}
	}
	if len(n.partition(0))+len(n.partition(1)) != 7 {
		t.Error("the log does not hold each of the seven events once")
	}
}

// posted posts NDJSON and returns the reply, which has to be 200.
func (n *node) posted(path, body string) string {
	n.t.Helper()
	status, reply, err := n.try(http.MethodPost, path, ndjson, []byte(body))
	if err != nil || status != http.StatusOK {
		n.t.Fatalf("POST %s: status %d, %v\n%s", path, status, err, reply)
	}
	return string(reply)
}

// TestReadingEvents selects by segment, partition and time, stops at a limit and resumes where it stopped.
func TestReadingEvents(t *testing.T) {
	n := Start(t, tableSettings)
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf(`{"id":"e%d","type":"t","time":%d,"data":{"user":"u%d"}}`, i, killBase+1000*i, i%5))
	}
	n.sendAll("events", lines...)
	ids := func(all []stored) (ids []string) {
		for _, e := range all {
			ids = append(ids, e.ID)
		}
		return ids
	}
	if got, want := ids(n.events("segment=u3")), []string{"e3", "e8", "e13", "e18", "e23", "e28", "e33", "e38"}; !slices.Equal(got, want) {
		t.Errorf("segment u3: %v; want %v", got, want)
	}
	if got, want := ids(n.events(fmt.Sprintf("segment=u3&from=%d&to=%d", killBase+8000, killBase+23000))), []string{"e8", "e13", "e18"}; !slices.Equal(got, want) {
		t.Errorf("segment u3 from e8 to before e23: %v; want %v", got, want)
	}
	if got, want := ids(n.events("segment=u3&from=2026-01-01T00:00:33Z")), []string{"e33", "e38"}; !slices.Equal(got, want) {
		t.Errorf("segment u3 from an RFC 3339 time: %v; want %v", got, want)
	}
	all := append(n.partition(0), n.partition(1)...)
	if got := n.events("limit=1000"); len(all) != 40 || !slices.Equal(ids(got), ids(all)) {
		t.Errorf("everything is %v; the partitions hold %v", ids(got), ids(all))
	}
	if zero := n.partition(0); !slices.Equal(ids(n.events("partition=0&offset=3&limit=4")), ids(zero[3:7])) {
		t.Error("partition 0 from offset 3, four events: not those")
	}
	next, resumed := "", []string(nil)
	for page := 0; page < 20 && len(resumed) < 40; page++ {
		path := "/v1/streams/events/events?limit=7"
		if next != "" {
			path += "&next=" + next
		}
		var got []string
		got, next = n.page(path)
		resumed = append(resumed, got...)
	}
	if !slices.Equal(resumed, ids(all)) {
		t.Errorf("resumed by Weir-Next: %v; want %v", resumed, ids(all))
	}
	if got := n.events("segment=nobody"); len(got) != 0 {
		t.Errorf("an unknown segment holds %v", got)
	}
}

// page reads one reply and its trailer.
func (n *node) page(path string) (ids []string, next string) {
	n.t.Helper()
	resp, err := n.client.Get(n.url(path))
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		n.t.Fatalf("GET %s: %s, %v", path, resp.Status, err)
	}
	for line := range strings.Lines(string(body)) {
		ids = append(ids, decode[stored](n.t, []byte(line)).ID)
	}
	return ids, resp.Trailer.Get("Weir-Next")
}

// TestFollow keeps a reply open and gets what is sent later.
func TestFollow(t *testing.T) {
	n := Start(t, tableSettings)
	n.sendAll("plain", `{"id":"a","type":"t"}`)
	resp, err := n.client.Get(n.url("/v1/streams/plain/events?follow=true"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	reader := json.NewDecoder(resp.Body)
	var e stored
	if err := reader.Decode(&e); err != nil || e.ID != "a" {
		t.Fatalf("got %+v, %v; want what is stored", e, err)
	}
	for i := range 20 {
		id := fmt.Sprintf("n%d", i)
		n.sendAll("plain", fmt.Sprintf(`{"id":%q,"type":"t"}`, id))
		if err := reader.Decode(&e); err != nil || e.ID != id {
			t.Fatalf("got %+v, %v; want %s", e, err, id)
		}
	}
}

// TestPages looks at what every user looks at first.
func TestPages(t *testing.T) {
	n := Start(t, tableSettings)
	n.sendAll("events", `{"id":"a","type":"t","data":{"user":"u","ad":"a"}}`)
	for path, want := range map[string]string{
		"/": "<html", "/healthz": "", "/readyz": "", "/metrics": "weir_", "/v1/streams": `"events"`, "/v1/counters": `"pair"`, "/v1/info": `"version"`,
	} {
		if text := n.text(path); !strings.Contains(text, want) {
			t.Errorf("%s does not contain %q: %.300s", path, want, text)
		}
	}
	unknown := n.count("pair", nil, "nobody", "nothing")
	if w := unknown.Windows["1h"]; w.Count != 0 || !w.Exact || unknown.NextExpiry != nil || unknown.Counter != "pair" {
		t.Errorf("an unknown key answers %+v; want zeros", unknown)
	}
	one := decode[answer](t, []byte(n.text("/v1/counters/pair?key=u&key=a&window=1h")))
	if len(one.Windows) != 1 || one.Windows["1h"].Count != 1 {
		t.Errorf("one window: %+v", one)
	}
}
