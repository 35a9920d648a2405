package path

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/jsonscan"
)

func sample(data string) *event.Event {
	e := &event.Event{ID: []byte("e-1"), Type: []byte("t"), Segment: []byte("s"), Time: -5, Data: []byte(data), Kind: event.DataJSON}
	e.Attrs = e.Attrs.AppendAttr(event.AttrString, []byte("subject"), []byte(`a"b`))
	e.Attrs = e.Attrs.AppendAttr(event.AttrInteger, []byte("level"), []byte("3"))
	e.Attrs = e.Attrs.AppendAttr(event.AttrBoolean, []byte("test"), []byte("true"))
	return e
}

func TestKeyPart(t *testing.T) {
	const none = "(none)"
	const data = `{"user":"u\u0031\n","n":1.0,"big":12345678901234567890123,"ok":false,"no":null,"list":[1],"o":{"a":{"b":"c"},"":2},"dup":1,"dup":{"x":2},"a.b":3,"é":"é"}`
	for _, c := range []struct{ path, want string }{
		{"id", "e-1"}, {"type", "t"}, {"source", none}, {"segment", "s"}, {"time", "-5"}, {"subject", `a"b`}, {"level", "3"}, {"test", "true"}, {"other", none},
		{"data.user", "u1\n"}, {"data.n", "1"}, {"data.big", "12345678901234567890123"}, {"data.ok", "false"}, {"data.no", none}, {"data.list", none},
		{"data.o", none}, {"data.o.a.b", "c"}, {"data.o.a.b.c", none}, {"data.missing", none}, {"data.dup", none}, {"data.dup.x", "2"}, {"data", none}, {"data.é", "é"},
		{"data.list.0", none}, {"data.user.x", none},
	} {
		p, err := Parse(c.path)
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		got, ok := p.AppendKeyPart([]byte(">"), sample(data))
		text := string(got[1:])
		if !ok && text == "" {
			text = none
		}
		if text != c.want || got[0] != '>' {
			t.Errorf("%s: got %q; want %q", c.path, text, c.want)
		}
		if p.String() != c.path || p.IsZero() {
			t.Errorf("%s: got %q", c.path, p)
		}
	}
	binary := sample(data)
	binary.Kind = event.DataBinary
	if p, _ := Parse("data.user"); true {
		if got, ok := p.AppendKeyPart(nil, binary); ok {
			t.Errorf("below binary data: got %q; want nothing", got)
		}
	}
}

func TestBadPaths(t *testing.T) {
	for _, text := range []string{"", ".", "Type", "user.id", "a-b", "data.", "data..a", "data.a.", strings.Repeat("a", textBytesMax+1), "data" + strings.Repeat(".a", namesMax+1), "type ", "data .a"} {
		if p, err := Parse(text); err == nil {
			t.Errorf("%q: got %+v; want an error", text, p)
		}
	}
	if !(Path{}).IsZero() {
		t.Error("the zero Path is not zero")
	}
}

// TestKinds looks a random value up and compares with encoding/json.
func TestKinds(t *testing.T) {
	p, err := Parse("data.a.b")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		inner := rapid.SampledFrom([]string{`null`, `"x"`, `1.50`, `true`, `{"z":1}`, `[{"b":1}]`, `{"b":{"b":2}}`}).Draw(t, "inner")
		key := rapid.SampledFrom([]string{`b`, `\u0062`, `c`, `B`}).Draw(t, "key")
		data := `{ "x" : ["}", {"a":{"b":9}}] ,"a":{"q":"\\\"","` + key + `" : ` + inner + ` ,"z":[[]]}, "y":"{" }`
		var decoded struct{ A map[string]json.RawMessage }
		if err := json.Unmarshal([]byte(data), &decoded); err != nil {
			t.Fatal(err)
		}
		raw, kind := p.Raw(sample(data), nil)
		want := decoded.A["b"]
		if string(raw) != string(want) || kind != KindOf(want) {
			t.Fatalf("%s: got %s of kind %d; want %s", data, raw, kind, want)
		}
	})
}

func FuzzKeyPart(f *testing.F) {
	f.Add("data.a", `{"a":1.0}`)
	f.Add("data.a.b", `{"a":{"\u0062":"x\ud83d\ude00"}}`)
	f.Fuzz(func(t *testing.T, text, data string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		if _, err := jsonscan.Document([]byte(data), jsonscan.DepthMax); err != nil {
			return
		}
		part, ok := p.AppendKeyPart(nil, sample(data))
		if !ok && len(part) > 0 {
			t.Fatalf("%s on %s: got %q beside ok = false", text, data, part)
		}
	})
}

func TestNothingIsAllocated(t *testing.T) {
	e := sample(`{"user":"u1","ad":"\u0061\u0062","n":1.250e1}`)
	room := make([]byte, 0, 64)
	for _, text := range []string{"data.user", "data.ad", "data.n", "level", "time", "data.missing"} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { p.AppendKeyPart(room, e) }); n != 0 {
			t.Errorf("%s: got %v allocations; want 0", text, n)
		}
	}
}

func BenchmarkKeyPart(b *testing.B) {
	e := sample(`{"user":"u0001234","ad":"a123","country":"KR","price":1.25,"device":"d-4711"}`)
	p, _ := Parse("data.ad")
	room := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := p.AppendKeyPart(room, e); !ok {
			b.Fatal()
		}
	}
}
