package slide

// AppendOperand appends a value that holds entries (in any order, repeats allowed) at the end of dst: what an epoch
// merges into a key. wide keeps fingerprints of 64 bits: set it for keys known to be dense (see Dense), where 32 bits
// would make false duplicates likely; more than 64 entries are always wide. No entries: the empty value, one byte.
// entries is sorted in place. Allocates only to grow dst.
func AppendOperand(dst []byte, entries []Entry, wide bool) []byte { panic("coming") }

// Merge appends the join of older and newer to dst: union by fingerprint, the largest ts wins, entries <= horizon
// are dropped. Associative, commutative, idempotent, byte for byte. Never promotes. nil and the empty value are the
// neutral element. For more than two, and to reuse buffers, use Merger.
func Merge(dst, older, newer []byte, horizon int64) ([]byte, error) { panic("coming") }

// Merger joins any number of values, in any order, in one go. Zero value is ready; reuse keeps its memory. Not for
// concurrent use.
type Merger struct{ Conflicts int } // Conflicts: copies met since Reset that differ in ts (best effort metric)

// Reset forgets what was added. Entries <= horizon will be dropped.
func (m *Merger) Reset(horizon int64) {}

// Add takes one value in; it does not keep value. ErrCorrupt, ErrTwoDense.
func (m *Merger) Add(value []byte) error { panic("coming") }

// Finish appends the join to dst.
func (m *Merger) Finish(dst []byte) []byte { panic("coming") }

// Empty says that value (nil included) holds nothing: the owner may delete the key.
func Empty(value []byte) bool { panic("coming") }

// Dense says that value is a dense root: it has slices, and its operands should be wide.
func Dense(value []byte) bool { panic("coming") }

// NeedsFold says that the owner should Fold value at its next definite position of the log: a sparse value over
// limits.SparseMax entries, or a dense root whose pending arrivals are too many. It reads the header only.
func NeedsFold(value []byte, limits Limits) bool { panic("coming") }

// NewestTS returns the largest ts in value; ok is false where it holds none.
func NewestTS(value []byte) (ts int64, ok bool, err error) { panic("coming") }

// LiveAfter counts entries of value above horizon and not above it (dense: slices that straddle the horizon count as
// live, forgotten panes included), for a sweeper that decides whether to leave, fold (rewrite) or delete a key.
func LiveAfter(value []byte, horizon int64) (live, dead int, err error) { panic("coming") }

// AppendSliceID appends the part that a slice's sub-key has behind its key: 8 bytes, big endian.
func AppendSliceID(dst []byte, id uint64) []byte { panic("coming") }

// AppendSlices appends the ids of all slices of a root (none for a sparse one): what goes when the key is erased.
func AppendSlices(dst []uint64, value []byte) ([]uint64, error) { panic("coming") }

// Folder does the owner's step on a key at a definite position of the log. Zero value is ready; reuse keeps memory.
// After Fold, the fields hold what to write, in one atomic batch; they are valid until the next Fold.
type Folder struct {
	Root       []byte       // for Rewrite: Set, never merge
	Writes     []SliceWrite // slices to Set
	Deletes    []uint64     // slices to delete
	Conflicts  int          // copies of one id that differed in ts
	Duplicates int          // copies that were equal
}

// Fold promotes a sparse value over its limit, merges pending arrivals into slices, drops what is <= horizon, forgets
// the oldest ids beyond DedupIDs into panes, coarsens panes, demotes a dense key of few entries, and says Delete when
// nothing is left. slices may be nil for a sparse value.
func (f *Folder) Fold(value []byte, slices SliceReader, horizon int64, limits Limits) (Outcome, error) {
	panic("coming")
}

// Answerer answers queries. Zero value is ready; reuse keeps its memory, and a sparse value then allocates nothing. Not
// for concurrent use (pool it).
type Answerer struct{}

// Answer fills a with what value (nil: an unknown key) says to q. extra are arrivals that are not in value yet (or are
// again); it is not modified. slices may be nil for a sparse value.
func (s *Answerer) Answer(value []byte, slices SliceReader, extra []Entry, q *Query, a *Answer) error {
	panic("coming")
}

// Combine adds other (another partition's answer to the same query) to dst: counts add, Exact and Complete hold if both
// do, the nearer expiry counts. An empty dst (no Windows) becomes a copy.
func Combine(dst, other *Answer) { panic("coming") }

// Horizon is what one counter knows about its time in one partition: a pure function of the accepted and late events
// of a log prefix.
type Horizon struct {
	Newest int64 // largest accepted ts; valid if Seen
	Oldest int64 // smallest ts ever seen, accepted or late; valid if Seen
	Seen   bool
	Late   int64 // events that were not accepted
	Span   int64 // longest window + lateness, ms, saturating
}

// NewHorizon returns the horizon of a counter that has seen nothing. All ms, not negative.
func NewHorizon(longestWindow, lateness int64) Horizon { panic("coming") }

// H returns the lateness horizon: entries at or below it are dropped. NoHorizon before the first event.
func (h *Horizon) H() int64 { panic("coming") }

// Accept takes an event in: false if it is late (ts <= H).
func (h *Horizon) Accept(ts int64) bool { panic("coming") }

// CompleteSince returns the instant since which the counter holds everything, CompleteAlways if it always did.
// trimmedMax is the largest ts among events that were gone from the log before this counter read them (math.MinInt64:
// none).
func (h *Horizon) CompleteSince(trimmedMax int64) int64 { panic("coming") }

// AppendHorizon appends h's state for the counter's marker.
func AppendHorizon(dst []byte, h *Horizon) []byte { panic("coming") }

// DecodeHorizon reads what AppendHorizon wrote. ErrCorrupt.
func DecodeHorizon(src []byte) (h Horizon, tail []byte, err error) { panic("coming") }
