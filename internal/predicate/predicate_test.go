package predicate

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/jsonscan"
)

func sample(data string) *event.Event {
	e := &event.Event{ID: []byte("e-1"), Type: []byte("impression"), Source: []byte("/app"), Segment: []byte("u1"), Time: 1_796_083_200_000, Kind: event.DataNone}
	e.Attrs = e.Attrs.AppendAttr(event.AttrString, []byte("region"), []byte("eu"))
	e.Attrs = e.Attrs.AppendAttr(event.AttrInteger, []byte("level"), []byte("3"))
	e.Attrs = e.Attrs.AppendAttr(event.AttrBoolean, []byte("test"), []byte("true"))
	if data != "" {
		e.Data, e.Kind = []byte(data), event.DataJSON
	}
	return e
}

func TestMatch(t *testing.T) {
	const data = `{"price":3.5,"n":3,"country":"KR","name":"caf\u00e9","tags":["a","b"],"o":{"k":1},"ok":true,"nil":null,"n":4,"big":9223372036854775808}`
	const yes, no, fails = "true", "false", "error"
	for _, c := range []struct {
		in, want string
		fast     bool
	}{
		{`type == "impression"`, yes, true},
		{`type != "impression"`, no, true},
		{`data.price > 3 && data.country in ["KR","US"]`, yes, true},
		{`data.price > 3 and not (data.country in ["DE"])`, yes, true},
		{`data.country not in ["DE"]`, yes, true},
		{`data.n == 4.0`, yes, true},
		{`data.n == 3 || data.n == 4`, yes, true},
		{`data.name == "café"`, yes, true},
		{`data.name endsWith "é"`, yes, true},
		{`data.name contains "af" and data.name startsWith "c"`, yes, true},
		{`data.missing == nil`, yes, true},
		{`data.missing.below.that == nil`, yes, true},
		{`data.price.below == nil`, yes, true},
		{`data.name.below == nil`, yes, true},
		{`data.nil == nil`, yes, true},
		{`data.nil.below == nil`, yes, true},
		{`data.missing`, no, true},
		{`data.ok`, yes, true},
		{`!data.ok`, no, true},
		{`data.missing > 3`, fails, true},
		{`data.country > 3`, fails, true},
		{`data.missing && true`, fails, true},
		{`not data.n`, fails, true},
		{`data.n`, fails, true},
		{`data.missing contains "a"`, no, true},
		{`data.n contains "a"`, fails, true},
		{`"a" in data.tags`, yes, true},
		{`1 in data.tags`, no, true},
		{`"k" in data.o`, yes, true},
		{`1 in data.o`, fails, true},
		{`data.n in ["a"]`, no, true},
		{`"a" in data.n`, fails, true},
		{`data.n in [1, 4.0, "x", nil]`, yes, true},
		{`data.tags == data.tags`, yes, true},
		{`data.o == data.tags`, no, true},
		{`data["country"] == "KR"`, yes, true},
		{`data?.country == "KR"`, yes, true},
		{`data.big > 9223372036854775807`, no, true}, // both are the same float
		{`data.n > -1 && -data.n < 0`, yes, false},
		{`region == "eu" && level == 3 && test`, yes, true},
		{`unknown == nil`, yes, true},
		{`time > 1796083199999`, yes, true},
		{`segment == "u1" && id == "e-1" && source == "/app"`, yes, true},
		{`data.price * 2 == 7`, yes, false},
		{`len(data.tags) == 2`, yes, false},
		{`any(data.tags, # == "b")`, yes, false},
		{`data.tags[0] == "a"`, yes, false},
		{`data.tags[5] == "a"`, fails, false},
		{`data.name matches "^caf"`, yes, false},
		{`data.ok ? true : false`, yes, false},
		{`let big_one = data.price; big_one > 3`, yes, false},
		{`let pair = data.o; pair.k == 1`, yes, false},
		{`lower(type) == "impression"`, yes, false},
		{`(data.missing ?? 5) > 3`, yes, false},
	} {
		p, err := Compile(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if p.Fast() != c.fast {
			t.Errorf("%s: got fast %v; want %v", c.in, p.Fast(), c.fast)
		}
		e := sample(data)
		if got := show(p.Match(e)); got != c.want {
			t.Errorf("%s: got %s; want %s", c.in, got, c.want)
		}
		if got := show(p.matchSlow(e)); got != c.want {
			t.Errorf("%s on the machine: got %s; want %s", c.in, got, c.want)
		}
	}
}

func show(match bool, err error) string {
	if err != nil {
		return "error"
	}
	return fmt.Sprint(match)
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		in           string
		line, column int
	}{
		{``, 1, 1},
		{`type ==`, 1, 7},
		{`type == 3`, 1, 6},
		{"type == \"x\" &&\n  user_id == 1", 2, 3},
		{`1 + 1`, 1, 1},
		{`"text"`, 1, 1},
		{`time`, 1, 1},
		{`type > 3`, 1, 6},
		{`now() > 3`, 1, 1},
		{`frobnicate(type)`, 1, 1},
		{`keys(data)[0] == "a"`, 1, 1},
		{`$env.type == "x"`, 1, 1},
		{`type == "a`, 1, 11},
		{`type == "a" and datta.x == 3`, 1, 17},
		{`source["x"] == nil`, 1, 1},
	} {
		_, err := Compile(c.in)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: got error %v; want an *Error", c.in, err)
			continue
		}
		if e.Line != c.line || e.Column != c.column {
			t.Errorf("%s: got %v; want line %d, column %d", c.in, err, c.line, c.column)
		}
	}
}

