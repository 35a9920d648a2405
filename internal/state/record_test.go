package state

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/slide"
)

var update = flag.Bool("update", false, "write the golden files anew")

func sampleEntry() Entry {
	return Entry{ID: CounterID(3, 2), Live: true, Name: "seen", Definition: []byte("what it counts"), LongestMS: 604_800_000, LatenessMS: 86_400_000}
}

func sampleMarker() marker {
	h := slide.NewHorizon(604_800_000, 86_400_000)
	for _, ts := range []int64{1_700_000_000_000, 1_700_000_000_500, 1_600_000_000_000} {
		h.Accept(ts)
	}
	return marker{next: 123_456, floor: slide.NoHorizon, lost: 1_600_000_000_000, horizon: h}
}

// What is stored is as docs/format/state.md says, for ever.
func TestGolden(t *testing.T) {
	e, m := sampleEntry(), sampleMarker()
	page := seal(append([]byte{recordVersion}, bytes.Repeat([]byte{7}, densityPageBytes)...), 0)
	lines := []string{
		fmt.Sprintf("catalog %x %x", metaKey(catalogLetter, e.ID), appendEntry(nil, &e)),
		fmt.Sprintf("marker %x %x", metaKey(markerLetter, e.ID), appendMarker(nil, &m)),
		fmt.Sprintf("density %x %x", metaKey(densityLetter, 5), page),
		fmt.Sprintf("root %x", AppendKey(nil, e.ID, []byte("u1"), []byte("a9"))),
		fmt.Sprintf("slice %x", appendSliceKey(nil, AppendKey(nil, e.ID, []byte("u1"), []byte("a9")), 258)),
	}
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", "records.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(want)), "\n") {
		fields := strings.Fields(line)
		record, err := hex.DecodeString(fields[len(fields)-1])
		if err != nil {
			t.Fatal(err)
		}
		switch fields[0] {
		case "catalog":
			if got, err := decodeEntry(record); err != nil || !reflect.DeepEqual(got, e) {
				t.Errorf("got %+v, %v; want %+v", got, err, e)
			}
		case "marker":
			if got, err := decodeMarker(record); err != nil || got != m {
				t.Errorf("got %+v, %v; want %+v", got, err, m)
			}
		case "density":
			if err := newDensity().load(5, record); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestNewerRecordsAreRefused(t *testing.T) {
	e := sampleEntry()
	record := appendEntry(nil, &e)
	record[0]++
	record = seal(record[:len(record)-checksumBytes], 0)
	if _, err := decodeEntry(record); !errors.Is(err, ErrUnknownFormat) {
		t.Errorf("got %v; want ErrUnknownFormat", err)
	}
}

// Every flipped bit of a record is found.
func TestFlippedBits(t *testing.T) {
	e, m := sampleEntry(), sampleMarker()
	for _, record := range [][]byte{appendEntry(nil, &e), appendMarker(nil, &m)} {
		for bit := range 8 * len(record) {
			bad := slices.Clone(record)
			bad[bit/8] ^= 1 << (bit % 8)
			if _, err := unseal(bad); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("bit %d: got %v; want ErrCorrupt", bit, err)
			}
		}
	}
}

func FuzzRecords(f *testing.F) {
	e, m := sampleEntry(), sampleMarker()
	f.Add(appendEntry(nil, &e))
	f.Add(appendMarker(nil, &m))
	f.Fuzz(func(t *testing.T, body []byte) {
		// The checksum would stop every mutation: what is behind it must stand by itself.
		record := seal(body[:len(body):len(body)], 0)
		if e, err := decodeEntry(record); err == nil {
			if again, err := decodeEntry(appendEntry(nil, &e)); err != nil || !reflect.DeepEqual(again, e) {
				t.Fatalf("got %+v, %v; want %+v", again, err, e)
			}
		}
		if m, err := decodeMarker(record); err == nil {
			if again, err := decodeMarker(appendMarker(nil, &m)); err != nil || again != m {
				t.Fatalf("got %+v, %v; want %+v", again, err, m)
			}
		}
		_ = newDensity().load(1, record) // an error or not, but no panic
		_, _ = decodeEntry(body)
	})
}

func FuzzKeys(f *testing.F) {
	f.Add(AppendKey(nil, 17, []byte("a"), []byte("b")), AppendKey(nil, 16, []byte("ab")))
	f.Add([]byte{0, 0, 0, 16, 0x80}, []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		// What Pebble demands of a Split: prefixes sort as keys do.
		pa, pb := a[:keySplit(a)], b[:keySplit(b)]
		if c, p := bytes.Compare(a, b), bytes.Compare(pa, pb); c*p < 0 || (c == 0 && p != 0) {
			t.Fatalf("%x, %x: keys compare %d, prefixes %d", a, b, c, p)
		}
		if keySplit(pa) != len(pa) {
			t.Fatalf("%x: the prefix of a prefix is another one", a)
		}
		if n, ok := rootLen(a); ok && n != len(a) && n != len(a)-sliceIDBytes {
			t.Fatalf("%x: a root of %d bytes", a, n)
		}
	})
}

