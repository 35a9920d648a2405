package config

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Mistake is one thing that is wrong, where, and what to do about it. Warnings have the same form.
type Mistake struct {
	// Line and Column start at 1; both are 0 when the value did not come from the file.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Path is the setting, such as streams.clicks.ring.bytes or counters[2].windows[0]; empty: the file as a whole.
	Path string `json:"path,omitempty"`
	// Excerpt is the line of the file, or the flag or variable with its value; empty where there is none to show.
	Excerpt string `json:"excerpt,omitempty"`
	Message string `json:"message"`
	Cure    string `json:"cure"`
}

// Error holds every mistake of one configuration, in the order of the file; those of flags and environment come first.
type Error struct {
	// File is the path that was given; empty when there was no file.
	File     string
	Mistakes []Mistake
}

const (
	excerptRunesMax = 120
	shownMax        = 50 // mistakes that Error shows; nobody reads more at once
)

// Error shows the mistakes with their excerpts and cures, the first 50 if there are more.
func (e *Error) Error() string {
	var b strings.Builder
	noun := "mistakes"
	if len(e.Mistakes) == 1 {
		noun = "mistake"
	}
	fmt.Fprintf(&b, "cannot use the configuration: %d %s\n", len(e.Mistakes), noun)
	for _, m := range e.Mistakes[:min(len(e.Mistakes), shownMax)] {
		b.WriteByte('\n')
		b.WriteString(m.Format(e.File))
	}
	if more := len(e.Mistakes) - shownMax; more > 0 {
		fmt.Fprintf(&b, "\nand %d more\n", more)
	}
	return strings.TrimRight(b.String(), "\n")
}

// Format shows the mistake on several lines, each ended by a newline: place and message, excerpt, cure.
func (m Mistake) Format(file string) string {
	var b strings.Builder
	if m.Line > 0 {
		fmt.Fprintf(&b, "%s:%d:%d: ", file, m.Line, m.Column)
	} else if file != "" && m.Excerpt == "" {
		b.WriteString(file + ": ")
	}
	if m.Path != "" {
		b.WriteString(m.Path + ": ")
	}
	b.WriteString(m.Message + "\n")
	if m.Excerpt != "" {
		m.writeExcerpt(&b)
	}
	fmt.Fprintf(&b, "    cure: %s\n", m.Cure)
	return b.String()
}

// writeExcerpt shows the line with a caret under the column. Of a long line it shows what is around the column.
func (m Mistake) writeExcerpt(b *strings.Builder) {
	if m.Line == 0 {
		fmt.Fprintf(b, "    %s\n", m.Excerpt)
		return
	}
	line, column := []rune(m.Excerpt), m.Column-1
	if from := min(column-excerptRunesMax/2, len(line)-excerptRunesMax); from > 0 {
		line, column = append([]rune("…"), line[from:]...), column-from+1
	}
	if len(line) > excerptRunesMax {
		line = append(line[:excerptRunesMax:excerptRunesMax], '…')
	}
	number := strconv.Itoa(m.Line)
	fmt.Fprintf(b, "    %s | %s\n    %*s   ", number, string(line), len(number), "")
	for _, r := range line[:min(column, len(line))] {
		if r != '\t' { // a tab stays one, so that the caret stays under its character
			r = ' '
		}
		b.WriteRune(r)
	}
	b.WriteString("^\n")
}

// sortMistakes orders by place; what was found first stays first where places are equal.
func sortMistakes(list []Mistake) {
	sort.SliceStable(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
}
