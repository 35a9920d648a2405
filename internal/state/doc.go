// Package state keeps the counters of one partition: delta tables in memory, in front of an LSM on disk, cut into epochs.
//
// The idea is that counting never reads. An event adds one arrival to a hash table (the open delta table); every epoch
// that table is frozen, another takes its place, and the frozen one becomes one Pebble batch of merge operands, sorted
// by key, with the marker in it: the log offset up to which the batch, and every batch before it, has counted. The
// operands join by themselves (package slide), so what a key holds is only put together when somebody looks, or when a
// compaction passes by.
//
//	Add ──▶ open table ──Commit──▶ frozen table ──one batch, marker inside──▶ Pebble, without a WAL
//	Lookup ◀── open ∪ frozen ∪ (look-up cache, else Pebble as of the view)
//
// There is no write-ahead log, because the event log is one: a batch is lost whole or kept whole, batches are lost from
// the end only, and whatever was lost is counted again from the marker that survived. So the invariant is
//
//	persisted marker <= committed marker <= durable end of the event log
//
// and a Lane is told only of events that are durable.
//
// Some work needs to read a key and write it back at a definite position of the log: folding values that grew too long,
// and dropping those that nobody can ask for any more. Commit does it, between the operands of its epoch, because it is
// the only writer: a key that may need folding is found by counting arrivals in a small array, a dead one by a sweeper
// that goes through all keys, a few in every epoch.
//
// A look-up has to see one moment: a base and exactly the arrivals that are not in it. A view is that base. It is a Pebble
// snapshot, taken when a frozen table is dropped, under the same lock; whoever holds that lock for reading sees tables and
// view agree, and may go on reading the view after letting go of it. docs/format/state.md draws what lies on disk,
// docs/design/0003-counter-state.md says why.
package state
