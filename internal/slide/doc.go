// Package slide is the algebra of sliding counters: values that hold every window of a key at once, and join.
//
// A value is the set of a key's events, each a fingerprint and a time, and values merge by union; of two times for one
// fingerprint the larger stays. So it does not matter in which order, how grouped or how often events, operands and
// values meet. Counting, expiry and windows are matters of reading. Everything else that changes a value is a step that
// its one owner takes at a position of the log of its choosing. docs/design/0001-counter-algebra.md argues it,
// docs/format/counter-value.md draws the bytes, internal/oracle says in a few loops what is right.
//
// The life of a key:
//
//   - AppendOperand makes a value of what an epoch brought; the store merges it in (Merger), now or at a compaction, and
//     drops what has fallen to the lateness horizon on the way.
//   - Up to 64 events the value is sparse: the set itself. NeedsFold says when it has grown over that.
//   - Folder.Fold makes it dense: a root with a descriptor for each slice of time, and the slices under sub-keys.
//     Operands go on merging into the root, where they are pending until the next Fold moves them to their slices.
//   - Beyond Limits.DedupIDs events, Fold forgets the ids of the oldest and keeps panes: from then on answers are brackets.
//   - As events expire, Fold makes the key sparse again, and at last says that it can be deleted.
//
// At any moment Answerer.Answer reads it: exactly, unless a window's edge falls into a pane or an arrival may be a copy of
// a forgotten event. What is late and since when a counter is complete is the counter's Horizon.
//
// The files: set, join and merge are the sparse form and the union; root, raw and pane the dense form; arrivals tells new
// events from copies, for answer and fold alike; inspect is what a sweeper asks.
//
// Traps: 32-bit fingerprints meet 64-bit ones in arrivals.resolve and arrivals.match only, never in a merge, because
// equality of the low bits is not transitive. No code may let an entry at or below the horizon matter, whether or not its
// bytes are still there. All times are any int64: add and subtract by the saturating functions.
package slide
