package cloudevents

import (
	"fmt"
	"math"
	"time"

	"github.com/weirstream/weir/internal/jsonscan"
)

const (
	secondMS = 1000
	minuteMS = 60 * secondMS
	hourMS   = 60 * minuteMS
	dayMS    = 24 * hourMS

	// timeMin and timeMax bound source_ts in ms: the years 1 to 9999, those that RFC 3339 can write.
	timeMin = -62_135_596_800_000
	timeMax = 253_402_300_799_999
	// unitCheckMin is 2000-01-01T00:00Z: an integer that means an earlier date in milliseconds was sent in another unit.
	unitCheckMin = 946_684_800_000
)

// otherUnits are what people send for milliseconds, and how many ms one of them is: multiplied, then divided.
var otherUnits = [...]struct {
	name     string
	multiply int64
	divide   int64
}{{"seconds", 1000, 1}, {"microseconds", 1, 1000}, {"nanoseconds", 1, 1_000_000}}

// readTime reads the member time: an RFC 3339 string or an integer of ms; arrival where there is none.
func (p *Parser) readTime(raw []byte) (ms int64, r *refusal) {
	if absent(raw) {
		return p.arrival, nil
	}
	if raw[0] != '"' {
		if raw[0] != '-' && raw[0]-'0' > 9 {
			return 0, wrongType("time", raw, "an RFC 3339 string or an integer of milliseconds")
		}
		return p.integerTime(raw)
	}
	text, r := p.text("time", raw)
	if r != nil {
		return 0, r
	}
	return p.textTime(text)
}

// looseTime reads a time where everything is text: decimal ms too.
func (p *Parser) looseTime(text []byte) (ms int64, r *refusal) {
	if _, ok := parseInteger(text); ok {
		return p.integerTime(text)
	}
	return p.textTime(text)
}

func (p *Parser) textTime(text []byte) (ms int64, r *refusal) {
	ms, ok := ParseTime(text)
	if !ok {
		return 0, badTime(text, "2026-11-30T12:00:00.123Z, or an integer of milliseconds")
	}
	return p.heldToSkew(ms, text)
}

func (p *Parser) integerTime(raw []byte) (ms int64, r *refusal) {
	ms, ok := parseInteger(raw)
	if !ok {
		return 0, badTime(raw, "whole milliseconds since 1970 in 64 bits, without fraction and exponent")
	}
	if p.rules.UnitCheck && (ms < unitCheckMin || ms > p.latest()) {
		if r := p.wrongUnit(ms, raw); r != nil {
			return 0, r
		}
	}
	if ms < timeMin || ms > timeMax {
		return 0, badTime(raw, "milliseconds within the years 1 to 9999")
	}
	return p.heldToSkew(ms, raw)
}

func badTime(text []byte, want string) *refusal {
	return &refusal{code: CodeBadTime, field: "time", value: cut(text),
		message: fmt.Sprintf("cannot read time: got %q; want %s", cut(text), want),
		hint:    "leave time out to take the time of arrival"}
}

// latest is the last time that is not in the future.
func (p *Parser) latest() int64 {
	if p.arrival > math.MaxInt64-p.rules.Skew {
		return math.MaxInt64
	}
	return p.arrival + p.rules.Skew
}

// wrongUnit refuses an integer that is no plausible time in milliseconds. One in the future that no other unit explains
// either is no mistake of units: it is left to the rule for the future.
func (p *Parser) wrongUnit(v int64, raw []byte) *refusal {
	for _, unit := range otherUnits {
		if v > math.MaxInt64/unit.multiply || v < math.MinInt64/unit.multiply {
			continue
		}
		if ms := v * unit.multiply / unit.divide; ms >= unitCheckMin && ms <= p.latest() {
			return &refusal{code: CodeTimeUnit, field: "time", value: cut(raw),
				message: fmt.Sprintf("cannot take time: got %d, which is %s in milliseconds; want milliseconds (as %s it would be %s)",
					v, showTime(v), unit.name, showTime(ms)),
				hint: "convert " + unit.name + " to milliseconds, or send RFC 3339"}
		}
	}
	if v > p.latest() {
		return nil
	}
	return &refusal{code: CodeTimeUnit, field: "time", value: cut(raw),
		message: fmt.Sprintf("cannot take time: got %d, which is %s in milliseconds; want a time from 2000-01-01 to %s (no other unit fits either)",
			v, showTime(v), showTime(p.latest())),
		hint: "for times before 2000, send RFC 3339 or set time.unit_check: false for the stream"}
}

func showTime(ms int64) string {
	if ms < timeMin {
		return "before the year 1"
	}
	if ms > timeMax {
		return "after the year 9999"
	}
	return string(AppendTime(nil, ms))
}

// heldToSkew applies the stream's rule for times in the future.
func (p *Parser) heldToSkew(ms int64, text []byte) (held int64, r *refusal) {
	latest := p.latest()
	switch {
	case ms <= latest || p.rules.Future == FutureAccept:
		return ms, nil
	case p.rules.Future == FutureClamp:
		return latest, nil
	}
	return 0, &refusal{code: CodeTimeFuture, field: "time", value: cut(text),
		message: fmt.Sprintf("cannot take time: got %s, %s after arrival; want at most %s after it (time.skew)",
			showTime(ms), showDuration(ms-p.arrival), showDuration(p.rules.Skew)),
		hint: "set the clock of the sender, or time.future of the stream to clamp or accept"}
}

