package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Units of time in ms.
const (
	secondMS = 1000
	minuteMS = 60 * secondMS
	hourMS   = 60 * minuteMS
	dayMS    = 24 * hourMS
	weekMS   = 7 * dayMS
)

type unit struct {
	name string
	size int64
}

// durationUnits and sizeUnits are ordered from the largest.
func durationUnits() []unit {
	return []unit{{"w", weekMS}, {"d", dayMS}, {"h", hourMS}, {"m", minuteMS}, {"s", secondMS}, {"ms", 1}}
}

func sizeUnits() []unit {
	return []unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
}

var (
	errDuration = errors.New("want whole numbers with a unit of ms, s, m, h, d or w, largest first, such as 90s or 1h30m")
	errSize     = errors.New("want a whole number with a unit of KiB, MiB or GiB, such as 64MiB; without a unit: bytes")
)

// ParseDuration reads a duration such as 5s, 7d or 1h30m and returns ms. Each unit may occur once, the largest first.
// Zero is written with a unit too.
func ParseDuration(text string) (int64, error) {
	units := durationUnits()
	total, rest := int64(0), text
	for len(rest) > 0 {
		digits := leadingDigits(rest)
		letters := leadingLetters(rest[digits:])
		if digits == 0 || letters == 0 {
			return 0, fmt.Errorf("cannot read duration: got %q; %w", text, errDuration)
		}
		at := unitIndex(units, rest[digits:digits+letters])
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		if at < 0 || err != nil || n > (math.MaxInt64-total)/units[at].size {
			return 0, fmt.Errorf("cannot read duration: got %q; %w", text, errDuration)
		}
		total += n * units[at].size
		units, rest = units[at+1:], rest[digits+letters:]
	}
	if text == "" {
		return 0, fmt.Errorf("cannot read duration: got %q; %w", text, errDuration)
	}
	return total, nil
}

// ParseSize reads a size such as 64MiB and returns bytes. A number without a unit is bytes.
func ParseSize(text string) (int64, error) {
	digits := leadingDigits(text)
	name := strings.TrimPrefix(text[digits:], " ")
	if name == "" && digits == len(text) {
		name = "B"
	}
	units := sizeUnits()
	at := unitIndex(units, name)
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	if at < 0 || err != nil || n > math.MaxInt64/units[at].size {
		return 0, fmt.Errorf("cannot read size: got %q; %w", text, errSize)
	}
	return n * units[at].size, nil
}

// FormatDuration writes ms as ParseDuration reads it, in the largest unit that divides it.
func FormatDuration(ms int64) string {
	if ms == 0 {
		return "0s"
	}
	return format(ms, durationUnits(), "w")
}

// FormatSize writes bytes as ParseSize reads it, in the largest unit that divides it.
func FormatSize(bytes int64) string {
	if bytes == 0 {
		return "0B"
	}
	return format(bytes, sizeUnits(), "")
}

// format skips the unit avoid: nobody says 2w for the 14d they configured.
func format(n int64, units []unit, avoid string) string {
	for _, u := range units {
		if u.name != avoid && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

func unitIndex(units []unit, name string) int {
	for i, u := range units {
		if u.name == name {
			return i
		}
	}
	return -1
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func leadingLetters(s string) int {
	n := 0
	for n < len(s) && s[n] >= 'a' && s[n] <= 'z' {
		n++
	}
	return n
}
