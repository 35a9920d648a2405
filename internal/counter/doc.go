// Package counter counts the events of streams, one sliding counter per definition, and answers what was counted.
//
// Each partition of a stream has one loop. It reads the event log up to its durable end, a frame at a time; for every
// event and every counter of the stream it decides whether the counter counts it (where), under which key, and whether it
// is too late; what is left are arrivals, which it adds to the partition's delta table in one go. A committer turns the
// table into a batch every epoch. Both leave the keeping to package state, the arithmetic to package slide.
//
//	log ──frame──▶ decode ▸ where ▸ key ──batch──▶ lane: accept ▸ add ──epoch──▶ Pebble, with the log's offset
//	                                                 ▲
//	                                              Lookup
//
// Because the log is replayed from the offset that lies in the same batch as the counts, a crash changes no count.
//
// A counter is local when its key begins with what the stream is partitioned by: then all its events of one key are in one
// partition, and a look-up asks only that one. Any other counter is counted in every partition and added up on reading.
//
// A new counter, or one whose meaning changed, is built from the start of the log by a builder, which has a lane of its
// own and follows behind the loop. When it is close, the loop pauses for a moment, the builder catches up with the loop's
// very offset, and the loop takes the counter over. Until then its look-ups are refused with a *BuildingError.
package counter