func TestCatalogSurvives(t *testing.T) {
	fs := vfs.NewMem()
	open := func() *Store {
		s, err := Open(Options{FS: fs, Dir: "s"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	a, err := s.Create(Entry{Name: "a", Definition: []byte("x")}, 1, 10, slide.NoHorizon)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Create(Entry{Name: "b"}, 3, 5, 77)
	if err != nil {
		t.Fatal(err)
	}
	if KeyParts(a.ID) != 1 || KeyParts(b.ID) != 3 || KeySequence(a.ID) == KeySequence(b.ID) || s.Persisted() != 5 {
		t.Fatalf("got %+v, %+v, persisted %d", a, b, s.Persisted())
	}
	if err := s.Drop(b.ID); err != nil {
		t.Fatal(err)
	}
	a.Live = true
	if err := s.Update(a); err != nil {
		t.Fatal(err)
	}
	c, err := s.Create(Entry{Name: "c"}, 3, 5, 77)
	if err != nil || c.ID == b.ID {
		t.Fatalf("got %+v, %v; want another id than %d", c, err, b.ID)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	if got, want := s.Catalog(), []Entry{a, c}; len(got) != 2 || got[0].Name != "a" || !got[0].Live || !reflect.DeepEqual(got[0], a) || got[1].Name != "c" {
		t.Fatalf("got %+v; want %+v", got, want)
	}
	if _, err := s.Counter(b, slide.Limits{}); !errors.Is(err, ErrUnknownCounter) {
		t.Errorf("got %v; want ErrUnknownCounter", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(a); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v; want ErrClosed", err)
	}
}

// A shorter window moves H up at once; a longer lateness does not move it down.
func TestChangedSpan(t *testing.T) {
	s, err := Open(Options{FS: vfs.NewMem(), Dir: "s"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Create(Entry{Name: "a", LongestMS: 1000, LatenessMS: 100}, 1, 0, slide.NoHorizon)
	if err != nil {
		t.Fatal(err)
	}
	open := func() *Counter {
		c, err := s.Counter(e, slide.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	commit := func(c *Counter, ts int64) {
		l, err := s.NewLane(LaneOptions{Next: c.Next(), Counters: []*Counter{c}})
		if err != nil {
			t.Fatal(err)
		}
		l.Lock()
		c.Accept(ts)
		l.Advance(c.Next() + 1)
		l.Unlock()
		if _, err := l.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	c := open()
	commit(c, 10_000)
	e.LatenessMS = 5000
	if c = open(); c.h() != 8900 || c.Accept(8900) || !c.Accept(8901) {
		t.Errorf("longer lateness: got H %d; want 8900", c.h())
	}
	commit(c, 15_000)
	if c = open(); c.h() != 9000 {
		t.Errorf("newer event: got H %d; want 9000", c.h())
	}
	e.LongestMS, e.LatenessMS = 500, 0
	if c = open(); c.h() != 14_500 {
		t.Errorf("shorter window: got H %d; want 14500", c.h())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
