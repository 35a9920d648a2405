package slide

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Horizon is what one counter knows about time in one partition: which events are late, and since when it holds
// everything. It is event time only, a pure function of a prefix of the log; apart from Late and from what arrives
// beyond Span, the order of events does not matter.
type Horizon struct {
	Newest int64 // largest accepted ts that H follows; valid if Seen
	Oldest int64 // smallest ts ever seen, accepted or late; valid if Seen
	Seen   bool
	Late   int64 // events that were not accepted
	Span   int64 // longest window + lateness in ms: how far H lies behind Newest
}

// NewHorizon returns the horizon of a counter that has seen nothing. Both in ms, neither negative.
func NewHorizon(longestWindow, lateness int64) Horizon {
	return Horizon{Span: addSaturating(longestWindow, lateness)}
}

// H returns the lateness horizon: entries at or below it are dropped. It never falls. NoHorizon before the first event.
func (h *Horizon) H() int64 {
	if !h.Seen {
		return NoHorizon
	}
	return subSaturating(h.Newest, h.Span)
}

// Accept takes an event in. It is false if the event is late, ts <= H; an event at math.MinInt64 always is.
func (h *Horizon) Accept(ts int64) bool {
	late := ts <= h.H()
	if !h.Seen && !late {
		h.Newest, h.Oldest, h.Seen = ts, ts, true
		return true
	}
	if h.Seen {
		h.Oldest = min(h.Oldest, ts)
	}
	if late {
		h.Late++
		return false
	}
	h.Newest = max(h.Newest, ts)
	return true
}

// AcceptAhead is Accept for an event that claims to come from the future, ts > latest: it counts, but H does not follow it,
// or one wrong clock would make everybody else late. Where it is the first event, H follows latest.
func (h *Horizon) AcceptAhead(ts, latest int64) bool {
	if !h.Seen {
		return h.Accept(latest)
	}
	h.Oldest = min(h.Oldest, ts)
	if ts <= h.H() {
		h.Late++
		return false
	}
	return true
}

// CompleteSince returns the instant since which the counter holds everything: CompleteAlways as long as nothing it saw
// is at or below H and nothing was missing. trimmedMax is the largest ts among events that had gone from the log before
// this counter could read them (math.MinInt64: none).
func (h *Horizon) CompleteSince(trimmedMax int64) int64 {
	horizon := h.H()
	if trimmedMax == math.MinInt64 && (!h.Seen || h.Oldest > horizon) {
		return CompleteAlways
	}
	return max(addSaturating(horizon, 1), addSaturating(trimmedMax, 1))
}

const (
	horizonVersion = 1
	flagSeen       = 0x01
)

// AppendHorizon appends h for the counter's marker, which carries the checksum.
func AppendHorizon(dst []byte, h *Horizon) []byte {
	flags := byte(0)
	if h.Seen {
		flags |= flagSeen
	}
	dst = append(dst, horizonVersion, flags)
	if h.Seen {
		dst = binary.AppendVarint(dst, h.Newest)
		dst = binary.AppendUvarint(dst, uint64(h.Newest)-uint64(h.Oldest))
	}
	dst = binary.AppendUvarint(dst, uint64(h.Late))
	return binary.AppendUvarint(dst, uint64(h.Span))
}

// DecodeHorizon reads what AppendHorizon wrote and returns what follows it. The error wraps ErrCorrupt.
func DecodeHorizon(src []byte) (h Horizon, tail []byte, err error) {
	if len(src) < 2 || src[0] != horizonVersion || src[1]&^flagSeen != 0 {
		return h, nil, fmt.Errorf("%w: not a horizon of a known version, %d bytes", ErrCorrupt, len(src))
	}
	r := reader{src: src[2:]}
	if h.Seen = src[1]&flagSeen != 0; h.Seen {
		h.Newest = r.varint()
		older, tail, ok := cutOlder(h.Newest, r.src)
		h.Oldest, r.src, r.bad = older, tail, r.bad || !ok
	}
	late, span := r.uvarint(), r.uvarint()
	if r.bad || late > math.MaxInt64 || span > math.MaxInt64 {
		return Horizon{}, nil, fmt.Errorf("%w: horizon in %d bytes", ErrCorrupt, len(src))
	}
	h.Late, h.Span = int64(late), int64(span)
	return h, r.src, nil
}
