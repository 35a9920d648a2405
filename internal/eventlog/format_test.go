package eventlog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/event"
)

var update = flag.Bool("update", false, "write the golden files anew")

const goldenFile = "testdata/format-v1.txt"

// goldenFrame is two events under offset 300.
func goldenFrame() []byte {
	var b event.Batch
	for i, s := range []sample{
		{"u1", "e-1", `{"ad":"a9"}`, testNow - 5, testNow},
		{"u2", "e-2", `{"ad":"a7"}`, testNow + 5, testNow + 1},
	} {
		e := s.event()
		b.Add(&e, e.Hash(), i)
	}
	frame := append(make([]byte, frameHeaderBytes), b.Records...)
	h := frameHeader{First: 300, Count: 2, MinTime: testNow - 5, MaxTime: testNow + 5, MinArrival: testNow,
		MaxArrival: testNow + 1, HighTime: testNow + 99, HighArrival: testNow + 1}
	h.put(frame)
	return frame
}

// Everything the log writes, as version 1 of it has written it for ever.
func TestGolden(t *testing.T) {
	stream, err := streamMeta{streamFileVersion, "impressions", 4, "data.user"}.encode()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, v := range []struct {
		name  string
		bytes []byte
	}{
		{"frame-key", frameKey(nil, 300)},
		{"frame", goldenFrame()},
		{"trim-key", trimKey},
		{"trim-mark", trimMark{First: 300, MaxTime: testNow}.append(nil)},
		{"identity-key", identityKey},
		{"identity", identity{Partition: 3, Partitions: 4}.append(nil)},
		{"stream-file", stream},
	} {
		fmt.Fprintf(&got, "%s %s\n", v.name, hex.EncodeToString(v.bytes))
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
		t.Fatalf("the format has changed without a new version:\n%s\nwant\n%s", got.String(), want)
	}
	golden := map[string][]byte{}
	for line := range strings.Lines(string(want)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		golden[name], _ = hex.DecodeString(text)
	}
	var h frameHeader
	if records, err := h.parse(golden["frame"]); err != nil || h.First != 300 || h.end() != 302 || h.HighTime != testNow+99 || len(records) == 0 {
		t.Errorf("frame: %+v, %v", h, err)
	}
	if m, err := parseTrimMark(golden["trim-mark"]); err != nil || m != (trimMark{300, testNow}) {
		t.Errorf("trim mark: %+v, %v", m, err)
	}
	if i, err := parseIdentity(golden["identity"]); err != nil || i != (identity{3, 4}) {
		t.Errorf("identity: %+v, %v", i, err)
	}
	if m, err := parseStreamMeta(golden["stream-file"]); err != nil || m != (streamMeta{1, "impressions", 4, "data.user"}) {
		t.Errorf("stream file: %+v, %v", m, err)
	}
}

// Every byte of every value is covered by its checksum or by a check of its own, and an unknown version is named.
func TestEveryFlippedBitIsRefused(t *testing.T) {
	stream, err := streamMeta{streamFileVersion, "s", 4, ""}.encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		good  []byte
		parse func([]byte) error
	}{
		{"frame", goldenFrame(), func(b []byte) error { var h frameHeader; _, err := h.parse(b); return err }},
		{"trim mark", trimMark{300, testNow}.append(nil), func(b []byte) error { _, err := parseTrimMark(b); return err }},
		{"identity", identity{3, 4}.append(nil), func(b []byte) error { _, err := parseIdentity(b); return err }},
		{"stream file", stream, func(b []byte) error { _, err := parseStreamMeta(b); return err }},
	} {
		if err := c.parse(c.good); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for bit := range len(c.good) * 8 {
			bad := bytes.Clone(c.good)
			bad[bit/8] ^= 1 << (bit % 8)
			if c.name == "stream file" && bytes.EqualFold(bad, c.good) {
				continue // a hexadecimal digit in the other case
			}
			if err := c.parse(bad); err == nil {
				t.Errorf("%s: bit %d flipped, and nobody noticed", c.name, bit)
			} else if bit == 1 && c.name != "stream file" && !errors.Is(err, ErrUnknownFormat) {
				t.Errorf("%s: unknown version: %v", c.name, err)
			}
		}
		for n := range len(c.good) {
			if err := c.parse(c.good[:n]); err == nil && !(c.name == "stream file" && n == len(c.good)-1) {
				t.Errorf("%s: cut to %d bytes, and nobody noticed", c.name, n)
			}
		}
	}
}

