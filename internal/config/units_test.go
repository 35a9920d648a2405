package config

import (
	"testing"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	for _, c := range []struct {
		text string
		ms   int64 // -1: an error
	}{
		{"0s", 0}, {"1ms", 1}, {"90s", 90_000}, {"1h30m", 5_400_000}, {"8d", 691_200_000}, {"1w2d", 777_600_000}, {"1m1ms", 60_001},
		{"", -1}, {"5", -1}, {"s", -1}, {"1.5h", -1}, {"-1s", -1}, {"1 s", -1}, {"1S", -1}, {"1y", -1}, {"1m1h", -1}, {"1s1s", -1},
		{"1h30", -1}, {"99999999999999999999s", -1}, {"9223372036854775807s", -1}, {"9223372036854775807ms", 1<<63 - 1}, {"١s", -1},
	} {
		got, err := ParseDuration(c.text)
		if (err != nil) != (c.ms < 0) || err == nil && got != c.ms {
			t.Errorf("%q: got %d, %v; want %d", c.text, got, err, c.ms)
		}
	}
}

func TestParseSize(t *testing.T) {
	for _, c := range []struct {
		text  string
		bytes int64 // -1: an error
	}{
		{"0", 0}, {"256", 256}, {"256B", 256}, {"1KiB", 1024}, {"16MiB", 16 << 20}, {"16 MiB", 16 << 20}, {"2GiB", 2 << 30},
		{"", -1}, {"MiB", -1}, {"1.5GiB", -1}, {"1MB", -1}, {"1M", -1}, {"1mib", -1}, {"-1MiB", -1}, {"1  MiB", -1}, {"1 ", -1},
		{"9223372036854775807", 1<<63 - 1}, {"9223372036854775807KiB", -1},
	} {
		got, err := ParseSize(c.text)
		if (err != nil) != (c.bytes < 0) || err == nil && got != c.bytes {
			t.Errorf("%q: got %d, %v; want %d", c.text, got, err, c.bytes)
		}
	}
}

func TestFormatNamesTheLargestUnit(t *testing.T) {
	for want, got := range map[string]string{
		"0s": FormatDuration(0), "1m": FormatDuration(60_000), "90s": FormatDuration(90_000), "14d": FormatDuration(14 * dayMS),
		"1001ms": FormatDuration(1001), "0B": FormatSize(0), "1GiB": FormatSize(1 << 30), "1536MiB": FormatSize(3 << 29), "7B": FormatSize(7),
	} {
		if got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
}

func TestUnitsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<62).Draw(t, "n")
		if ms, err := ParseDuration(FormatDuration(n)); err != nil || ms != n {
			t.Errorf("duration %d: got %d, %v from %q", n, ms, err, FormatDuration(n))
		}
		if bytes, err := ParseSize(FormatSize(n)); err != nil || bytes != n {
			t.Errorf("size %d: got %d, %v from %q", n, bytes, err, FormatSize(n))
		}
	})
}
