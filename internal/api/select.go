package api

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/shard"
)

const (
	limitDefault = 1000
	limitNone    = math.MaxInt64
	offsetEnd    = "end" // as an offset: behind what is stored now
)

// eventParameters are those of GET /v1/streams/{stream}/events.
var eventParameters = [...]string{"segment", "partition", "offset", "next", "from", "to", "limit", "follow"}

// selection is which events of a stream are wanted, and where each of its partitions goes on.
type selection struct {
	partitions []int   // in the order in which they are read
	next       []int64 // by partition: the offset to read next; only those in partitions mean something
	segment    []byte  // only events of this segment; nil: of all
	from, to   int64   // source_ts, ms: from <= ts < to
	limit      int64   // events
	follow     bool
}

func (s *selection) timed() bool { return s.from != math.MinInt64 || s.to != math.MaxInt64 }

// parseSelection reads and checks the parameters.
func parseSelection(rawQuery string, log *eventlog.Log) (*selection, *failure) {
	p, f := parseParameters(rawQuery, eventParameters[:], "")
	if f != nil {
		return nil, f
	}
	s := &selection{next: make([]int64, log.Partitions())}
	if s.follow, f = p.boolean("follow"); f != nil {
		return nil, f
	}
	fallback := int64(limitDefault)
	if s.follow {
		fallback = limitNone
	}
	if s.limit, f = p.integer("limit", 1, fallback); f != nil {
		return nil, f
	}
	if s.from, f = p.instant("from", math.MinInt64); f != nil {
		return nil, f
	}
	if s.to, f = p.instant("to", math.MaxInt64); f != nil {
		return nil, f
	}
	if s.from > s.to {
		return nil, badArgument("to", p.get("to"), "the range ends before it begins: got from="+p.get("from")+" and to="+p.get("to"), "from is inclusive, to exclusive")
	}
	if f := s.parsePlace(p, log); f != nil {
		return nil, f
	}
	return s, nil
}

// parsePlace reads which partitions are wanted, and from where.
func (s *selection) parsePlace(p parameters, log *eventlog.Log) *failure {
	count := log.Partitions()
	switch {
	case p.has("segment") && p.has("partition"):
		return badArgument("partition", p.get("partition"), "cannot use segment and partition together", "a segment lies in one partition: leave partition out")
	case p.has("segment"):
		s.segment = []byte(p.get("segment"))
		s.partitions = []int{shard.Of(s.segment, count)}
	case p.has("partition"):
		n, f := p.integer("partition", 0, 0)
		if f == nil && n >= int64(count) {
			f = badArgument("partition", p.get("partition"), "there is no such partition: want 0 to "+strconv.Itoa(count-1), "")
		}
		if f != nil {
			return f
		}
		s.partitions = []int{int(n)}
	default:
		for i := range count {
			s.partitions = append(s.partitions, i)
		}
	}
	switch {
	case p.has("offset") && p.has("next"):
		return badArgument("next", p.get("next"), "cannot use offset and next together", "")
	case p.has("offset"):
		return s.parseOffset(p, log)
	case p.has("next"):
		return s.parseNext(p.get("next"))
	}
	return nil
}

func (s *selection) parseOffset(p parameters, log *eventlog.Log) *failure {
	if p.get("offset") == offsetEnd {
		for _, i := range s.partitions {
			s.next[i] = log.Partition(i).Frontiers().Durable
		}
		return nil
	}
	if !p.has("segment") && !p.has("partition") {
		return badArgument("offset", p.get("offset"), "an offset belongs to one partition", "add partition= or segment=")
	}
	offset, err := strconv.ParseInt(p.get("offset"), 10, 64)
	if err != nil || offset < 0 {
		return badArgument("offset", p.get("offset"), "cannot use offset: want an integer of at least 0, or "+offsetEnd, "")
	}
	s.next[s.partitions[0]] = offset
	return nil
}

// parseNext reads what Weir-Next said: partition.offset, separated by commas. A partition that is not named is read from its
// first event.
func (s *selection) parseNext(text string) *failure {
	bad := func(message string) *failure {
		return badArgument("next", text, message, "send the Weir-Next trailer of an earlier reply, with the same segment or partition")
	}
	seen := make([]bool, len(s.next))
	for part := range strings.SplitSeq(text, ",") {
		left, right, ok := strings.Cut(part, ".")
		partition, errPartition := strconv.Atoi(left)
		offset, errOffset := strconv.ParseInt(right, 10, 64)
		switch {
		case !ok || errPartition != nil || errOffset != nil || offset < 0 || partition < 0:
			return bad("cannot use next: want partition.offset, separated by commas")
		case partition >= len(s.next) || seen[partition]:
			return bad("cannot use next: it names partition " + left + ", which is not there or named twice")
		case len(s.partitions) == 1 && s.partitions[0] != partition:
			return bad("cannot use next: it names partition " + left + ", and this request reads partition " + strconv.Itoa(s.partitions[0]))
		}
		seen[partition] = true
		s.next[partition] = offset
	}
	return nil
}

// resume writes the form that parseNext reads.
func (s *selection) resume() string {
	var dst []byte
	for n, i := range s.partitions {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(dst, '.')
		dst = strconv.AppendInt(dst, s.next[i], 10)
	}
	return string(dst)
}

// setSelectionHeaders prepares the reply, whose trailer says where to go on.
func setSelectionHeaders(h http.Header) {
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
	h.Set("Trailer", trailerNext)
}
