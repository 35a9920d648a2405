package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"
)

// corpus is what the fuzz targets start from, and what every run of the tests checks.
var corpus = []string{
	`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `-`, `01`, `1.`, `1.5`, `.5`, `1e5`, `1E+5`, `1e-05`, `1e`, `1e+`, `-1.0e1`,
	`"a"`, `"`, `"a`, `"\`, `"\u`, `"\u12`, `"\u00e9"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\ud83d\u0041"`, `"\ud83d\ud83d"`, `"\ud83d\u`, `"\x"`,
	"\"a\tb\"", "\"\x7f\"", "\"\xff\"", "\"\xc3\xa9\"", "\"\xed\xa0\x80\"", "\"\xe2\x80\xa8\"", "\"aaaaaaaa\x01bbbbbbbb\"", `"aaaaaaaa\"bbbbbbbbbbb"`, `"aaaaaaa\\"`,
	`{"a":1}`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{"a" : 1 , "b" : [ 1 , 2 ] }`, `{a:1}`, `{"a":1 "b":2}`, `[1,]`, `[,]`, `[1 2]`, `[1,[2,[3]],{"a":[{}]}]`,
	` 1 `, "\t\r\n1\n", "\v1", "\ufeff1", `1 2`, `nul`, `nulll`, `tru`, `truX`, `{"a":{"b":{"c":"d"}}}`, `{"\u0061":1}`, `{"a":1,"a":2}`, ``, ` `, `]`, `}`,
	`{"id":"e-1","type":"impression","time":"2026-11-30T12:00:00.123Z","data":{"user":"u1","ad":"a9","price":1.25}}`,
}

// want says what the scanner must say, by encoding/json and the three rules of the package comment.
func want(src []byte) bool {
	return json.Valid(src) && utf8.Valid(src) && !halfSurrogate(src) && depthOf(src) <= DepthMax
}

func halfSurrogate(src []byte) bool {
	text := string(src)
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if i >= len(text) || text[i] != 'u' || i+5 > len(text) {
			continue
		}
		unit := strings.ToLower(text[i+1 : i+5])
		switch {
		case unit >= "dc00" && unit <= "dfff":
			return true
		case unit >= "d800" && unit <= "dbff":
			next := ""
			if i+11 <= len(text) && text[i+5:i+7] == `\u` {
				next = strings.ToLower(text[i+7 : i+11])
			}
			if next < "dc00" || next > "dfff" {
				return true
			}
			i += 6
		}
		i += 4
	}
	return false
}

func depthOf(src []byte) (deepest int) {
	depth := 0
	dec := json.NewDecoder(bytes.NewReader(src))
	for {
		token, err := dec.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

func TestDocument(t *testing.T) {
	for _, text := range corpus {
		checkDocument(t, []byte(text))
	}
	for _, depth := range []int{DepthMax, DepthMax + 1, 100_000} {
		checkDocument(t, []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
		checkDocument(t, []byte(strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)))
	}
}

func FuzzDocument(f *testing.F) {
	for _, text := range corpus {
		f.Add([]byte(text))
	}
	f.Fuzz(checkDocument)
}

func checkDocument(t *testing.T, src []byte) {
	value, err := Document(src, DepthMax)
	if (err == nil) != want(src) {
		t.Fatalf("Document(%q): got error %v; want valid = %v", src, err, want(src))
	}
	if err == nil {
		if !bytes.Equal(value, bytes.Trim(src, " \t\r\n")) {
			t.Fatalf("Document(%q): got %q", src, value)
		}
		checkFields(t, value)
		checkText(t, value)
		return
	}
	var e *Error
	if !errors.As(err, &e) || e.Reason == None || e.Offset < 0 || e.Offset > len(src) || err.Error() == "" {
		t.Fatalf("Document(%q): got error %#v", src, err)
	}
}

// checkFields compares Fields and Get with encoding/json on a valid value.
func checkFields(t *testing.T, value []byte) {
	var members map[string]json.RawMessage
	isObject := value[0] == '{' && json.Unmarshal(value, &members) == nil
	f, got := Open(value, DepthMax), map[string]string{}
	for f.Next() {
		got[string(Unescape(nil, f.Key))] = string(f.Value)
	}
	if (f.Err() == nil) != isObject {
		t.Fatalf("Fields(%q): got error %v; want object = %v", value, f.Err(), isObject)
	}
	if len(got) != len(members) {
		t.Fatalf("Fields(%q): got %d members; want %d", value, len(got), len(members))
	}
	for name, raw := range members {
		if got[name] != string(raw) {
			t.Fatalf("Fields(%q): got %s = %q; want %q", value, name, got[name], raw)
		}
		if found, ok := Get(value, name); !ok || string(found) != string(raw) {
			t.Fatalf("Get(%q, %q): got %q, %v; want %q", value, name, found, ok, raw)
		}
	}
	if _, ok := members["no such name"]; !ok {
		if found, ok := Get(value, "no such name"); ok {
			t.Fatalf("Get(%q): got %q; want nothing", value, found)
		}
	}
	checkElements(t, value)
}

func checkElements(t *testing.T, value []byte) {
	var elements []json.RawMessage
	if json.Unmarshal(value, &elements) != nil {
		elements = nil
	}
	walk := Array(value)
	for i := 0; ; i++ {
		got, ok := walk.Next()
		if ok != (i < len(elements)) {
			t.Fatalf("Array(%q): got element %d = %q, %v; want %d elements", value, i, got, ok, len(elements))
		}
		if !ok {
			return
		}
		if string(got) != string(elements[i]) {
			t.Fatalf("Array(%q): got element %d = %q; want %q", value, i, got, elements[i])
		}
	}
}

func checkText(t *testing.T, value []byte) {
	inside, ok := Inside(value)
	if !ok {
		return
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		t.Fatal(err)
	}
	if got := string(Unescape(nil, inside)); got != text {
		t.Fatalf("Unescape(%q): got %q; want %q", inside, got, text)
	}
	for _, other := range []string{"", text, text + "a", text[:len(text)/2], "b", "\u00e9"} {
		if got, want := CompareText(inside, other), strings.Compare(text, other); got != want {
			t.Fatalf("CompareText(%q, %q): got %d; want %d", inside, other, got, want)
		}
		if KeyIs(inside, other) != (text == other) {
			t.Fatalf("KeyIs(%q, %q): got %v", inside, other, !(text == other))
		}
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("")
	f.Add("a\"\\\b\f\n\r\t\x00\x1f\x7fé\u2028\xff\xed\xa0\x80z")
	f.Fuzz(func(t *testing.T, text string) {
		got := AppendString(nil, []byte(text))
		if _, err := Document(got, 1); err != nil {
			t.Fatalf("AppendString(%q) = %q: %v", text, got, err)
		}
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != string([]rune(text)) {
			t.Fatalf("AppendString(%q) = %q, which reads as %q (%v)", text, got, back, err)
		}
	})
}

func TestCanonicalNumber(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"0", "0"}, {"-0", "0"}, {"-0.0", "0"}, {"0e5", "0"}, {"1", "1"}, {"-1", "-1"}, {"1.0", "1"}, {"1e2", "100"}, {"1E+2", "100"},
		{"0.10", "0.1"}, {"10e-1", "1"}, {"100e-4", "0.01"}, {"1.50", "1.5"}, {"12.340e1", "123.4"}, {"-2.5e0", "-2.5"}, {"9007199254740993", "9007199254740993"},
		{"9223372036854775808", "9223372036854775808"}, {"1234567890123456789012345", "1234567890123456789012345"},
		{"1234567890123456789012340", "1234567890123456789012340"}, {"1e20", "100000000000000000000"}, {"1e21", "1e+21"}, {"1000000000000000000000", "1e+21"},
		{"15e20", "1500000000000000000000"}, {"0.000001", "0.000001"}, {"0.0000001", "1e-7"}, {"1.5e-7", "1.5e-7"}, {"-0.00000015", "-1.5e-7"},
		{"1e400", "1e+400"}, {"12e-400", "1.2e-399"}, {"1e00000000000000000000000007", "10000000"}, {"1.0000000000000000000000000001", "1.0000000000000000000000000001"},
	} {
		got, ok := AppendCanonicalNumber(nil, []byte(c.in))
		if !ok || string(got) != c.want {
			t.Errorf("AppendCanonicalNumber(%s): got %s, %v; want %s", c.in, got, ok, c.want)
		}
	}
	if got, ok := AppendCanonicalNumber(nil, []byte("1e123456789012345678")); ok {
		t.Errorf("an exponent of 18 digits: got %s; want no text", got)
	}
}

// FuzzCanonicalNumber holds that the text keeps the exact value, is valid, and is its own canonical text.
func FuzzCanonicalNumber(f *testing.F) {
	for _, text := range []string{"-0", "1.0", "1e2", "0.10", "1e21", "123456789012345678901234567890", "0.000000123", "1e-300", "9.99e+20", "00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, end, err := Value([]byte(text), 1); err != nil || len(end) > 0 || text[0] != '-' && text[0]-'0' > 9 {
			return
		}
		got, ok := AppendCanonicalNumber(nil, []byte(text))
		if !ok {
			return
		}
		if _, err := Document(got, 1); err != nil {
			t.Fatalf("AppendCanonicalNumber(%s) = %s: %v", text, got, err)
		}
		if again, ok := AppendCanonicalNumber(nil, got); !ok || !bytes.Equal(again, got) {
			t.Fatalf("AppendCanonicalNumber(%s) = %s, and of that %s", text, got, again)
		}
		if at := strings.IndexAny(text, "eE"); at >= 0 && len(text)-at > 6 {
			return // the oracle would write out as many zeros
		}
		a, okA := new(big.Rat).SetString(text)
		b, okB := new(big.Rat).SetString(string(got))
		if !okA || !okB || a.Cmp(b) != 0 {
			t.Fatalf("AppendCanonicalNumber(%s) = %s: another value", text, got)
		}
	})
}

// FuzzUnchecked holds that what reads valid JSON stays within bounds on any bytes.
func FuzzUnchecked(f *testing.F) {
	for _, text := range corpus {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		Get(src, "a", "b")
		KeyIs(src, "ab")
		AppendCanonicalNumber(nil, src)
		Unescape(nil, src)
		for walk, ok := Array(src), true; ok; {
			_, ok = walk.Next()
		}
		if tail, ok := SkipBroken(src); ok && len(tail) >= len(src) {
			t.Fatalf("SkipBroken(%q) moved nowhere", src)
		}
	})
}

func TestNothingIsAllocated(t *testing.T) {
	src := []byte(corpus[len(corpus)-1])
	if n := testing.AllocsPerRun(100, func() {
		f := Open(src, DepthMax)
		for f.Next() {
		}
		Get(src, "data", "price")
	}); n != 0 {
		t.Errorf("got %v allocations; want 0", n)
	}
}
