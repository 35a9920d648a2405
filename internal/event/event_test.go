package event

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

const goldenFile = "testdata/event-v1.txt"

// samples are the events of the golden file.
func samples() []Event {
	attrs := Attrs(nil).AppendAttr(AttrString, []byte("partitionkey"), []byte("u1")).
		AppendAttr(AttrInteger, []byte("sequence"), []byte("-7")).AppendAttr(AttrBoolean, []byte("sampled"), []byte("true"))
	return []Event{
		{Segment: []byte("u1"), ID: []byte("e-1"), Type: []byte("impression"), Source: []byte("/app"), Attrs: attrs,
			Data: []byte(`{"user":"u1","ad":"a9"}`), Kind: DataJSON, Time: 1_700_000_000_123, Arrival: 1_700_000_000_200},
		{Segment: []byte("e-2"), ID: []byte("e-2"), Type: []byte("t"), Time: -1, Arrival: 0},
		{Segment: []byte{0, 0xff}, ID: []byte("x"), Type: []byte("b"), Data: []byte{0, 1, 2}, Kind: DataBinary,
			Time: math.MinInt64, Arrival: math.MaxInt64},
		{Segment: bytes.Repeat([]byte("s"), 200), ID: bytes.Repeat([]byte("i"), IDBytesMax), Type: []byte("long"),
			Data: bytes.Repeat([]byte("d"), 300), Kind: DataBinary, Time: 1, Arrival: 1_700_000_000_000},
	}
}

