package slide

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenValues are one of each form that goes to disk.
func goldenValues(t testing.TB) map[string][]byte {
	three := []Entry{
		{TS: 1_750_000_000_123, FP: 0xaaaaaaaa11111111},
		{TS: 1_749_990_000_000, FP: 0xbbbbbbbb22222222},
		{TS: 1_749_700_000_000, FP: 0xcccccccc33333333},
	}
	odd := []Entry{{TS: math.MinInt64, FP: 1}, {TS: -1, FP: 2}, {TS: math.MaxInt64, FP: 3}}
	merge := func(a, b []byte) []byte {
		out, err := Merge(nil, a, b, NoHorizon)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	many := make([]byte, 0)
	for i := range 70 {
		many = merge(many, AppendOperand(nil, []Entry{{TS: 1_750_000_000_000 + int64(i), FP: fingerprint(i)}}, false))
	}
	s := newStore(Limits{SparseMax: 4, SliceMax: 8, DedupIDs: 20})
	s.base = merge(AppendOperand(nil, steady(3, -minute, second), false), AppendOperand(nil, steady(30, 0, minute), true))
	for range 2 { // forgets; then gets a doubtful arrival
		if _, err := s.fold(NoHorizon); err != nil {
			t.Fatal(err)
		}
		s.layers = append(s.layers, AppendOperand(nil, []Entry{{TS: 5, FP: 0xdddddddd44444444}, {TS: 31 * minute, FP: 5 << 40}}, true))
	}
	root, err := s.value(NoHorizon)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHorizon(7*day, day)
	h.Accept(1_750_000_000_000)
	h.Accept(1)
	fresh := NewHorizon(0, 0)
	values := map[string][]byte{
		"empty":        {kindEmpty},
		"narrow":       AppendOperand(nil, slices.Clone(three), false),
		"narrow-70":    many,
		"wide":         AppendOperand(nil, slices.Clone(three), true),
		"mixed":        merge(AppendOperand(nil, slices.Clone(three[:1]), false), AppendOperand(nil, three[1:], true)),
		"odd-times":    AppendOperand(nil, odd, true),
		"dense":        root,
		"horizon":      AppendHorizon(nil, &h),
		"horizon-new":  AppendHorizon(nil, &fresh),
		"raw-doubtful": appendRaw(nil, []rawEntry{{ts: -5, fp: 7, narrow: true}, {ts: 5, fp: 1 << 40, doubt: true}}),
	}
	var x index
	if _, err := x.decode(root); err != nil {
		t.Fatal(err)
	}
	values["raw"], values["panes"] = s.slices[x.raw[0].id], s.slices[x.panes[0].id]
	return values
}

// TestGolden: what was written once is written for ever. -update makes the files anew, for a new version byte only.
func TestGolden(t *testing.T) {
	for name, value := range goldenValues(t) {
		file := filepath.Join("testdata", "golden", name+".hex")
		if *update {
			if err := os.WriteFile(file, []byte(hex.EncodeToString(value)+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(value); got != strings.TrimSpace(string(want)) {
			t.Errorf("%s: got %s; want %s", name, got, want)
		}
	}
}

// TestUnknownForms: a reader refuses what it does not know.
func TestUnknownForms(t *testing.T) {
	known := map[byte]bool{kindEmpty: true, kindWide: true, kindMixed: true, kindDense: true}
	for b := kindNarrow; b <= kindNarrow|narrowCountMask; b++ {
		known[byte(b)] = true
	}
	narrow := AppendOperand(nil, []Entry{{TS: 1, FP: 1}}, false)
	for b := range 256 {
		if known[byte(b)] {
			continue
		}
		value := append([]byte{byte(b)}, narrow[1:]...)
		var s Answerer
		var a Answer
		if err := s.Answer(value, nil, nil, &Query{Windows: windows}, &a); !errors.Is(err, ErrCorrupt) {
			t.Errorf("form 0x%02x: %v", b, err)
		}
	}
	for name, value := range goldenValues(t) {
		if name == "dense" || strings.HasPrefix(name, "raw") || strings.HasPrefix(name, "horizon") || name == "panes" {
			value = slices.Clone(value)
			value[1] |= 0x80 // a flag of the future
			if err := decodeAny(value, NoHorizon); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s with an unknown flag: %v", name, err)
			}
		}
	}
}

// TestSparseBytes holds the size that 14 bytes an event on disk rest on: three events of one user and ad within a
// week, without the key.
func TestSparseBytes(t *testing.T) {
	value := AppendOperand(nil, []Entry{
		{TS: 1_796_083_200_123, FP: 1}, {TS: 1_796_083_200_123 - 3*hour, FP: 2}, {TS: 1_796_083_200_123 - 3*day, FP: 3},
	}, false)
	if len(value) > 26 {
		t.Errorf("%d bytes; want at most 26", len(value))
	}
}

// TestRoundTrip: every ts and fingerprint comes back.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		byFP := map[uint64]int64{}
		for range rapid.IntRange(0, 100).Draw(t, "entries") {
			byFP[rapid.Uint64().Draw(t, "fp")] = rapid.OneOf(rapid.Int64(), rapid.Just(int64(math.MinInt64)),
				rapid.Just(int64(math.MaxInt64)), rapid.Int64Range(0, 2_000_000_000_000)).Draw(t, "ts")
		}
		var in []Entry
		for fp, ts := range byFP {
			in = append(in, Entry{ts, fp})
		}
		var s set
		s.wide = slices.Clone(in)
		value := appendSet(nil, &s)
		var out set
		if len(value) > 1 {
			narrow, wide, tail, err := cutSetHeader(value)
			if err != nil || narrow != 0 || wide != len(in) {
				t.Fatalf("header: %d, %d, %v", narrow, wide, err)
			}
			var ok bool
			// One below the horizon of NoHorizon cannot be asked for, so MinInt64 is looked at in the encoding itself.
			if out.wide, _, ok = cutSection(nil, tail, wide, wideBytes, NoHorizon); !ok {
				t.Fatal("cannot decode")
			}
		}
		for _, e := range out.wide {
			if ts, ok := byFP[e.FP]; !ok || ts != e.TS {
				t.Fatalf("got %+v; want ts %d", e, ts)
			}
			delete(byFP, e.FP)
		}
		for fp, ts := range byFP {
			if ts != math.MinInt64 {
				t.Fatalf("fingerprint %x at %d is lost", fp, ts)
			}
		}
	})
}

func TestHorizonRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := NewHorizon(rapid.Int64Range(0, math.MaxInt64).Draw(t, "window"), rapid.Int64Range(0, 1000).Draw(t, "lateness"))
		for range rapid.IntRange(0, 5).Draw(t, "events") {
			h.Accept(rapid.Int64().Draw(t, "ts"))
		}
		got, tail, err := DecodeHorizon(append(AppendHorizon(nil, &h), 9))
		if err != nil || got != h || len(tail) != 1 {
			t.Fatalf("got %+v, tail %x, %v; want %+v", got, tail, err, h)
		}
	})
}

// anySlice gives the same bytes for every slice.
type anySlice []byte

func (s anySlice) ReadSlice(uint64) ([]byte, error) { return s, nil }

// decodeAny puts value through every decoder that takes it. It returns the first error.
func decodeAny(value []byte, horizon int64) error {
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	switch {
	case len(value) > 0 && value[0] == kindRaw:
		s, err := parseRaw(value)
		if err != nil {
			return err
		}
		_, err = s.appendTimes(nil)
		return err
	case len(value) > 0 && value[0] == kindPanes:
		_, err := decodePanes(nil, value)
		return err
	case len(value) > 0 && value[0] == horizonVersion:
		_, _, err := DecodeHorizon(value)
		return err
	}
	_, _, err := LiveAfter(value, horizon)
	note(err)
	_, err = AppendSlices(nil, value)
	note(err)
	NeedsFold(value, Limits{})
	_, err = Merge(nil, value, nil, horizon)
	note(err)
	return first
}

func seed(f *testing.F) {
	for _, value := range goldenValues(f) {
		f.Add(value, value, int64(0))
		f.Add(value, goldenValues(f)["raw"], int64(20*minute))
		f.Add(value, goldenValues(f)["panes"], int64(math.MinInt64))
	}
}

// FuzzDecode: no bytes make a decoder panic, read too far or ask for much memory; and errors are of the class.
func FuzzDecode(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, value, _ []byte, horizon int64) {
		if err := decodeAny(value, horizon); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("error of another class: %v", err)
		}
	})
}

// FuzzMerge: what merges, merges to a fixed point.
func FuzzMerge(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, a, b []byte, horizon int64) {
		ab, err := Merge(nil, a, b, horizon)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTwoDense) {
				t.Fatalf("error of another class: %v", err)
			}
			return
		}
		ba, err := Merge(nil, b, a, horizon)
		if err != nil || !bytes.Equal(ab, ba) {
			t.Fatalf("%x + %x: %x, the other way %x, %v", a, b, ab, ba, err)
		}
		again, err := Merge(nil, ab, nil, horizon)
		if err != nil || !bytes.Equal(ab, again) {
			t.Fatalf("%x merged again: %x, %v", ab, again, err)
		}
	})
}

// FuzzKey: a corrupt root or slice makes no answer and no fold panic.
func FuzzKey(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, value, slice []byte, at int64) {
		q := Query{Windows: windows, AsOf: at, Horizon: at / 2, CompleteSince: at}
		var s Answerer
		var a Answer
		extra := []Entry{{TS: at, FP: 7}, {TS: 0, FP: 1 << 40}}
		if err := s.Answer(value, anySlice(slice), extra, &q, &a); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("error of another class: %v", err)
		}
		var folder Folder
		if _, err := folder.Fold(value, anySlice(slice), at, Limits{SparseMax: 2, SliceMax: 4, DedupIDs: 5}); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("error of another class: %v", err)
		}
	})
}
