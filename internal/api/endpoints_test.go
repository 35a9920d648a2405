package api

import (
	"net/http"
	"strings"
	"testing"
)

const (
	typeLines  = "application/x-ndjson"
	typeOne    = "application/cloudevents+json"
	typeBatch  = "application/cloudevents-batch+json"
	goodEvent  = `{"specversion":"1.0","id":"e-1","source":"/app","type":"impression","data":{"user":"u1","ad":"a9"}}`
	otherEvent = `{"specversion":"1.0","id":"e-2","source":"/app","type":"impression","data":{"user":"u2","ad":"a9"}}`
	badEvent   = `{"specversion":"1.0","id":"e-<3>","source":"/app"}`
)

func TestPostEvents(t *testing.T) {
	n := newTestNode(t, nil)
	rejected := func(index string) string {
		return `{"index":` + index + `,"id":"e-\u003c3\u003e","code":"missing_type","field":"type"`
	}
	for _, c := range []struct {
		name, query, contentType, body string
		status                         int
		want                           string // the reply begins so
	}{
		{"lines", "", typeLines, goodEvent + "\n\n" + otherEvent + "\n", 200, `{"accepted":2,"duplicates":0,"rejected":[]}` + "\n"},
		{"again", "", typeLines, goodEvent, 200, `{"accepted":0,"duplicates":1,"rejected":[]}` + "\n"},
		{"a batch", "", typeBatch, `[` + strings.Replace(goodEvent, "e-1", "e-4", 1) + `,` + badEvent + `,` + otherEvent + `]`, 200,
			`{"accepted":1,"duplicates":1,"rejected":[` + rejected("1")},
		{"an empty batch", "", typeBatch, `[]`, 200, `{"accepted":0,"duplicates":0,"rejected":[]}` + "\n"},
		{"all refused", "", typeLines, badEvent, 200, `{"accepted":0,"duplicates":0,"rejected":[` + rejected("0")},
		{"one", "?ack=memory", typeOne, strings.Replace(goodEvent, "e-1", "e-5", 1), 200, `{"accepted":1,"duplicates":0,"rejected":[]}` + "\n"},
		{"one twice in a batch", "?ack=disk", typeLines, strings.Repeat(strings.Replace(goodEvent, "e-1", "e-6", 1)+"\n", 2), 200, `{"accepted":1,"duplicates":1,"rejected":[]}` + "\n"},
		{"one, refused", "", typeOne, badEvent, 400, `{"error":{"code":"missing_type",`},
		{"no JSON", "", typeOne, "{", 400, `{"error":{"code":"bad_json",`},
		{"another media type", "", "text/plain", "hello", 415, `{"error":{"code":"unsupported_media_type",`},
		{"from the archive", "?ack=archive", typeLines, goodEvent, 400, `{"error":{"code":"no_archive",`},
		{"another ack", "?ack=all", typeLines, goodEvent, 400, `{"error":{"code":"bad_argument","message":"cannot use ack: want memory or disk","field":"ack","value":"all",`},
		{"a typo", "?akc=disk", typeLines, goodEvent, 400, `{"error":{"code":"unknown_parameter","message":"unknown parameter \"akc\"","field":"akc","value":"disk","hint":"did you mean ack?"}}`},
		{"too large", "", typeLines, strings.Repeat(" ", 256<<10+1), 413, `{"error":{"code":"body_too_large",`},
		{"too many", "", typeLines, strings.Repeat(goodEvent+"\n", 1001), 413, `{"error":{"code":"batch_too_large",`},
	} {
		a := n.do(http.MethodPost, eventsPath+c.query, c.body, "Content-Type", c.contentType)
		if a.status != c.status || !strings.HasPrefix(a.body, c.want) {
			t.Errorf("%s: got %d %s\nwant %d %s", c.name, a.status, a.body, c.status, c.want)
		}
		if a.status != http.StatusOK {
			n.errorOf(a)
		}
	}
	binary := n.do(http.MethodPost, eventsPath, `{"user":"u1","ad":"a9"}`, "Content-Type", "application/json",
		"ce-specversion", "1.0", "ce-id", "e-7", "ce-source", "/app", "ce-type", "impression")
	if binary.status != 200 || binary.body != `{"accepted":1,"duplicates":0,"rejected":[]}`+"\n" {
		t.Errorf("binary mode: got %d %s", binary.status, binary.body)
	}
	if left := n.admitted(); left != 0 {
		t.Errorf("%d bytes of bodies are still admitted", left)
	}
	if got := n.stream.Rejected.Total(); got != 4 {
		t.Errorf("%d events were counted as rejected; want 4", got)
	}
}

