package cloudevents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/path"
	"github.com/weirstream/weir/internal/shard"
)

const now = 1_796_083_200_000 // 2026-12-01T00:00:00Z

func testRules(t testing.TB) *Rules {
	t.Helper()
	segment, err := path.Parse("data.user")
	if err != nil {
		t.Fatal(err)
	}
	return &Rules{Segment: segment, Partitions: 4, EventBytesMax: 4096, BatchMax: 100, KeyPartMax: 256, Skew: 300_000, UnitCheck: true}
}

func media(text string) http.Header { return http.Header{"Content-Type": {text}} }

// stored decodes what a parse left, in the order of the request.
func stored(t testing.TB, p *Parser) []event.Event {
	t.Helper()
	events := make([]event.Event, p.Sent)
	found := 0
	for partition := range p.Batches {
		b := &p.Batches[partition]
		for i := range b.Items {
			var e event.Event
			if _, err := e.Decode(b.Record(i)); err != nil {
				t.Fatal(err)
			}
			if got := shard.Of(e.Segment, len(p.Batches)); got != partition {
				t.Fatalf("segment %q lies in partition %d; want %d", e.Segment, partition, got)
			}
			if e.Hash() != b.Items[i].Hash || e.Time != b.Items[i].Time {
				t.Fatalf("item %+v does not match its record", b.Items[i])
			}
			events[b.Items[i].Index] = e
			found++
		}
	}
	if found+len(p.Rejected) != p.Sent {
		t.Fatalf("got %d stored and %d rejected; want %d", found, len(p.Rejected), p.Sent)
	}
	rest := events[:0]
	for _, e := range events {
		if e.ID != nil {
			rest = append(rest, e)
		}
	}
	return rest
}

// outcome says what became of one event sent as a line: what is stored, or the code of its refusal.
func outcome(t *testing.T, rules *Rules, line string) string {
	t.Helper()
	var p Parser
	if err := p.Parse(rules, media("application/x-ndjson; charset=utf-8"), []byte(line+"\n"), now); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if len(p.Rejected) > 0 {
		r := p.Rejected[0]
		for _, text := range []string{r.ID, r.Field, r.Value, r.Message, r.Hint} {
			if !utf8.ValidString(text) {
				t.Fatalf("%q: refusal %+v is no UTF-8", line, r)
			}
		}
		return r.Code
	}
	e := stored(t, &p)[0]
	return string(AppendJSON(nil, &e, 1, 7))
}

