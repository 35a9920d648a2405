package cloudevents

import (
	"fmt"
	"testing"

	"github.com/weirstream/weir/internal/event"
)

// traffic is n lines of ad events of some 200 bytes.
func traffic(n int) []byte {
	var body []byte
	for i := range n {
		body = fmt.Appendf(body, `{"specversion":"1.0","id":"e-%08d","source":"/app/android","type":"impression","time":"2026-11-30T12:00:%02d.123Z","data":{"user":"u%07d","ad":"a%03d","country":"KR","price":1.25,"device":"d-%d"}}`+"\n",
			i, i%60, i*7919%1_000_000, i%1000, i%50_000)
	}
	return body
}

func TestParseAllocatesNothing(t *testing.T) {
	const events = 500
	rules := testRules(t)
	rules.BatchMax = events
	header, body := media(mediaLines), traffic(events)
	var p Parser
	parse := func() {
		if err := p.Parse(rules, header, body, now); err != nil || len(p.Rejected) > 0 || p.Sent != events {
			t.Fatal(err, p.Rejected)
		}
	}
	parse()
	// What is left is of the request: reading its media type.
	const requestAllocsMax = 4
	if n := testing.AllocsPerRun(20, parse); n > requestAllocsMax {
		t.Errorf("got %v allocations for %d events; want none per event", n, events)
	}
	var e event.Event
	if _, err := e.Decode(p.Batches[0].Record(0)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(20, func() { buffer = AppendJSON(buffer[:0], &e, 1, 2) }); n != 0 {
		t.Errorf("AppendJSON: got %v allocations; want 0", n)
	}
}

func BenchmarkParse(b *testing.B) {
	const events = 1000
	rules := testRules(b)
	rules.BatchMax = events
	lines := traffic(events)
	array := append([]byte{'['}, lines...)
	for i := range array {
		if array[i] == '\n' {
			array[i] = ','
		}
	}
	array[len(array)-1] = ']'
	for _, kind := range []struct {
		media string
		body  []byte
	}{{mediaLines, lines}, {mediaBatch, array}} {
		b.Run(kind.media[len("application/"):], func(b *testing.B) {
			var p Parser
			header := media(kind.media)
			b.SetBytes(int64(len(kind.body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Parse(rules, header, kind.body, now); err != nil || len(p.Rejected) > 0 {
					b.Fatal(err, p.Rejected)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*events), "ns/event")
		})
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	var p Parser
	if err := p.Parse(testRules(b), media(mediaLines), traffic(1), now); err != nil {
		b.Fatal(err)
	}
	e := stored(b, &p)[0]
	var buffer []byte
	b.ReportAllocs()
	for b.Loop() {
		buffer = AppendJSON(buffer[:0], &e, 1, 2)
	}
	b.SetBytes(int64(len(buffer)))
}

func BenchmarkParseTime(b *testing.B) {
	text := []byte("2026-11-30T12:00:00.123Z")
	for b.Loop() {
		if _, ok := ParseTime(text); !ok {
			b.Fatal()
		}
	}
}
