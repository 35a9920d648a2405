package cloudevents

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseTime(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
	}{
		{"1970-01-01T00:00:00Z", 0}, {"1970-01-01t00:00:00z", 0}, {"1969-12-31T23:59:59.9999Z", -1}, {"1969-12-31T23:59:59.0009Z", -1000},
		{"2000-02-29T00:00:00Z", 951782400000}, {"2026-11-30T12:00:00.123456789+09:00", 1796007600123}, {"2026-11-30T12:00:00.1-00:30", 1796041800100},
		{"0001-01-01T00:00:00Z", timeMin}, {"9999-12-31T23:59:59.999Z", timeMax}, {"2016-12-31T23:59:60Z", 1483228800000},
		{"2016-12-31T23:59:60.5Z", 1483228800500}, {"2017-01-01T08:59:60+09:00", 1483228800000},
	} {
		if got, ok := ParseTime([]byte(c.in)); !ok || got != c.want {
			t.Errorf("%s: got %d, %v; want %d", c.in, got, ok, c.want)
		}
	}
	for _, in := range []string{"", "2026-11-30", "2026-11-30T12:00:00", "2026-11-30 12:00:00Z", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
		"2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z", "2026-01-01T12:00:60Z",
		"2026-01-01T00:00:00.Z", "2026-01-01T00:00:00,5Z", "2026-01-01T00:00:00+9:00", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+0900",
		"0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2026-01-01T00:00:00ZZ", "-026-01-01T00:00:00Z", "2026-01-01T00:00:00"} {
		if got, ok := ParseTime([]byte(in)); ok {
			t.Errorf("%q: got %d; want a refusal", in, got)
		}
	}
}

// TestTimeAgreesWithGo holds both directions against package time.
func TestTimeAgreesWithGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(timeMin, timeMax).Draw(t, "ms")
		want := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
		if got := string(AppendTime(nil, ms)); got != want {
			t.Fatalf("AppendTime(%d): got %s; want %s", ms, got, want)
		}
		zone := time.FixedZone("", rapid.IntRange(-23*60-59, 23*60+59).Draw(t, "zone")*60)
		local := time.UnixMilli(ms).Add(time.Duration(rapid.IntRange(0, 999_999).Draw(t, "ns"))).In(zone)
		if local.Year() < 0 || local.Year() > 9999 {
			return
		}
		text := local.Format(time.RFC3339Nano)
		if got, ok := ParseTime([]byte(text)); !ok || got != ms {
			t.Fatalf("ParseTime(%s): got %d, %v; want %d", text, got, ok, ms)
		}
	})
}

// FuzzParseTime holds that what is accepted, leap seconds aside, is what package time accepts, and means the same.
func FuzzParseTime(f *testing.F) {
	for _, text := range []string{"2026-11-30T12:00:00.123Z", "2026-11-30T12:00:00+09:00", "2016-12-31T23:59:60Z", "0000-01-01T00:00:00Z", "1796083200000"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := ParseTime(text)
		if ok && (got < timeMin || got > timeMax) {
			t.Fatalf("ParseTime(%q) = %d: out of range", text, got)
		}
		if again, okAgain := ParseTime(AppendTime(nil, got)); ok && (!okAgain || again != got) {
			t.Fatalf("ParseTime(%q) = %d, which is written and read as %d", text, got, again)
		}
		if len(text) > 18 && bytes.Equal(text[17:19], []byte("60")) {
			return
		}
		// Go reads a comma for the point, and an hour of one digit.
		want, err := time.Parse(time.RFC3339Nano, string(bytes.ToUpper(text)))
		valid := err == nil && !bytes.ContainsAny(text, ",") && len(text) > 13 && text[13] == ':' && want.UnixMilli() >= timeMin && want.UnixMilli() <= timeMax
		if ok != valid || ok && got != want.UnixMilli() {
			t.Fatalf("ParseTime(%q): got %d, %v; package time says %v, %v", text, got, ok, want, err)
		}
	})
}

func FuzzParseInteger(f *testing.F) {
	for _, text := range []string{"0", "-0", "-1", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551616", "", "-", "+1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseInteger([]byte(text))
		if want, valid := oracleInteger(text); ok != valid || got != want && ok {
			t.Fatalf("parseInteger(%q): got %d, %v; want %d, %v", text, got, ok, want, valid)
		}
	})
}
