package slide

import "fmt"

// Merge appends the join of older and newer to dst: union by fingerprint, the largest ts wins, entries <= horizon are
// dropped. It is associative, commutative and idempotent, byte for byte, commutes with dropping, and never promotes. nil
// and the empty value are neutral. It allocates; for many values, and to reuse buffers, use Merger.
func Merge(dst, older, newer []byte, horizon int64) ([]byte, error) {
	var m Merger
	m.Reset(horizon)
	if err := m.Add(older); err != nil {
		return dst, err
	}
	if err := m.Add(newer); err != nil {
		return dst, err
	}
	return m.Finish(dst), nil
}

// Merger joins any number of values, in any order, in one go: it collects them, then joins and sorts once. Call Reset
// before the first Add; reuse keeps its memory. Not for concurrent use.
type Merger struct {
	// Conflicts counts copies of one id that met with different ts since Reset. Copies meet again when values are merged
	// again, so it is a best-effort figure.
	Conflicts int

	horizon int64
	dense   bool
	root    []byte // index of the dense root among the values
	entries set
	joiner  joiner
}

// Reset forgets what was added. Entries <= horizon will be dropped (NoHorizon: none).
func (m *Merger) Reset(horizon int64) {
	m.horizon, m.dense, m.root, m.Conflicts = horizon, false, m.root[:0], 0
	m.entries.reset()
}

// Add takes one value in; it does not keep value. The error wraps ErrCorrupt or ErrTwoDense.
func (m *Merger) Add(value []byte) error {
	if !Dense(value) {
		return m.entries.appendTo(value, m.horizon)
	}
	if m.dense {
		return fmt.Errorf("cannot merge: got a second dense root of %d bytes: %w", len(value), ErrTwoDense)
	}
	index, pending, err := cutRoot(value)
	if err != nil {
		return err
	}
	if err := m.entries.appendTo(pending, m.horizon); err != nil {
		return err
	}
	m.dense, m.root = true, append(m.root[:0], index...)
	return nil
}

// Finish appends the join to dst: the empty value of one byte if nothing is left.
func (m *Merger) Finish(dst []byte) []byte {
	var narrow, wide int
	m.entries.narrow, narrow, _ = m.joiner.join(m.entries.narrow)
	m.entries.wide, wide, _ = m.joiner.join(m.entries.wide)
	m.Conflicts += narrow + wide
	m.joiner.sort(m.entries.narrow)
	m.joiner.sort(m.entries.wide)
	if m.dense {
		dst = append(dst, m.root...)
	}
	return appendSet(dst, &m.entries)
}

// operandNarrowMax is the most entries that AppendOperand writes with fingerprints of 32 bits: a key that gets more at
// once is about to be dense.
const operandNarrowMax = 64

// AppendOperand appends to dst a value that holds entries (any order, repeats allowed): what an epoch merges into a
// key. wide keeps fingerprints of 64 bits: set it for keys that are known to be dense (see Dense), where 32 bits would
// make false duplicates likely; more than 64 entries are always wide. No entries give the empty value, one byte. It
// reorders and may overwrite entries, and allocates only to grow dst.
func AppendOperand(dst []byte, entries []Entry, wide bool) []byte {
	var s set
	if wide || len(entries) > operandNarrowMax {
		s.wide, _, _ = join(entries)
	} else {
		for i := range entries {
			entries[i].FP &= narrowMask
		}
		s.narrow, _, _ = join(entries)
	}
	return appendSet(dst, &s)
}

// narrowMask is what a narrow entry keeps of a fingerprint.
const narrowMask = 1<<32 - 1