func showDuration(ms int64) string {
	return (time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond).String()
}

// ParseTime reads an RFC 3339 time as ms since the epoch. Below a millisecond it is cut off towards the past. A leap
// second, allowed where one may be, is the second after it, as in POSIX. ok is false for anything else and outside the
// years 1 to 9999 in UTC.
func ParseTime(s []byte) (ms int64, ok bool) {
	const shortest = len("2006-01-02T15:04:05Z")
	if len(s) < shortest || s[4] != '-' || s[7] != '-' || s[10]|0x20 != 't' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	year := twoDigits(s)*100 + twoDigits(s[2:])
	month, day := twoDigits(s[5:]), twoDigits(s[8:])
	hour, minute, second := twoDigits(s[11:]), twoDigits(s[14:]), twoDigits(s[17:])
	if year < 0 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 {
		return 0, false
	}
	fraction, rest, ok := cutFraction(s[19:])
	offset, okZone := zoneOffset(rest)
	if !ok || !okZone {
		return 0, false
	}
	ms = daysSinceEpoch(year, month, day)*dayMS + int64(hour)*hourMS + int64(minute)*minuteMS + int64(second)*secondMS + fraction - offset
	if second == 60 && (ms-fraction)%dayMS != 0 {
		return 0, false
	}
	return ms, ms >= timeMin && ms <= timeMax
}

// notDigits is so low that no number of which it is a part can be in range.
const notDigits = -100_000

func twoDigits(s []byte) int {
	a, b := s[0]-'0', s[1]-'0'
	if a > 9 || b > 9 {
		return notDigits
	}
	return int(a)*10 + int(b)
}

// cutFraction reads the fraction of a second, if there is one, in whole ms.
func cutFraction(s []byte) (ms int64, rest []byte, ok bool) {
	if len(s) == 0 || s[0] != '.' {
		return 0, s, true
	}
	digits, worth := 0, int64(100)
	for s = s[1:]; digits < len(s) && s[digits]-'0' <= 9; digits++ {
		ms += int64(s[digits]-'0') * worth
		worth /= 10
	}
	return ms, s[digits:], digits > 0
}

// zoneOffset reads Z or +hh:mm, in ms east of Greenwich.
func zoneOffset(s []byte) (ms int64, ok bool) {
	if len(s) == 1 && s[0]|0x20 == 'z' {
		return 0, true
	}
	if len(s) != len("+00:00") || s[3] != ':' || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hour, minute := twoDigits(s[1:]), twoDigits(s[4:])
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 {
		return 0, false
	}
	ms = int64(hour)*hourMS + int64(minute)*minuteMS
	if s[0] == '-' {
		ms = -ms
	}
	return ms, true
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

const (
	daysPer400Years = 146_097
	daysTo1970      = 719_468 // from 0000-03-01
)

// daysSinceEpoch counts the days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March there, so
// that the leap day is the last of its year (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
func daysSinceEpoch(year, month, day int) int64 {
	if month <= 2 {
		year, month = year-1, month+12
	}
	era := (year + 400) / 400 // one ahead, so that the division is of no negative number
	yearOfEra := year + 400 - era*400
	dayOfYear := (153*(month-3)+2)/5 + day - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return int64(era-1)*daysPer400Years + int64(dayOfEra) - daysTo1970
}

// AppendTime appends ms as RFC 3339 in UTC with milliseconds. Outside the years 1 to 9999 it is the nearest time within.
func AppendTime(dst []byte, ms int64) []byte {
	ms = min(max(ms, timeMin), timeMax) - timeMin
	days, rest := ms/dayMS, ms%dayMS
	year, month, day := dateOf(days)
	dst = appendDigits(dst, year, 4)
	dst = appendDigits(append(dst, '-'), month, 2)
	dst = appendDigits(append(dst, '-'), day, 2)
	dst = appendDigits(append(dst, 'T'), rest/hourMS, 2)
	dst = appendDigits(append(dst, ':'), rest/minuteMS%60, 2)
	dst = appendDigits(append(dst, ':'), rest/secondMS%60, 2)
	dst = appendDigits(append(dst, '.'), rest%secondMS, 3)
	return append(dst, 'Z')
}

// dateOf is the inverse of daysSinceEpoch for days counted from 0001-01-01.
func dateOf(days int64) (year, month, day int64) {
	days += daysTo1970 + timeMin/dayMS
	era, dayOfEra := days/daysPer400Years, days%daysPer400Years
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	fromMarch := (5*dayOfYear + 2) / 153
	year, month, day = era*400+yearOfEra, fromMarch+3, dayOfYear-(153*fromMarch+2)/5+1
	if month > 12 {
		year, month = year+1, month-12
	}
	return year, month, day
}

func appendDigits(dst []byte, v int64, digits int) []byte {
	for range digits {
		dst = append(dst, '0')
	}
	for i := len(dst) - 1; v > 0; i-- {
		dst[i] = byte('0' + v%10)
		v /= 10
	}
	return dst
}

// checkData validates a payload that is to be JSON.
func checkData(data []byte) (value []byte, r *refusal) {
	value, err := jsonscan.Document(data, jsonscan.DepthMax)
	if err != nil {
		r = notJSON(err, "data")
		r.value, r.hint = cut(data), "send valid JSON, or another content type than JSON"
	}
	return value, r
}
