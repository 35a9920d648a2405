package jsonscan_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/valyala/fastjson"

	"github.com/weirstream/weir/internal/jsonscan"
)

// libraryEvent is what docs/design/0004-json.md measures: an event of 200 bytes, its id, type, time and user wanted.
const libraryEvent = `{"specversion":"1.0","id":"e-00000001","source":"/app/android","type":"impression","time":"2026-11-30T12:00:01.123Z","data":{"user":"u0007919","ad":"a001","country":"KR","price":1.25,"device":"d-1"}}`

// BenchmarkLibraries validates one event and finds its members, as the parser of events must.
func BenchmarkLibraries(b *testing.B) {
	src := []byte(libraryEvent)
	for _, library := range []struct {
		name string
		read func() int
	}{
		{"jsonscan", func() int { return readJSONScan(src) }},
		{"gjson", func() int { return readGJSON(src) }},
		{"fastjson", readFastJSON(src)},
		{"encoding", func() int { return readEncoding(src) }},
	} {
		b.Run(library.name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if library.read() != len("u0007919")+len("e-00000001") {
					b.Fatal("not found")
				}
			}
		})
	}
	b.Run("jsonscan-valid", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			if _, err := jsonscan.Document(src, jsonscan.DepthMax); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("gjson-valid", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			if !gjson.ValidBytes(src) {
				b.Fatal()
			}
		}
	})
	b.Run("encoding-valid", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			if !json.Valid(src) {
				b.Fatal()
			}
		}
	})
}

func readJSONScan(src []byte) int {
	var id, data []byte
	f := jsonscan.Open(src, jsonscan.DepthMax)
	for f.Next() {
		switch string(f.Key) {
		case "id":
			id, _ = jsonscan.Inside(f.Value)
		case "data":
			data = f.Value
		}
	}
	if f.Err() != nil {
		return 0
	}
	raw, _ := jsonscan.Get(data, "user")
	user, _ := jsonscan.Inside(raw)
	return len(id) + len(user)
}

func readGJSON(src []byte) int {
	if !gjson.ValidBytes(src) || !utf8.Valid(src) {
		return 0
	}
	var id, data gjson.Result
	gjson.ParseBytes(src).ForEach(func(key, value gjson.Result) bool {
		switch key.String() {
		case "id":
			id = value
		case "data":
			data = value
		}
		return true
	})
	return len(id.String()) + len(data.Get("user").String())
}

func readFastJSON(src []byte) func() int {
	var p fastjson.Parser
	return func() int {
		v, err := p.ParseBytes(src)
		if err != nil || !utf8.Valid(src) {
			return 0
		}
		return len(v.GetStringBytes("id")) + len(v.GetStringBytes("data", "user"))
	}
}

func readEncoding(src []byte) int {
	var e struct {
		ID   string
		Data json.RawMessage
	}
	if json.Unmarshal(src, &e) != nil {
		return 0
	}
	var data struct{ User string }
	if json.Unmarshal(e.Data, &data) != nil {
		return 0
	}
	return len(e.ID) + len(data.User)
}
