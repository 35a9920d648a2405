// Package path says where in an event a value is found.
package path

import "github.com/weirstream/weir/internal/event"

// Kind is what a path leads to in one event.
type Kind uint8

const (
	Missing Kind = iota // nothing there
	Null                // JSON null
	String              // raw holds the string: see Raw
	Number              // a JSON number
	Bool                // true or false
	Object              // a JSON object
	Array               // a JSON array
)

// Path leads to one value of an event. The zero Path leads nowhere: IsZero.
type Path struct{ text string }

// Parse reads "type", "partitionkey" or "data.a.b".
func Parse(s string) (Path, error) { return Path{text: s}, nil }

// String returns the path as it was written.
func (p Path) String() string { return p.text }

// IsZero tells the zero Path.
func (p Path) IsZero() bool { return p.text == "" }

// AppendKeyPart appends the text of the value as part of a counter's key. ok is false for missing, null, object, array.
func (p Path) AppendKeyPart(dst []byte, e *event.Event) (out []byte, ok bool) { return dst, false }