func TestPostEncoded(t *testing.T) {
	n := newTestNode(t, nil)
	for encoding, body := range map[string][]byte{"gzip": zip(t, []byte(goodEvent)), "zstd": zst(t, []byte(otherEvent))} {
		a := n.do(http.MethodPost, eventsPath, string(body), "Content-Type", typeLines, "Content-Encoding", encoding)
		if a.status != 200 || !strings.HasPrefix(a.body, `{"accepted":1,`) {
			t.Errorf("%s: got %d %s", encoding, a.status, a.body)
		}
	}
}

func TestOverload(t *testing.T) {
	n := newTestNode(t, nil)
	n.bodiesMax = 10
	a := n.do(http.MethodPost, eventsPath, goodEvent, "Content-Type", typeLines)
	if e := n.errorOf(a); a.status != 429 || e["code"] != codeOverloaded || a.header.Get("Retry-After") != "1" {
		t.Errorf("no memory: got %d %s, Retry-After %q", a.status, a.body, a.header.Get("Retry-After"))
	}
	if left := n.admitted(); left != 0 {
		t.Errorf("%d bytes of bodies are still admitted", left)
	}
}

func TestNotReady(t *testing.T) {
	n := newTestNode(t, nil)
	for _, status := range []string{"recovering", "draining"} {
		n.be(status)
		for target, want := range map[string]int{
			eventsPath: 503, "/v1/counters/seen?key=u1&key=a9": 503, "/readyz": 503,
			"/healthz": 200, "/metrics": 200, "/": 200, "/v1/info": 200, "/v1/streams": 200, "/v1/counters": 200,
		} {
			a := n.get(target)
			if a.status != want {
				t.Errorf("%s while %s: got %d %s; want %d", target, status, a.status, a.body, want)
			}
			if want == 503 && target != "/readyz" {
				if e := n.errorOf(a); e["code"] != codeNotReady || e["value"] != status || a.header.Get("Retry-After") != "1" {
					t.Errorf("%s while %s: got %s", target, status, a.body)
				}
			}
		}
		if a := n.do(http.MethodPost, eventsPath, goodEvent, "Content-Type", typeLines); a.status != 503 {
			t.Errorf("posting while %s: got %d", status, a.status)
		}
		if a := n.get("/readyz"); a.body != `{"status":"`+status+`"}`+"\n" {
			t.Errorf("/readyz while %s: got %s", status, a.body)
		}
	}
	n.be("")
	if a := n.get("/readyz"); a.status != 200 || a.body != "{\"status\":\"ready\"}\n" {
		t.Errorf("/readyz: got %d %s", a.status, a.body)
	}
}

func TestRoutes(t *testing.T) {
	n := newTestNode(t, nil)
	for _, c := range []struct {
		method, target string
		status         int
		code, hint     string
	}{
		{"GET", "/v1/stream", 404, codeNotFound, "/v1/streams"},
		{"GET", "/v1/streams/", 404, codeNotFound, "/v1/streams"},
		{"GET", "/v1/streams/impresions/events", 404, codeUnknownStream, "did you mean impressions?"},
		{"POST", "/v1/streams/Clicks/events", 404, codeUnknownStream, "there is impressions"},
		{"GET", "/v1/streams/a%2Fb/events", 404, codeUnknownStream, ""},
		{"GET", "/v1/streams/%3Cscript%3E/events", 404, codeUnknownStream, ""},
		{"GET", "/v1/counters/sene?key=1", 404, codeUnknownCounter, "did you mean seen?"},
		{"DELETE", "/v1/streams/impressions/events", 405, codeMethodNotAllowed, "allowed: GET, HEAD, OPTIONS, POST"},
		{"POST", "/v1/info", 405, codeMethodNotAllowed, "allowed: GET, HEAD, OPTIONS"},
		{"PUT", "/", 405, codeMethodNotAllowed, ""},
		{"BREW", "/healthz", 405, codeMethodNotAllowed, ""},
	} {
		a := n.do(c.method, c.target, "")
		e := n.errorOf(a)
		if a.status != c.status || e["code"] != c.code || !strings.Contains(e["hint"].(string), c.hint) {
			t.Errorf("%s %s: got %d %s; want %d %s with %q", c.method, c.target, a.status, a.body, c.status, c.code, c.hint)
		}
		if (c.status == 405) != (a.header.Get("Allow") != "") {
			t.Errorf("%s %s: Allow is %q", c.method, c.target, a.header.Get("Allow"))
		}
		if strings.Contains(a.body, "<") {
			t.Errorf("%s %s: the reply repeats markup: %s", c.method, c.target, a.body)
		}
	}
	if a := n.do("OPTIONS", eventsPath, ""); a.status != 204 || a.header.Get("Allow") != "GET, HEAD, OPTIONS, POST" {
		t.Errorf("OPTIONS: got %d, Allow %q", a.status, a.header.Get("Allow"))
	}
	for _, target := range []string{"/", "/v1/info", "/healthz", "/v1/streams", "/metrics", eventsPath, "/v1/counters/seen?key=a&key=b"} {
		if a := n.do("HEAD", target, ""); a.status != 200 || a.body != "" {
			t.Errorf("HEAD %s: got %d %q", target, a.status, a.body)
		}
	}
	if a := n.do("POST", eventsPath, goodEvent, "Content-Type", typeLines, "Sec-Fetch-Site", "cross-site"); a.status != 403 || n.errorOf(a)["code"] != codeCrossOrigin {
		t.Errorf("from another site: got %d %s", a.status, a.body)
	}
	if a := n.do("GET", "/v1/info", "", "Host", "evil.example"); a.status != 403 || n.errorOf(a)["code"] != codeForeignHost {
		t.Errorf("another host: got %d %s", a.status, a.body)
	}
	if a := n.get("/"); a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the page: got %d, %v", a.status, a.header)
	}
}

