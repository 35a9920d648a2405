package slide

import (
	"errors"
	"math"
)

// NoExpiry is the NextExpiry of an answer that never changes by itself.
const NoExpiry int64 = math.MaxInt64

// NoHorizon is a horizon that drops nothing.
const NoHorizon int64 = math.MinInt64

// CompleteAlways is the complete-since instant of a counter that has lost nothing.
const CompleteAlways int64 = math.MinInt64

var (
	// ErrCorrupt says that bytes which should hold a value or a slice do not. It wraps the detail.
	ErrCorrupt = errors.New("corrupt counter value")
	// ErrTwoDense says that two dense roots met in a merge. Owners Set roots and merge only operands, so this is a
	// mistake of the owner; taking one of the two would lose the arrivals that are pending in the other.
	ErrTwoDense = errors.New("two dense roots in one merge")
	// ErrSliceMissing is what a SliceReader returns (wrapped or bare) for a slice that is not stored. The algebra
	// passes it on: a root that names a missing slice is corrupt.
	ErrSliceMissing = errors.New("slice of a dense counter is missing")
)

// Entry is one accepted event of one key: when it happened and who it is.
type Entry struct {
	TS int64  // ms since the epoch, any int64
	FP uint64 // fingerprint of (segment, id): event.Hash.Lo. Narrow copies keep the low 32 bits
}

// Window is a rolling window: an answer at a counts a-Millis < ts <= a. Millis must be positive.
type Window struct {
	Name   string
	Millis int64
}

// WindowAnswer is the count of one window: Count <= truth <= Max.
type WindowAnswer struct {
	Count    int64
	Max      int64
	Exact    bool // Complete && Count == Max
	Complete bool // false: the window reaches before complete-since, and Max bounds only what is known (show null)
}

// Answer is what a key says at one instant. It is reused: filling it allocates only when Windows is too short.
type Answer struct {
	Windows    []WindowAnswer // in the order of the query's windows
	NextExpiry int64          // smallest instant > as-of at which an answer may change if nothing arrives, or NoExpiry
}

// Query says what is asked.
type Query struct {
	Windows       []Window
	AsOf          int64
	Horizon       int64 // entries at or below it are neither counted nor seen; NoHorizon for none
	CompleteSince int64 // see Horizon.CompleteSince
}

// Limits are the sizes at which a value changes its form. The zero value of each field means its default. All parts
// that read or fold one key must use the same limits; they are not stored.
type Limits struct {
	SparseMax  int // entries of a sparse value; more are promoted by Fold. Default 64
	SliceMax   int // entries of a raw slice, panes of a pane slice. Default 512
	PendingMin int // pending arrivals of a dense root that make NeedsFold true at least. Default 64
	PendingMax int // and at most. Default 4096
	DedupIDs   int // raw entries (ids) kept per key; older ones are forgotten into panes. Default 1,000,000
}

// SliceReader reads the slices of one dense key.
type SliceReader interface {
	// ReadSlice returns the bytes that Fold last wrote under id. They need to stay valid and unchanged only until the
	// next call. Missing: ErrSliceMissing.
	ReadSlice(id uint64) ([]byte, error)
}

// SliceWrite is one slice that Fold wants stored under the key's sub-key id (see AppendSliceID).
type SliceWrite struct {
	ID    uint64
	Value []byte
}

// Outcome is what the owner has to do with the root after Fold.
type Outcome uint8

const (
	Unchanged Outcome = iota // nothing to write
	Rewrite                  // Set the key to Folder.Root
	Delete                   // delete the key: nothing is left
)

// Defaults of Limits.
const (
	sparseMaxDefault  = 64
	sliceMaxDefault   = 512
	pendingMinDefault = 64
	pendingMaxDefault = 4096
	dedupIDsDefault   = 1_000_000
)

func (l Limits) withDefaults() Limits {
	for _, f := range [...]struct {
		field *int
		value int
	}{
		{&l.SparseMax, sparseMaxDefault}, {&l.SliceMax, sliceMaxDefault}, {&l.PendingMin, pendingMinDefault},
		{&l.PendingMax, pendingMaxDefault}, {&l.DedupIDs, dedupIDsDefault},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	return l
}

// pendingShare makes a fold, which searches all ids of a key, cost each arrival the search of at most this many ids
// while PendingMax does not limit it.
const pendingShare = 8

// pending returns the number of pending arrivals at which a key of ids raw entries is folded.
func (l Limits) pending(ids int64) int {
	return min(max(l.PendingMin, int(ids/pendingShare)), l.PendingMax)
}

const (
	// sliceGrowth is how often SliceMax fits into the largest raw slices.
	sliceGrowth = 16
	// slicesAim is the number of raw slices beyond which they grow rather than become more: a search for ids reads them
	// all, and each merge of a root rewrites its descriptors.
	slicesAim = 128
)

// slice returns the most entries of a raw slice of a key that has ids of them.
func (l Limits) slice(ids int) int {
	return min(max(l.SliceMax, ids/slicesAim), l.SliceMax*sliceGrowth)
}

// demote is the number of entries at which a dense key becomes sparse again: half the limit, so that keys about the
// limit do not change form at every fold.
func (l Limits) demote() int { return l.SparseMax / 2 }

// Combine adds other, another partition's answer to the same query, to dst: counts add, Exact and Complete hold if both
// do, the nearer expiry is taken. A dst without Windows becomes a copy.
func Combine(dst, other *Answer) {
	if len(dst.Windows) == 0 {
		dst.Windows = append(dst.Windows, other.Windows...)
		dst.NextExpiry = other.NextExpiry
		return
	}
	for i := range min(len(dst.Windows), len(other.Windows)) {
		d, o := &dst.Windows[i], &other.Windows[i]
		d.Count += o.Count
		d.Max += o.Max
		d.Exact = d.Exact && o.Exact
		d.Complete = d.Complete && o.Complete
	}
	dst.NextExpiry = min(dst.NextExpiry, other.NextExpiry)
}
