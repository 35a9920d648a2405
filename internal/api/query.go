package api

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parameters are the query parameters of one request, checked against the names that its endpoint knows.
type parameters struct {
	values url.Values
}

// parseParameters refuses what is malformed, a parameter that the endpoint does not know (a typo would otherwise be a
// silently different question), and a second value where only one has a meaning.
func parseParameters(rawQuery string, known []string, repeatable string) (parameters, *failure) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return parameters{}, badArgument("", rawQuery, "cannot read the query: "+err.Error(), "escape values as %XX")
	}
	for name, all := range values {
		if !slices.Contains(known, name) {
			f := badArgument(name, first(all), "unknown parameter "+strconv.Quote(cut(name)), hintOf(name, "parameter here", known))
			f.code = codeUnknownParameter
			return parameters{}, f
		}
		if len(all) > 1 && name != repeatable {
			return parameters{}, badArgument(name, strings.Join(all, ","), name+" is given "+strconv.Itoa(len(all))+" times; want once", "")
		}
	}
	return parameters{values}, nil
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func (p parameters) has(name string) bool { return len(p.values[name]) > 0 }

func (p parameters) get(name string) string { return first(p.values[name]) }

// integer returns the parameter, or fallback where it is absent.
func (p parameters) integer(name string, lowest, fallback int64) (int64, *failure) {
	if !p.has(name) {
		return fallback, nil
	}
	text := p.get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < lowest {
		return 0, badArgument(name, text, "cannot use "+name+": want an integer of at least "+strconv.FormatInt(lowest, 10), "")
	}
	return n, nil
}

// instant returns the parameter in ms, or fallback where it is absent.
func (p parameters) instant(name string, fallback int64) (int64, *failure) {
	if !p.has(name) {
		return fallback, nil
	}
	text := p.get(name)
	ms, ok := parseInstant(text)
	if !ok {
		return 0, badArgument(name, text, "cannot use "+name+": want milliseconds since 1970 or RFC 3339",
			"such as 1796083200123 or 2026-12-01T00:00:00.123Z")
	}
	return ms, nil
}

// boolean accepts true and false, and a bare name as true.
func (p parameters) boolean(name string) (bool, *failure) {
	if !p.has(name) {
		return false, nil
	}
	switch p.get(name) {
	case "true", "":
		return true, nil
	case "false":
		return false, nil
	}
	return false, badArgument(name, p.get(name), "cannot use "+name+": want true or false", "")
}

// parseInstant reads an integer of ms or RFC 3339, cut off below the millisecond. A space where an offset's plus should be is
// what becomes of an unescaped plus in a query, and can mean nothing else.
func parseInstant(text string) (ms int64, ok bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	t, err := time.Parse(time.RFC3339Nano, strings.Replace(text, " ", "+", 1))
	if err != nil {
		return 0, false
	}
	return t.UnixMilli(), true
}