var (
	paths    = []string{"type", "id", "time", "source", "segment", "region", "level", "test", "other", "data", "data.a", "data.b", "data.a.b", "data.b.a.c", `data["x y"]`, "data?.a"}
	literals = []string{"nil", "true", "false", "0", "1", "-1", "2.5", "1e3", `""`, `"a"`, `"ab"`, `"é"`, `"impression"`, "9223372036854775807"}
	jsonAtom = []string{"null", "true", "false", "0", "-0", "1", "1.0", "2.5", "1000", "1e3", "1e999", "9223372036854775807", "9223372036854775808", `""`, `"a"`, `"ab"`, `"\u0061"`, `"\u00e9"`, `"é"`}
)

func drawOperand(t *rapid.T) string {
	if rapid.Bool().Draw(t, "isPath") {
		return rapid.SampledFrom(paths).Draw(t, "path")
	}
	return rapid.SampledFrom(literals).Draw(t, "literal")
}

func drawExpression(t *rapid.T, depth int) string {
	switch choice := rapid.IntRange(0, 9).Draw(t, "node"); {
	case choice < 3 && depth > 0:
		word := rapid.SampledFrom([]string{"&&", "||", "and", "or"}).Draw(t, "word")
		return "(" + drawExpression(t, depth-1) + " " + word + " " + drawExpression(t, depth-1) + ")"
	case choice == 3 && depth > 0:
		return rapid.SampledFrom([]string{"!", "not "}).Draw(t, "not") + "(" + drawExpression(t, depth-1) + ")"
	case choice == 4:
		list := rapid.SliceOfN(rapid.SampledFrom(literals), 0, 3).Draw(t, "list")
		text := ""
		for i, element := range list {
			if i > 0 {
				text += ", "
			}
			text += element
		}
		return drawOperand(t) + " in [" + text + "]"
	case choice == 5:
		return drawOperand(t)
	}
	compare := rapid.SampledFrom([]string{"==", "!=", "<", "<=", ">", ">=", "contains", "startsWith", "endsWith", "in", "not in"}).Draw(t, "compare")
	return drawOperand(t) + " " + compare + " " + drawOperand(t)
}

func drawJSON(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "shape") == 0 {
		return rapid.SampledFrom(jsonAtom).Draw(t, "atom")
	}
	array := rapid.IntRange(0, 3).Draw(t, "array") == 0
	text := ""
	for i := range rapid.IntRange(0, 4).Draw(t, "count") {
		if i > 0 {
			text += ","
		}
		if !array {
			text += `"` + rapid.SampledFrom([]string{"a", "b", "c", "x y", `\u0061`, "", "impression"}).Draw(t, "key") + `": `
		}
		text += drawJSON(t, depth-1)
	}
	if array {
		return "[" + text + "]"
	}
	return "{" + text + "}"
}

// TestTreeAgreesWithMachine draws expressions of the fast subset and events, and wants one answer of both.
func TestTreeAgreesWithMachine(t *testing.T) {
	matched, failed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		source := drawExpression(t, 3)
		p, err := Compile(source)
		if err != nil {
			return // refused by its types
		}
		if !p.Fast() {
			t.Fatalf("%s needs the machine", source)
		}
		for range 5 {
			data := drawJSON(t, 3)
			e := sample(data)
			got, want := show(p.Match(e)), show(p.matchSlow(e))
			if got != want {
				t.Fatalf("%s on %s: got %s; the machine says %s", source, data, got, want)
			}
			switch got {
			case "true":
				matched++
			case "error":
				failed++
			}
		}
	})
	if matched == 0 || failed == 0 {
		t.Errorf("got %d matches and %d failures; want some of each", matched, failed)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	e := sample(`{"user":"u1","price":3.5,"country":"KR","tags":["a","b"]}`)
	for _, source := range []string{
		`type == "impression"`,
		`data.price > 3 && data.country in ["KR","US"] && not (data.user startsWith "bot")`,
		`data.missing > 3`,
		`time > 5 && "b" in data.tags && level >= 3 && data.user == segment`,
	} {
		p, err := Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = p.Match(e) }); n != 0 {
			t.Errorf("%s: got %v allocations; want 0", source, n)
		}
	}
}

// FuzzCompile holds that no expression and no event makes a predicate panic, and that both ways of deciding agree.
func FuzzCompile(f *testing.F) {
	f.Add(`type == "impression" && data.a > 3`, `{"a":4}`)
	f.Add(`data.a.b in [1,"x",nil]`, `{"a":{"b":"x"}}`)
	f.Add(`let x = data.a; any(x, .b > 2)`, `{"a":[{"b":3}]}`)
	f.Add(`!(test or data)`, `true`)
	f.Fuzz(func(t *testing.T, source, data string) {
		p, err := Compile(source)
		if err != nil {
			return
		}
		e := sample("")
		if value, err := checked(data); err == nil {
			e = sample(value)
		}
		if got, want := show(p.Match(e)), show(p.matchSlow(e)); got != want {
			t.Fatalf("%s on %s: got %s; the machine says %s", source, data, got, want)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	e := sample(`{"user":"u1","ad":"a9","price":3.5,"country":"KR"}`)
	for _, source := range []string{`type == "impression"`, `data.price > 3 && data.country in ["KR","US"]`, `data.price * 2 > 6`} {
		p, err := Compile(source)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(source, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if match, err := p.Match(e); !match || err != nil {
					b.Fatal(match, err)
				}
			}
		})
	}
}

func checked(data string) (string, error) {
	value, err := jsonscan.Document([]byte(data), jsonscan.DepthMax)
	return string(value), err
}