func TestLookUp(t *testing.T) {
	n := newTestNode(t, nil)
	n.post(
		`{"id":"1","type":"impression","time":1796083199000,"data":{"user":"u1","ad":"a9"}}`,
		`{"id":"2","type":"impression","time":1796081400000,"data":{"user":"u1","ad":"a9"}}`,
		`{"id":"3","type":"click","time":1796083199000,"data":{"user":"u1","ad":"a9"}}`,
		`{"id":"4","type":"impression","time":1796083199500,"data":{"user":"u2","ad":"a9"}}`,
	)
	zeros := `{"1m":{"count":0,"max":0,"exact":true},"60m":{"count":0,"max":0,"exact":true},"7d":{"count":0,"max":0,"exact":true}}`
	for _, c := range []struct{ target, want string }{
		{"/v1/counters/seen?key=u1&key=a9",
			`{"counter":"seen","key":["u1","a9"],"as_of":1796083200000,"windows":{"1m":{"count":1,"max":1,"exact":true},"60m":{"count":2,"max":2,"exact":true},"7d":{"count":2,"max":2,"exact":true}},"next_expiry":1796083259000}`},
		{"/v1/counters/seen?key=u1&key=a9&window=60m",
			`{"counter":"seen","key":["u1","a9"],"as_of":1796083200000,"windows":{"60m":{"count":2,"max":2,"exact":true}},"next_expiry":1796083259000}`},
		{"/v1/counters/seen?key=u1&key=a9&as_of=2026-12-01T00:30:00Z&window=60m",
			`{"counter":"seen","key":["u1","a9"],"as_of":1796085000000,"windows":{"60m":{"count":1,"max":1,"exact":true}},"next_expiry":1796086799000}`},
		{"/v1/counters/seen?key=nobody&key=%3C%22", `{"counter":"seen","key":["nobody","\u003c\""],"as_of":1796083200000,"windows":` + zeros + `,"next_expiry":null}`},
		{"/v1/counters/total?key=a9", `{"counter":"total","key":["a9"],"as_of":1796083200000,"windows":{"1m":{"count":3,"max":3,"exact":true}},"next_expiry":1796083259000}`},
	} {
		if a := n.get(c.target); a.status != 200 || a.body != c.want+"\n" {
			t.Errorf("%s: got %d %s\nwant %s", c.target, a.status, a.body, c.want)
		}
	}
	for _, c := range []struct{ query, code, field, hint string }{
		{"", codeKeyParts, "key", "key=<data.user>&key=<data.ad>"},
		{"key=u1", codeKeyParts, "key", "key=<data.user>&key=<data.ad>"},
		{"key=u1&key=a9&key=x", codeKeyParts, "key", ""},
		{"key=u1&key=" + strings.Repeat("x", 257), codeBadArgument, "key", "limits.key_part"},
		{"key=u1&key=a9&window=2h", codeBadArgument, "window", "1m, 60m, 7d"},
		{"key=u1&key=a9&as_of=yesterday", codeBadArgument, "as_of", "2026-12-01T"},
		{"key=u1&key=a9&windows=1m", codeUnknownParameter, "windows", "window"},
	} {
		a := n.get("/v1/counters/seen?" + c.query)
		e := n.errorOf(a)
		if a.status != 400 || e["code"] != c.code || e["field"] != c.field || !strings.Contains(e["hint"].(string), c.hint) {
			t.Errorf("%s: got %d %s; want %s", c.query, a.status, a.body, c.code)
		}
	}
}
