package cloudevents

import (
	"bytes"
	"encoding/json"
	"math/big"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/event"
)

func oracleInteger(text string) (v int64, ok bool) {
	b, ok := new(big.Int).SetString(text, 10)
	if !ok || strings.ContainsAny(text, "+_") || !b.IsInt64() {
		return 0, false
	}
	return b.Int64(), true
}

var seeds = []string{
	`{"id":"1","type":"t"}`,
	`{"specversion":"1.0","id":"e-1","source":"/app","type":"impression","time":"2026-11-30T12:00:00.123Z","data":{"user":"u1","ad":"a9"}}`,
	`{"id":"1","type":"t","time":1796083200000,"ext":true,"n":1e2,"data_base64":"aGk="}`,
	"[{\"id\":\"1\",\"type\":\"t\"},7,{\"id\":\"\\ud800\"}]",
	"{\"id\":\"1\",\"type\":\"t\"}\n\r\nx\n{\"id\":\"2\",\"type\":\"t\",\"data\":{\"user\":1.50}}",
}

// FuzzParse sends any bytes as each kind of body, and sends what was stored once more.
func FuzzParse(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	headers := []http.Header{media(mediaBatch), media(mediaStructured), media(mediaLines),
		{"Content-Type": {"application/json"}, "Ce-Id": {"1"}, "Ce-Type": {"t"}}}
	f.Fuzz(func(t *testing.T, body []byte) {
		var p Parser
		rules := testRules(t)
		for _, header := range headers {
			if err := p.Parse(rules, header, body, now); err != nil {
				continue
			}
			for _, e := range stored(t, &p) {
				checkRoundTrip(t, rules, &e)
			}
			for i := range p.Rejected {
				r := &p.Rejected[i]
				if _, err := json.Marshal(r); err != nil || r.Code == "" || r.Message == "" || len(r.Value) > valueBytesMax*3 {
					t.Fatalf("refusal %+v (%v)", r, err)
				}
			}
		}
	})
}

// checkRoundTrip holds that an event, written out and sent again, is the same event.
func checkRoundTrip(t *testing.T, rules *Rules, e *event.Event) {
	t.Helper()
	line := AppendJSON(nil, e, 3, 5)
	if !json.Valid(line) || bytes.ContainsAny(line, "\r\n") {
		t.Fatalf("not one line of JSON: %q", line)
	}
	loose := *rules
	loose.EventBytesMax, loose.UnitCheck = 0, false
	var p Parser
	if err := p.Parse(&loose, media(mediaLines), line, e.Arrival); err != nil {
		t.Fatal(err)
	}
	if len(p.Rejected) > 0 {
		t.Fatalf("%s was refused: %+v", line, p.Rejected[0])
	}
	again := stored(t, &p)[0]
	want := *e
	if len(want.Source) == 0 {
		want.Source = []byte(defaultSource)
	}
	if e.Kind == event.DataJSON {
		want.Data = bytes.ReplaceAll(bytes.ReplaceAll(e.Data, []byte("\n"), nil), []byte("\r"), nil)
	}
	if !reflect.DeepEqual(show(&again), show(&want)) {
		t.Fatalf("%s\n got %+v\nwant %+v", line, show(&again), show(&want))
	}
}

type shown struct {
	Segment, ID, Type, Source, Attrs, Data string
	Kind                                   event.DataKind
	Time, Arrival                          int64
}

func show(e *event.Event) shown {
	return shown{string(e.Segment), string(e.ID), string(e.Type), string(e.Source), string(e.Attrs), string(e.Data), e.Kind, e.Time, e.Arrival}
}

func FuzzFields(f *testing.F) {
	f.Add("id|1|type|t|time|1796083200001|segment|s|data|{\"a\":1}|ext|x")
	f.Fuzz(func(t *testing.T, text string) {
		var p Parser
		rules := testRules(t)
		if err := p.ParseFields(rules, bytes.Split([]byte(text), []byte("|")), now); err != nil {
			return
		}
		checkRoundTrip(t, rules, &stored(t, &p)[0])
	})
}

// FuzzHeader sends any text as the value of an attribute in binary mode.
func FuzzHeader(f *testing.F) {
	f.Add("ce-ext", `"a%20b\"c"`)
	f.Add("ce-time", "%32026")
	f.Fuzz(func(t *testing.T, name, value string) {
		var p Parser
		rules := testRules(t)
		header := http.Header{"Content-Type": {"text/plain"}, "Ce-Id": {"1"}, "Ce-Type": {"t"}}
		header.Set(name, value)
		if err := p.Parse(rules, header, []byte("hi"), now); err != nil || !p.Single {
			return
		}
		checkRoundTrip(t, rules, &stored(t, &p)[0])
	})
}
