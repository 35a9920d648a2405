package config

import (
	"fmt"
	"strings"
)

// notYet lists settings that Weir's documentation and other versions speak of and this version does not read, so that
// whoever copies one is told so instead of being offered the nearest spelling.
func notYet(name string) bool {
	switch name {
	case "auth", "tls", "kafka", "checkpoint", "scale", "caps", "archive", "jobs", "router", "compression":
		return true
	}
	return false
}

// unknownField says what is wrong with a name that a section does not know.
func unknownField(name, path string, fields []field) (message, cure string) {
	inside := "a configuration"
	if path != "" {
		inside = path
	}
	message = "unknown field"
	if notYet(name) {
		return message, fmt.Sprintf("remove it: this version of Weir has no %q", name)
	}
	names := make([]string, len(fields))
	best, distance := "", 3 // more than two edits away is another word
	for i, f := range fields {
		names[i] = f.name
		if d := edits(name, f.name); d < distance {
			best, distance = f.name, d
		}
	}
	if best != "" {
		return message, fmt.Sprintf("did you mean %q?", best)
	}
	return message, fmt.Sprintf("remove it, or use one of those that %s has: %s", inside, strings.Join(names, ", "))
}

// edits is the Levenshtein distance of two short names, in bytes.
func edits(a, b string) int {
	if len(a) > nameBytesMax || len(b) > nameBytesMax {
		return nameBytesMax
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := diagonal
			if a[i-1] != b[j-1] {
				change++
			}
			diagonal = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
