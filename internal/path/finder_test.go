package path

import (
	"testing"

	"github.com/weirstream/weir/internal/event"
)

// TestFinderAgreesWithPaths compares one walk for all paths with a look-up of each.
func TestFinderAgreesWithPaths(t *testing.T) {
	var paths []Path
	for _, text := range []string{"data.a", "data.b.c", "type", "data.b.d", "data", "data.missing", "data.a.b", "time"} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	finder := NewFinder(paths)
	for _, data := range []string{
		`{"a":"x","b":{"c":1.0,"d":true}}`, `{"b":{"c":1},"a":2,"b":{"d":"last"}}`, `{"\u0061":"escaped"}`, `{}`, `[]`, `7`, `"text"`,
		`{"a":null,"b":[1]}`, `{"a":{"b":"deep"}}`, ` { "a" : "spaced" , "b" : { "c" : "é" } } `, ``,
	} {
		for _, kind := range []event.DataKind{event.DataJSON, event.DataBinary, event.DataNone} {
			e := event.Event{Type: []byte("t"), Time: 5, Data: []byte(data), Kind: kind}
			if data == "" && kind == event.DataJSON {
				continue
			}
			finder.Find(&e)
			for i, p := range paths {
				want, wantOK := p.AppendKeyPart([]byte("k:"), &e)
				got, ok := finder.AppendKeyPart([]byte("k:"), i, &e)
				if string(got) != string(want) || ok != wantOK {
					t.Errorf("%s in %s (kind %d): got %q, %v; want %q, %v", p, data, kind, got, ok, want, wantOK)
				}
			}
			if allocs := testing.AllocsPerRun(10, func() { finder.Find(&e) }); allocs != 0 {
				t.Errorf("%s: got %v allocations; want none", data, allocs)
			}
		}
	}
}
