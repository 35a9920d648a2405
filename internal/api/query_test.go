package api

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestParseInstant(t *testing.T) {
	for _, c := range []struct {
		text string
		ms   int64
		ok   bool
	}{
		{"0", 0, true},
		{"-1", -1, true},
		{"1796083200123", 1796083200123, true},
		{"1970-01-01T00:00:00Z", 0, true},
		{"1970-01-01T00:00:00.0019Z", 1, true},
		{"1969-12-31T23:59:59.9999Z", -1, true}, // cut off is towards the past
		{"2026-12-01T00:00:00+01:00", 1796083200000 - 3600000, true},
		{"2026-12-01T00:00:00 01:00", 1796083200000 - 3600000, true}, // a plus that was not escaped
		{"2026-12-01 00:00:00Z", 0, false},
		{"2026-12-01", 0, false},
		{"1e3", 0, false},
		{"9223372036854775808", 0, false},
		{"", 0, false},
	} {
		ms, ok := parseInstant(c.text)
		if ok != c.ok || (ok && ms != c.ms) {
			t.Errorf("parseInstant(%q): got %d, %v; want %d, %v", c.text, ms, ok, c.ms, c.ok)
		}
	}
}

func TestParseParameters(t *testing.T) {
	known := []string{"key", "as_of", "window"}
	for _, c := range []struct{ query, code, field string }{
		{"", "", ""},
		{"key=a&key=b&as_of=1", "", ""},
		{"key=a%2Fb", "", ""},
		{"as_off=1", codeUnknownParameter, "as_off"},
		{"as_of=1&as_of=2", codeBadArgument, "as_of"},
		{"key=%zz", codeBadArgument, ""},
		{"a;b", codeBadArgument, ""},
	} {
		_, f := parseParameters(c.query, known, "key")
		if got := codeOf(f); got != c.code || (f != nil && f.field != c.field) {
			t.Errorf("%q: got %q; want %q", c.query, got, c.code)
		}
	}
	if _, f := parseParameters("as_off=1", known, ""); !strings.Contains(f.hint, "as_of") {
		t.Errorf("a typo: got hint %q; want as_of in it", f.hint)
	}
}

func codeOf(f *failure) string {
	if f == nil {
		return ""
	}
	return f.code
}

func FuzzParseParameters(f *testing.F) {
	for _, s := range []string{"", "key=a&key=b", "as_of=2026-12-01T00:00:00Z&window=1h", "follow", "limit=-1", "a=%f0%28", "key=%00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		p, fail := parseParameters(query, []string{"key", "as_of", "limit", "follow"}, "key")
		if fail != nil {
			checkErrorBody(t, fail)
			return
		}
		if want, err := url.ParseQuery(query); err != nil || len(want) != len(p.values) {
			t.Fatalf("%q: got %d parameters; want %d, %v", query, len(p.values), len(want), err)
		}
		if _, fail := p.instant("as_of", 7); fail != nil {
			checkErrorBody(t, fail)
		}
		if n, fail := p.integer("limit", 1, 5); fail == nil && n < 1 {
			t.Fatalf("%q: limit %d is below its bound", query, n)
		}
		if _, fail := p.boolean("follow"); fail != nil {
			checkErrorBody(t, fail)
		}
	})
}

// checkErrorBody reads an error as a client does.
func checkErrorBody(t *testing.T, f *failure) {
	t.Helper()
	body := f.appendJSON(nil)
	var reply struct {
		Error map[string]string `json:"error"`
	}
	if err := json.Unmarshal(body, &reply); err != nil || !utf8.Valid(body) {
		t.Fatalf("error body %q: %v", body, err)
	}
	for _, field := range []string{"code", "message", "field", "value", "hint"} {
		if _, ok := reply.Error[field]; !ok {
			t.Fatalf("error body %s has no %s", body, field)
		}
	}
	if reply.Error["code"] == "" || reply.Error["message"] == "" {
		t.Fatalf("error body %s: no code or message", body)
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "<script>", "\x00\x1f\x7f", "é€😀", "\xff\xfe", "a\xc3", "\u2028", `"\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := appendString(nil, s)
		if bytes := appendString(nil, []byte(s)); string(bytes) != string(got) {
			t.Fatalf("as bytes %s; as a string %s", bytes, got)
		}
		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%q became %s: %v", s, got, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && back != want {
			t.Fatalf("%q came back as %q", s, back)
		}
		if strings.ContainsAny(string(got), "<>&\x00\n") {
			t.Fatalf("%q became %s, which has a character that it should not", s, got)
		}
	})
}

func TestNear(t *testing.T) {
	names := []string{"clicks", "impressions", "orders"}
	for _, c := range []struct{ word, want string }{
		{"impresions", "did you mean impressions?"},
		{"Clicks", "did you mean clicks?"},
		{"lcicks", "did you mean clicks?"},
		{"order", "did you mean orders?"},
		{"zzzzzzzz", "there is clicks, impressions, orders"},
		{strings.Repeat("x", 5000), "there is clicks, impressions, orders"},
	} {
		if got := hintOf(c.word, "stream", names); got != c.want {
			t.Errorf("%.20q: got %q; want %q", c.word, got, c.want)
		}
	}
	if got := hintOf("x", "counter", nil); got != "there is no counter at all" {
		t.Errorf("no names: got %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {"flaw", "lawn", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q): got %d; want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestErrorBody(t *testing.T) {
	f := badArgument("as_of", strings.Repeat("é", 200), "cannot use <as_of>", "")
	checkErrorBody(t, f)
	if body := string(f.appendJSON(nil)); strings.Contains(body, "<") || len(body) > 400 {
		t.Errorf("got %s", body)
	}
	for _, c := range []struct {
		d    time.Duration
		want int64
	}{{0, 1}, {50 * time.Millisecond, 1}, {time.Second, 1}, {1001 * time.Millisecond, 2}, {-time.Second, 1}} {
		if got := retrySeconds(c.d); got != c.want {
			t.Errorf("Retry-After of %v: got %d; want %d", c.d, got, c.want)
		}
	}
}