func TestGolden(t *testing.T) {
	var got strings.Builder
	for i, e := range samples() {
		h, _ := HashOf(nil, e.Segment, e.ID)
		fmt.Fprintf(&got, "%d %016x%016x %s\n", i, h.Hi, h.Lo, hex.EncodeToString(Append(nil, &e)))
	}
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(goldenFile, []byte(got.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Fatalf("the record has changed, or the hash of an identity:\n%s\nwant\n%s", got.String(), want)
	}
	i := 0
	for line := range strings.Lines(string(want)) {
		record, err := hex.DecodeString(strings.Fields(line)[2])
		if err != nil {
			t.Fatal(err)
		}
		var e Event
		if tail, err := e.Decode(record); err != nil || len(tail) != 0 || !same(&e, &samples()[i]) {
			t.Errorf("record %d: %+v, tail %x, %v", i, e, tail, err)
		}
		i++
	}
}

// same compares events, an empty field with a missing one alike.
func same(a, b *Event) bool {
	view := func(e *Event) string {
		return fmt.Sprintf("%q %q %q %q %q %q %d %d %d", e.Segment, e.ID, e.Type, e.Source, []byte(e.Attrs), e.Data, e.Kind, e.Time, e.Arrival)
	}
	return view(a) == view(b)
}

func TestRoundTrip(t *testing.T) {
	field := rapid.SliceOfN(rapid.Byte(), 0, 300)
	rapid.Check(t, func(t *rapid.T) {
		want := Event{
			Segment: field.Draw(t, "segment"), ID: field.Draw(t, "id"), Type: field.Draw(t, "type"), Source: field.Draw(t, "source"),
			Attrs: Attrs(field.Draw(t, "attrs")), Data: field.Draw(t, "data"), Kind: DataKind(rapid.IntRange(0, 2).Draw(t, "kind")),
			Time: rapid.Int64().Draw(t, "time"), Arrival: rapid.Int64().Draw(t, "arrival"),
		}
		record := Append([]byte("before"), &want)[len("before"):]
		if !bytes.HasPrefix(Append(nil, &want), record) {
			t.Fatal("a record depends on what it is appended to")
		}
		var got Event
		tail, err := got.Decode(append(record, "behind"...))
		if err != nil || string(tail) != "behind" || !same(&got, &want) {
			t.Fatalf("got %+v, tail %q, %v; want %+v", got, tail, err, want)
		}
		hash, _ := HashOf(nil, want.Segment, want.ID)
		if got.Hash() != hash {
			t.Fatalf("hash of the record %v; of its fields %v", got.Hash(), hash)
		}
	})
}

// An identity's two halves do not run into each other.
func TestHashTellsSegmentFromID(t *testing.T) {
	a, scratch := HashOf(nil, []byte("ab"), []byte("c"))
	b, _ := HashOf(scratch, []byte("a"), []byte("bc"))
	if a == b {
		t.Error("(ab, c) and (a, bc) have one hash")
	}
}

func TestBatch(t *testing.T) {
	var b Batch
	for round := range 2 {
		b.Reset()
		for i, e := range samples() {
			hash, _ := HashOf(nil, e.Segment, e.ID)
			b.Add(&e, hash, 10+i)
		}
		if n := len(samples()); len(b.Items) != n || int(b.Items[n-1].End) != len(b.Records) {
			t.Fatalf("round %d: %d items; want %d, which end with the %d bytes of records", round, len(b.Items), n, len(b.Records))
		}
		for i, want := range samples() {
			var got Event
			if tail, err := got.Decode(b.Record(i)); err != nil || len(tail) != 0 || !same(&got, &want) {
				t.Fatalf("record %d: %+v, %v", i, got, err)
			}
			if item := b.Items[i]; item.Hash != got.Hash() || item.Time != want.Time || item.Index != uint32(10+i) {
				t.Fatalf("item %d: %+v", i, item)
			}
		}
	}
}

func TestAttrs(t *testing.T) {
	a := samples()[0].Attrs
	for _, c := range []struct {
		name, value string
		kind        AttrKind
		ok          bool
	}{
		{"partitionkey", "u1", AttrString, true}, {"sequence", "-7", AttrInteger, true}, {"sampled", "true", AttrBoolean, true},
		{"subject", "", 0, false}, {"", "", 0, false},
	} {
		if kind, value, ok := a.Get(c.name); ok != c.ok || kind != c.kind || string(value) != c.value {
			t.Errorf("%s: %d, %q, %v", c.name, kind, value, ok)
		}
	}
	var names []string
	for {
		_, name, _, rest, ok := a.Next()
		if !ok {
			break
		}
		names, a = append(names, string(name)), rest
	}
	if !reflect.DeepEqual(names, []string{"partitionkey", "sequence", "sampled"}) {
		t.Errorf("names %q", names)
	}
}

func TestDecodeRefuses(t *testing.T) {
	e := samples()[0]
	good := Append(nil, &e)
	for n := range good {
		if _, err := e.Decode(good[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	_, flags := binary.Uvarint(good) // they stand behind the length
	for _, bad := range []byte{3, 4, 0x80, 0xff} {
		record := bytes.Clone(good)
		record[flags] = bad
		if _, err := e.Decode(record); !errors.Is(err, ErrCorrupt) {
			t.Errorf("flags %x: %v", bad, err)
		}
	}
	for _, record := range [][]byte{{0}, {1, 0}, bytes.Repeat([]byte{0xff}, 20), append([]byte{10, 0}, bytes.Repeat([]byte{0x80}, 12)...)} {
		if _, err := e.Decode(record); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%x: %v", record, err)
		}
	}
}

// Any bytes: an event that stands for itself, or ErrCorrupt; no panic, nothing read beyond the record.
func FuzzDecode(f *testing.F) {
	for _, e := range samples() {
		f.Add(Append(nil, &e))
	}
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, src []byte) {
		var e Event
		tail, err := e.Decode(src)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		if !bytes.HasSuffix(src, tail) {
			t.Fatalf("tail %x of %x", tail, src)
		}
		var again Event
		if rest, err := again.Decode(Append(nil, &e)); err != nil || len(rest) != 0 || !same(&again, &e) {
			t.Fatalf("%+v became %+v: %v", e, again, err)
		}
		for a, n := e.Attrs, 0; ; n++ {
			_, _, _, rest, ok := a.Next()
			if !ok {
				break
			}
			if len(rest) >= len(a) {
				t.Fatal("attributes do not end")
			}
			a = rest
		}
		e.Hash()
	})
}

func TestAllocatesNothing(t *testing.T) {
	e := samples()[0]
	record := Append(nil, &e)
	dst, scratch := make([]byte, 0, 1024), make([]byte, 0, 256)
	var got Event
	if n := testing.AllocsPerRun(1000, func() {
		dst = Append(dst[:0], &e)
		if _, err := got.Decode(record); err != nil {
			t.Fatal(err)
		}
		_ = got.Hash()
		_, scratch = HashOf(scratch, e.Segment, e.ID)
		_, _, _ = got.Attrs.Get("sampled")
	}); n != 0 {
		t.Errorf("%v allocations; want 0", n)
	}
}
