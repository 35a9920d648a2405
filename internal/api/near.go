package api

import (
	"slices"
	"strings"
)

const (
	nearNamesMax    = 3  // how many names a hint proposes
	nearListMax     = 8  // how many names a hint lists where none is close
	nearBytesMax    = 64 // longer words are not compared: the distance costs the product of the lengths
	nearShareOfName = 2  // a name is close when fewer than 1/nearShareOfName of its bytes differ
)

// near returns those of names that word was probably meant to be, closest first.
func near(word string, names []string) []string {
	if len(word) > nearBytesMax {
		return nil
	}
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	for _, name := range names {
		if len(name) > nearBytesMax {
			continue
		}
		d := distance(strings.ToLower(word), name)
		if d*nearShareOfName <= max(len(word), len(name)) || (len(word) > 1 && strings.Contains(name, word)) {
			found = append(found, candidate{name, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	var out []string
	for _, c := range found[:min(len(found), nearNamesMax)] {
		out = append(out, c.name)
	}
	return out
}

// hintOf proposes names for word: the close ones, else all of them as far as they fit.
func hintOf(word, what string, names []string) string {
	if len(names) == 0 {
		return "there is no " + what + " at all"
	}
	if close := near(word, names); len(close) > 0 {
		return "did you mean " + strings.Join(close, ", ") + "?"
	}
	listed := strings.Join(names[:min(len(names), nearListMax)], ", ")
	if len(names) > nearListMax {
		listed += ", …"
	}
	return "there is " + listed
}

// distance is the number of bytes to insert, delete, replace or swap with their neighbour that turns a into b (optimal string
// alignment).
func distance(a, b string) int {
	var rows [3][nearBytesMax + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := 0; j <= len(b); j++ {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