func TestEvents(t *testing.T) {
	const tail = `,"weirpartition":1,"weiroffset":7,"weirarrival":"2026-12-01T00:00:00.000Z"}`
	const head = `{"specversion":"1.0","id":"1","source":"/weir","type":"t"`
	const at = `,"time":"2026-12-01T00:00:00.000Z"`
	for _, c := range []struct{ in, want string }{
		{`{"id":"1","type":"t"}`, head + at + tail},
		{` {"type":"t" , "id":"1"} ` + "\r", head + at + tail},
		{`{"specversion":"1.0","id":"1","source":"/app","type":"t","data":{"user":"u1"}}`, `{"specversion":"1.0","id":"1","source":"/app","type":"t"` + at + `,"data":{"user":"u1"}` + tail},
		{`{"id":"1","type":"t","ext":"a\"b","n":1.0,"big":9223372036854775807,"flag":false,"none":null}`, head + at + `,"ext":"a\"b","n":1,"big":9223372036854775807,"flag":false` + tail},
		{`{"id":"1","type":"t","weiroffset":9,"weirpartition":1,"weirarrival":"x"}`, head + at + tail},
		{`{"id":"0","\u0069d":"1","type":"t","a":1,"a":2}`, head + at + `,"a":2` + tail},
		{`{"id":"1","type":"t","data":null}`, head + at + `,"data":null` + tail},
		{`{"id":"1","type":"t","data":"x","datacontenttype":"text/plain"}`, head + at + `,"datacontenttype":"text/plain","data":"x"` + tail},
		{`{"id":"1","type":"t","data_base64":"aGk="}`, head + at + `,"data_base64":"aGk="` + tail},
		{`{"id":"1","type":"t","data_base64":""}`, head + at + `,"data_base64":""` + tail},
		{`{"id":"1","type":"t","time":"2026-11-30T12:00:00.1239Z"}`, head + `,"time":"2026-11-30T12:00:00.123Z"` + tail},
		{`{"id":"1","type":"t","time":"1969-12-31T23:59:59.9999+00:00"}`, head + `,"time":"1969-12-31T23:59:59.999Z"` + tail},
		{`{"id":"1","type":"t","time":"2026-11-30T21:00:00+09:00"}`, head + `,"time":"2026-11-30T12:00:00.000Z"` + tail},
		{`{"id":"1","type":"t","time":1796083200001}`, head + `,"time":"2026-12-01T00:00:00.001Z"` + tail},
		{`{"id":"1","type":"t","time":null}`, head + at + tail},
		{`{"id":"1","type":"t","time":1796083200}`, CodeTimeUnit},
		{`{"id":"1","type":"t","time":1796083200000000}`, CodeTimeUnit},
		{`{"id":"1","type":"t","time":1796083200000000000}`, CodeTimeUnit},
		{`{"id":"1","type":"t","time":0}`, CodeTimeUnit},
		{`{"id":"1","type":"t","time":-1}`, CodeTimeUnit},
		{`{"id":"1","type":"t","time":-9223372036854775808}`, CodeTimeUnit},
		{`{"id":"1","type":"t","time":9223372036854775807}`, CodeBadTime},
		{`{"id":"1","type":"t","time":9223372036854775808}`, CodeBadTime},
		{`{"id":"1","type":"t","time":1.5}`, CodeBadTime},
		{`{"id":"1","type":"t","time":1e12}`, CodeBadTime},
		{`{"id":"1","type":"t","time":"1796083200000"}`, CodeBadTime},
		{`{"id":"1","type":"t","time":"yesterday"}`, CodeBadTime},
		{`{"id":"1","type":"t","time":true}`, CodeBadType},
		{`{"id":"1","type":"t","time":1796083500000}`, head + `,"time":"2026-12-01T00:05:00.000Z"` + tail},
		{`{"id":"1","type":"t","time":1796083500001}`, CodeTimeFuture},
		{`{"id":"1","type":"t","time":"2026-12-01T00:05:00.001Z"}`, CodeTimeFuture},
		{`{"type":"t"}`, CodeMissingID},
		{`{"id":"","type":"t"}`, CodeMissingID},
		{`{"id":null,"type":"t"}`, CodeMissingID},
		{`{"id":7,"type":"t"}`, CodeBadType},
		{`{"id":"1"}`, CodeMissingType},
		{`{"id":"` + strings.Repeat("i", 129) + `","type":"t"}`, CodeIDTooLong},
		{`{"id":"1","type":"t","specversion":"0.3"}`, CodeBadVersion},
		{`{"id":"1","type":"t","specversion":1.0}`, CodeBadType},
		{`{"id":"1","type":"t","Upper":1}`, CodeBadAttribute},
		{`{"id":"1","type":"t","":1}`, CodeBadAttribute},
		{`{"id":"1","type":"t","o":{}}`, CodeBadAttribute},
		{`{"id":"1","type":"t","o":[1]}`, CodeBadAttribute},
		{`{"id":"1","type":"t","o":1.5}`, CodeBadAttribute},
		{`{"id":"1","type":"t","subject":1}`, CodeBadType},
		{`{"id":"1","type":"t","data":1,"data_base64":"aGk="}`, CodeTwoPayloads},
		{`{"id":"1","type":"t","data_base64":"a"}`, CodeBadBase64},
		{`{"id":"1","type":"t","data_base64":1}`, CodeBadType},
		{`{"id":"1","type":"t","data":"` + strings.Repeat("x", 5000) + `"}`, CodeEventTooLarge},
		{`{"id":"1","type":"t","data":{"user":"` + strings.Repeat("x", 257) + `"}}`, CodeSegmentLong},
		{`{"id":"1","type":"t","data":"\ud800"}`, CodeBadUTF8},
		{"{\"id\":\"\xff\",\"type\":\"t\"}", CodeBadUTF8},
		{`{"id":"1","type":"t"`, CodeBadJSON},
		{`{"id":"1","type":"t"} x`, CodeBadJSON},
		{`[]`, CodeBadType},
		{`7`, CodeBadType},
		{`{"id":"1","type":"t","data":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, CodeBadJSON},
	} {
		if got := outcome(t, testRules(t), c.in); got != c.want {
			t.Errorf("%.200s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

func TestTooManyAttributes(t *testing.T) {
	var line strings.Builder
	line.WriteString(`{"id":"1","type":"t"`)
	for i := range attrsMax + 1 {
		fmt.Fprintf(&line, `,"a%d":1`, i)
	}
	if got := outcome(t, testRules(t), line.String()+"}"); got != CodeTooManyAttrs {
		t.Errorf("got %s; want %s", got, CodeTooManyAttrs)
	}
}

func TestTimeRules(t *testing.T) {
	const early, late = `{"id":"1","type":"t","time":-1}`, `{"id":"1","type":"t","time":1796083500001}`
	for _, c := range []struct {
		future    Future
		unitCheck bool
		in, want  string
	}{
		{FutureReject, false, early, "1969-12-31T23:59:59.999Z"},
		{FutureReject, false, `{"id":"1","type":"t","time":-62135596800000}`, "0001-01-01T00:00:00.000Z"},
		{FutureReject, false, `{"id":"1","type":"t","time":-62135596800001}`, CodeBadTime},
		{FutureAccept, false, `{"id":"1","type":"t","time":253402300799999}`, "9999-12-31T23:59:59.999Z"},
		{FutureAccept, false, `{"id":"1","type":"t","time":253402300800000}`, CodeBadTime},
		{FutureAccept, false, `{"id":"1","type":"t","time":9223372036854775807}`, CodeBadTime},
		{FutureAccept, true, `{"id":"1","type":"t","time":1796083200000000}`, CodeTimeUnit},
		{FutureReject, false, late, CodeTimeFuture},
		{FutureClamp, true, late, "2026-12-01T00:05:00.000Z"},
		{FutureAccept, true, late, "2026-12-01T00:05:00.001Z"},
		{FutureClamp, true, `{"id":"1","type":"t","time":"2030-01-01T00:00:00Z"}`, "2026-12-01T00:05:00.000Z"},
		{FutureAccept, true, `{"id":"1","type":"t","time":"2030-01-01T00:00:00Z"}`, "2030-01-01T00:00:00.000Z"},
	} {
		rules := testRules(t)
		rules.Future, rules.UnitCheck = c.future, c.unitCheck
		got := outcome(t, rules, c.in)
		if strings.HasPrefix(got, "{") {
			var shown struct{ Time string }
			if err := json.Unmarshal([]byte(got), &shown); err != nil {
				t.Fatal(err)
			}
			got = shown.Time
		}
		if got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}

func TestUnitIsNamed(t *testing.T) {
	for unit, in := range map[string]string{"seconds": "1796083200", "microseconds": "1796083200000000", "nanoseconds": "1796083200000000000"} {
		var p Parser
		if err := p.Parse(testRules(t), media(mediaLines), []byte(`{"id":"1","type":"t","time":`+in+`}`), now); err != nil {
			t.Fatal(err)
		}
		if r := p.Rejected[0]; !strings.Contains(r.Message, unit) || !strings.Contains(r.Message, "2026-12-01T00:00:00.000Z") || r.Value != in || r.Field != "time" {
			t.Errorf("%s: got %+v", unit, r)
		}
	}
}

func TestSegment(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`"data":{"user":"u1"}`, "u1"},
		{`"data":{"user":"\u0075\n"}`, "u\n"},
		{`"data":{"user":1.50}`, "1.5"},
		{`"data":{"user":-0}`, "0"},
		{`"data":{"user":true}`, "true"},
		{`"data":{"user":"a","user":"b"}`, "b"},
		{`"data":{"us\u0065r":"b"}`, "b"},
		{`"data":{"user":null}`, "1"},
		{`"data":{"user":{}}`, "1"},
		{`"data":{"user":[]},"partitionkey":"pk"`, "pk"},
		{`"data":7,"partitionkey":"pk"`, "pk"},
		{`"data":{},"partitionkey":12.0`, "12"},
		{`"data":{},"partitionkey":""`, "1"},
		{`"data_base64":"eyJ1c2VyIjoidTEifQ==","partitionkey":"pk"`, "pk"},
	} {
		var p Parser
		if err := p.Parse(testRules(t), media(mediaLines), []byte(`{"id":"1","type":"t",`+c.in+`}`), now); err != nil {
			t.Fatal(err)
		}
		if len(p.Rejected) > 0 {
			t.Fatalf("%s: %+v", c.in, p.Rejected)
		}
		if got := string(stored(t, &p)[0].Segment); got != c.want {
			t.Errorf("%s: got segment %q; want %q", c.in, got, c.want)
		}
	}
}

func TestBatchKinds(t *testing.T) {
	const a, b = `{"id":"a","type":"t"}`, `{"id":"b","type":"t"}`
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for _, c := range []struct{ media, body, want string }{
		{mediaLines, "", ""},
		{mediaLines, "\n\r\n \n", ""},
		{mediaLines, a + "\n\n" + b, "a b"},
		{mediaLines, "\ufeff" + a + "\r\n{\r\n" + b + "\r\n", "a !1 b"},
		{mediaLines, a + "\nnull\n[]\n" + b, "a !1 !2 b"},
		{mediaBatch, "", ""},
		{mediaBatch, " [ ] ", ""},
		{mediaBatch, "[" + a + "," + b + "]\n", "a b"},
		{mediaBatch, "[" + a + " , 7 , {} ,\n" + b + " ]", "a !1 !2 b"},
		{mediaBatch, "[" + a + `,{"id":"\ud800"},` + b + "]", "a !1 b"},
		{mediaBatch, "[" + a + ",{\"id\":\"\xff\"}," + b + "]", "a !1 b"},
		{mediaBatch, "[" + a + `,{"data":` + deep + `},` + b + "]", "a !1 b"},
		{mediaBatch, "[" + a + "," + deep + "," + b + "]", "a !1 b"},
		{mediaBatch, "[" + a, "400 bad_json"},
		{mediaBatch, "[" + a + ",]", "400 bad_json"},
		{mediaBatch, "[" + a + b + "]", "400 bad_json"},
		{mediaBatch, "[" + a + "] x", "400 bad_json"},
		{mediaBatch, "[" + a + ",{]", "400 bad_json"},
		{mediaBatch, "[", "400 bad_json"},
		{mediaBatch, a, "400 bad_json"},
		{mediaStructured, a, "a"},
		{mediaStructured + "; charset=UTF-8", " " + a + " \n", "a"},
		{mediaStructured, "", "400 bad_json"},
		{mediaStructured, "{}", "400 missing_id"},
		{mediaStructured, "[" + a + "]", "400 bad_type"},
		{mediaStructured + "; charset=latin1", a, "415 unsupported_media_type"},
		{"application/cloudevents+avro", a, "415 unsupported_media_type"},
		{"application/json", a, "415 unsupported_media_type"},
		{"", a, "415 unsupported_media_type"},
		{";;", a, "415 unsupported_media_type"},
		{mediaLines, strings.Repeat(a+"\n", 101), "413 batch_too_large"},
		{mediaBatch, "[" + strings.Repeat(a+",", 100) + a + "]", "413 batch_too_large"},
	} {
		var p Parser
		err := p.Parse(testRules(t), media(c.media), []byte(c.body), now)
		if got := summary(t, &p, err); got != c.want {
			t.Errorf("%s %.120q: got %q; want %q", c.media, c.body, got, c.want)
		}
	}
}

// summary writes the ids that were stored and the places that were refused, in the order of the request.
func summary(t testing.TB, p *Parser, err error) string {
	t.Helper()
	var problem *Problem
	if errors.As(err, &problem) {
		for i := range p.Batches {
			if len(p.Batches[i].Items) > 0 {
				t.Fatalf("%v left events to store", err)
			}
		}
		return fmt.Sprint(problem.Status, " ", problem.Code)
	}
	words := make([]string, p.Sent)
	for _, r := range p.Rejected {
		words[r.Index] = fmt.Sprint("!", r.Index)
	}
	for _, e := range stored(t, p) {
		for i := range words {
			if words[i] == "" {
				words[i] = string(e.ID)
				break
			}
		}
	}
	return strings.Join(words, " ")
}

func TestBinaryMode(t *testing.T) {
	for _, c := range []struct {
		header http.Header
		body   string
		want   string
	}{
		{http.Header{"Content-Type": {"application/json"}, "Ce-Id": {"1"}, "Ce-Type": {"t"}, "Ce-Specversion": {"1.0"}, "Ce-Source": {"/s"}, "Ce-Time": {"2026-11-30T00:00:00Z"}, "Ce-Zext": {"b"}, "Ce-Aext": {"%E2%82%AC 100%"}},
			` {"user":"u"} `, `{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"2026-11-30T00:00:00.000Z","datacontenttype":"application/json","aext":"€ 100%","zext":"b","data":{"user":"u"}`},
		{http.Header{"Content-Type": {"application/vnd.x+json; v=1"}, "Ce-Id": {`"a \"b\""`}, "Ce-Type": {"t"}}, `1`, `{"specversion":"1.0","id":"a \"b\"","source":"/weir","type":"t","time":"2026-12-01T00:00:00.000Z","datacontenttype":"application/vnd.x+json; v=1","data":1`},
		{http.Header{"Content-Type": {"text/plain"}, "Ce-Id": {"1"}, "Ce-Type": {"t"}}, `hi`, `{"specversion":"1.0","id":"1","source":"/weir","type":"t","time":"2026-12-01T00:00:00.000Z","datacontenttype":"text/plain","data_base64":"aGk="`},
		{http.Header{"Ce-Id": {"1"}, "Ce-Type": {"t"}}, `{"a":1}`, `{"specversion":"1.0","id":"1","source":"/weir","type":"t","time":"2026-12-01T00:00:00.000Z","data":{"a":1}`},
		{http.Header{"Ce-Id": {"1"}, "Ce-Type": {"t"}, "Ce-Time": {"1796083200000"}}, ``, `{"specversion":"1.0","id":"1","source":"/weir","type":"t","time":"2026-12-01T00:00:00.000Z"`},
		{http.Header{"Content-Type": {"application/json"}, "Ce-Id": {"1"}, "Ce-Type": {"t"}}, `{`, "400 bad_json"},
		{http.Header{"Content-Type": {"text/plain"}, "Ce-Id": {"1"}}, `hi`, "400 missing_type"},
		{http.Header{"Content-Type": {"text/plain"}, "Ce-Type": {"t"}}, `hi`, "400 missing_id"},
		{http.Header{"Content-Type": {mediaStructured}, "Ce-Id": {"1"}, "Ce-Type": {"t"}}, `hi`, "400 bad_json"},
		{http.Header{"Content-Type": {"text/plain"}, "Ce-Id": {"1"}, "Ce-Type": {"t"}, "Ce-A-B": {"x"}}, `hi`, "400 bad_attribute"},
		{http.Header{"Content-Type": {"text/plain"}, "Ce-Id": {"1"}, "Ce-Type": {"%FF"}}, `hi`, "400 bad_utf8"},
		{http.Header{"Content-Type": {"text/plain"}, "Ce-Id": {"1"}, "Ce-Type": {"t"}, "Ce-Specversion": {"2.0"}}, `hi`, "400 bad_specversion"},
		{http.Header{"Content-Type": {"text/plain"}, "Ce-Id": {"1"}, "Ce-Type": {"t"}, "Ce-Data": {"x"}}, `hi`, "400 bad_attribute"},
	} {
		var p Parser
		err := p.Parse(testRules(t), c.header, []byte(c.body), now)
		got := ""
		if err != nil {
			got = summary(t, &p, err)
		} else {
			e := stored(t, &p)[0]
			got, _, _ = strings.Cut(string(AppendJSON(nil, &e, 0, 0)), `,"weirpartition"`)
		}
		if got != c.want {
			t.Errorf("%v %s:\n got %s\nwant %s", c.header, c.body, got, c.want)
		}
	}
}

// TestRejection holds the whole text of refusals that clients show.
func TestRejection(t *testing.T) {
	body := `{"id":"a","type":"t","time":"soon"}` + "\n7\n" + `{"id":"b","type":}` + "\n" + `{"id":"` + strings.Repeat("é", 100) + `"}` + "\n"
	var p Parser
	if err := p.Parse(testRules(t), media(mediaLines), []byte(body), now); err != nil {
		t.Fatal(err)
	}
	want := []Rejection{
		{0, "a", CodeBadTime, "time", "soon", `cannot read time: got "soon"; want 2026-11-30T12:00:00.123Z, or an integer of milliseconds`, "leave time out to take the time of arrival"},
		{1, "", CodeBadType, "", "7", "cannot read the event: got a number; want an object", ""},
		{2, "b", CodeBadJSON, "", `{"id":"b","type":}`, `cannot read JSON: got unexpected byte '}' at offset 17`, "send each event as one JSON object"},
		{3, strings.Repeat("é", 64) + "…", CodeIDTooLong, "id", strings.Repeat("é", 64) + "…", "cannot take the event: got an id of 200 bytes; want at most 128", ""},
	}
	for i, r := range p.Rejected {
		if r != want[i] {
			t.Errorf("got  %+v\nwant %+v", r, want[i])
		}
	}
	if len(p.Rejected) != len(want) {
		t.Errorf("got %d refusals; want %d", len(p.Rejected), len(want))
	}
}

// TestReuse alternates between streams of different partitions and kinds of bodies.
func TestReuse(t *testing.T) {
	var p Parser
	wide, narrow := testRules(t), testRules(t)
	narrow.Partitions = 1
	line := []byte(`{"id":"a","type":"t"}`)
	for range 3 {
		for _, rules := range []*Rules{wide, narrow} {
			if err := p.Parse(rules, media(mediaLines), line, now); err != nil || p.Single {
				t.Fatal(err)
			}
			if got := summary(t, &p, nil); got != "a" || len(p.Batches) != rules.Partitions {
				t.Fatalf("got %q in %d batches; want a in %d", got, len(p.Batches), rules.Partitions)
			}
			if err := p.Parse(rules, media(mediaStructured), []byte("{}"), now); err == nil || !p.Single {
				t.Fatal("a refused single event gave no Problem")
			}
		}
	}
}

func TestFields(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"id|1|type|t", `{"specversion":"1.0","id":"1","source":"/weir","type":"t","time":"2026-12-01T00:00:00.000Z"`},
		{"id|1|type|t|time|1796083200001|segment|s|source|/s|ext|5|data|{\"a\": [1]}", `{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"2026-12-01T00:00:00.001Z","partitionkey":"s","ext":"5","data":{"a": [1]}`},
		{"id|1|type|t|data|{", "400 bad_json"},
		{"id|1|type", "400 bad_fields"},
		{"id|1", "400 missing_type"},
		{"id|1|type|t|time|soon", "400 bad_time"},
		{"id|1|type|t|time|1796083200", "400 time_unit"},
		{"id|1|type|t|Name|x", "400 bad_attribute"},
		{"id|1|type|t|name|\xff", "400 bad_utf8"},
	} {
		var p Parser
		err := p.ParseFields(testRules(t), bytes.Split([]byte(c.in), []byte("|")), now)
		got := ""
		if err != nil {
			got = summary(t, &p, err)
		} else {
			e := stored(t, &p)[0]
			got, _, _ = strings.Cut(string(AppendJSON(nil, &e, 0, 0)), `,"weirpartition"`)
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

// TestKindsAgree sends one event in every form that can hold it and wants the same record.
func TestKindsAgree(t *testing.T) {
	const line = `{"specversion":"1.0","id":"1","type":"t","source":"/s","time":1796083200001,"datacontenttype":"application/json","partitionkey":"pk","ext":"a b","data":{"n":[1, "é"]}}`
	binary := http.Header{"Content-Type": {"application/json"}, "Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Type": {"t"}, "Ce-Source": {"/s"},
		"Ce-Time": {"1796083200001"}, "Ce-Partitionkey": {"pk"}, "Ce-Ext": {"a%20b"}}
	for _, c := range []struct {
		header http.Header
		body   string
	}{
		{media(mediaLines), line}, {media(mediaStructured), line}, {media(mediaBatch), "[" + line + "]"}, {binary, `{"n":[1, "é"]}`}, {nil, ""},
	} {
		var p Parser
		err := error(nil)
		if c.header != nil {
			err = p.Parse(testRules(t), c.header, []byte(c.body), now)
		} else {
			err = p.ParseFields(testRules(t), bytes.Split([]byte(`specversion|1.0|id|1|type|t|source|/s|time|1796083200001|datacontenttype|application/json|segment|pk|ext|a b|data|{"n":[1, "é"]}`), []byte("|")), now)
		}
		if err != nil {
			t.Fatal(err)
		}
		got := stored(t, &p)[0]
		// Headers have no order: there attributes are sorted by name behind the content type.
		want := event.Event{ID: []byte("1"), Type: []byte("t"), Source: []byte("/s"), Segment: []byte("pk"), Time: 1796083200001, Arrival: now, Data: []byte(`{"n":[1, "é"]}`), Kind: event.DataJSON}
		names := []string{"datacontenttype", "partitionkey", "ext"}
		if len(c.header) > 1 {
			names = []string{"datacontenttype", "ext", "partitionkey"}
		}
		for _, name := range names {
			want.Attrs = want.Attrs.AppendAttr(event.AttrString, []byte(name), []byte(map[string]string{"datacontenttype": "application/json", "partitionkey": "pk", "ext": "a b"}[name]))
		}
		if show(&got) != show(&want) {
			t.Errorf("%v:\n got %+v\nwant %+v", c.header, show(&got), show(&want))
		}
	}
}