func TestNewerStreamFile(t *testing.T) {
	o := testOptions(vfs.NewMem())
	mustClose(t, mustOpen(t, o))
	body, err := streamMeta{streamFileVersion + 1, o.Stream, o.Partitions, o.Segment}.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := writeFileAtomic(o.FS, o.Dir, streamFileTmp, streamFile, body); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); !errors.Is(err, ErrUnknownFormat) || errors.Is(err, ErrCorrupt) {
		t.Fatalf("newer format: %v", err)
	}
}

// A frame that passes its checks yields records or an error, never a panic, and encodes to the same bytes.
func FuzzFrame(f *testing.F) {
	f.Add(goldenFrame())
	f.Add(goldenFrame()[:frameHeaderBytes])
	f.Add([]byte{frameVersion})
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) >= frameHeaderBytes { // let the fuzzer past the checksum
			frame = bytes.Clone(frame)
			binary.LittleEndian.PutUint32(frame[4:], frameSum(frame))
		}
		var h frameHeader
		records, err := h.parse(frame)
		if err != nil {
			return
		}
		again := bytes.Clone(frame)
		h.put(again)
		if !bytes.Equal(again, frame) {
			t.Fatalf("frame %x encodes to %x", frame, again)
		}
		if rest, err := skipRecords(records, h.Count); err == nil && len(rest) > len(records) {
			t.Fatalf("%d of %d bytes left", len(rest), len(records))
		}
		_, _ = recordArrival(records)
	})
}

func FuzzMeta(f *testing.F) {
	f.Add(trimMark{300, testNow}.append(nil))
	f.Add(identity{3, 4}.append(nil))
	f.Fuzz(func(t *testing.T, value []byte) {
		if m, err := parseTrimMark(value); err == nil && !bytes.Equal(m.append(nil), value) {
			t.Fatalf("%x encodes to %x", value, m.append(nil))
		}
		if i, err := parseIdentity(value); err == nil && !bytes.Equal(i.append(nil), value) {
			t.Fatalf("%x encodes to %x", value, i.append(nil))
		}
		_, _ = parseStreamMeta(value)
	})
}

func TestRecordArrival(t *testing.T) {
	for _, s := range []sample{
		{time: 0, arrival: 0}, {time: testNow, arrival: testNow + 1}, {time: math.MaxInt64, arrival: testNow},
		{time: math.MinInt64, arrival: math.MaxInt64},
	} {
		e := s.event()
		record := event.Append(nil, &e)
		if got, ok := recordArrival(record); !ok || got != s.arrival {
			t.Errorf("%+v: arrival %d, %v", s, got, ok)
		}
		for n := range 3 {
			if _, ok := recordArrival(record[:n]); ok {
				t.Errorf("arrival read from %d bytes", n)
			}
		}
	}
}

func TestTimeProperty(t *testing.T) {
	frame := goldenFrame()
	interval, err := timeMapper{}.MapPointKey(pebble.MakeInternalKey(frameKey(nil, 300), 1, pebble.InternalKeyKindSet), frame)
	if err != nil || interval.Lower != orderedTime(testNow-5) || interval.Upper != orderedTime(testNow+5)+1 {
		t.Errorf("frame: %+v, %v", interval, err)
	}
	for _, key := range [][]byte{trimKey, {frameTable}} {
		interval, err = timeMapper{}.MapPointKey(pebble.MakeInternalKey(key, 1, pebble.InternalKeyKindSet), frame)
		if err != nil || !interval.IsEmpty() {
			t.Errorf("key %x: %+v, %v", key, interval, err)
		}
	}
	if a, b, c := orderedTime(math.MinInt64), orderedTime(-1), orderedTime(0); a >= b || b >= c {
		t.Error("negative times do not sort")
	}
}
