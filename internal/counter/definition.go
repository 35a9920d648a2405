package counter

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/path"
	"github.com/weirstream/weir/internal/predicate"
	"github.com/weirstream/weir/internal/slide"
	"github.com/weirstream/weir/internal/state"
)

// Bounds of a definition.
const (
	WindowMSMin    = 1000
	WindowMSMax    = 400 * 24 * 3600 * 1000
	windowsMax     = 64
	dedupIDsMax    = 1 << 30
	latenessMSMax  = WindowMSMax
	partitionKey   = "partitionkey" // what a stream without a segment path is partitioned by
	segmentKey     = "segment"      // the path to what an event was routed by, whatever that is
	measureCount   = "count"
	definitionForm = 1 // version of what definitionBytes writes
)

// Definition says what one counter counts.
type Definition struct {
	Name       string
	Stream     string
	Where      string         // expression; empty: every event
	Key        []string       // paths of the key's parts
	Windows    []slide.Window // rolling, in the order of the answers
	LatenessMS int64          // how far behind the newest event one may be, on top of the longest window
	DedupIDs   int            // ids remembered per key at most; 0: 1,000,000
}

func (d *Definition) longest() int64 {
	longest := int64(0)
	for _, w := range d.Windows {
		longest = max(longest, w.Millis)
	}
	return longest
}

func (d *Definition) validate() error {
	switch {
	case d.Name == "":
		return fmt.Errorf("cannot define a counter: got no name; want one")
	case len(d.Key) < 1 || len(d.Key) > state.KeyPartsMax:
		return fmt.Errorf("cannot define counter %s: got %d key parts; want 1..%d", d.Name, len(d.Key), state.KeyPartsMax)
	case len(d.Windows) < 1 || len(d.Windows) > windowsMax:
		return fmt.Errorf("cannot define counter %s: got %d windows; want 1..%d", d.Name, len(d.Windows), windowsMax)
	case d.LatenessMS < 0 || d.LatenessMS > latenessMSMax:
		return fmt.Errorf("cannot define counter %s: got a lateness of %d ms; want 0..%d", d.Name, d.LatenessMS, int64(latenessMSMax))
	case d.DedupIDs < 0 || d.DedupIDs > dedupIDsMax:
		return fmt.Errorf("cannot define counter %s: got %d dedup ids; want 0..%d", d.Name, d.DedupIDs, dedupIDsMax)
	}
	for i, w := range d.Windows {
		if w.Millis < WindowMSMin || w.Millis > WindowMSMax {
			return fmt.Errorf("cannot define counter %s: got a window of %d ms; want %d..%d", d.Name, w.Millis, WindowMSMin, int64(WindowMSMax))
		}
		if slices.ContainsFunc(d.Windows[:i], func(o slide.Window) bool { return o.Name == w.Name || o.Millis == w.Millis }) {
			return fmt.Errorf("cannot define counter %s: got window %s twice; want each once", d.Name, w.Name)
		}
	}
	return nil
}

// bytes returns what decides whether stored counts are still those of d: two definitions with equal bytes count the same
// events under the same keys. Windows, lateness and the number of remembered ids are not in it: they say how long counts
// are kept, not what is counted.
func (d *Definition) bytes() []byte {
	out := []byte{definitionForm}
	for _, text := range append([]string{measureCount, d.Where}, d.Key...) {
		out = append(binary.AppendUvarint(out, uint64(len(text))), text...)
	}
	return out
}

// plan is a definition made ready to run.
type plan struct {
	def        Definition
	definition []byte
	where      *predicate.Predicate // nil: every event
	key        []path.Path
	local      bool // a key's events are all in one partition
}

func newPlan(def Definition, segment string) (*plan, error) {
	if err := def.validate(); err != nil {
		return nil, err
	}
	p := &plan{def: def, definition: def.bytes()}
	for i, text := range def.Key {
		part, err := path.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("cannot define counter %s: key part %d: %w", def.Name, i+1, err)
		}
		p.key = append(p.key, part)
	}
	if def.Where != "" {
		where, err := predicate.Compile(def.Where)
		if err != nil {
			return nil, fmt.Errorf("cannot define counter %s: where: %w", def.Name, err)
		}
		p.where = where
	}
	if segment == "" {
		segment = partitionKey
	}
	routed, err := path.Parse(segment)
	if err != nil {
		return nil, fmt.Errorf("cannot define counter %s: segment of its stream: %w", def.Name, err)
	}
	first := p.key[0].String()
	p.local = first == routed.String() || first == segmentKey
	return p, nil
}
