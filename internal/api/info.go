package api

import (
	"math"
	"net/http"

	"github.com/weirstream/weir/internal/eventlog"
)

// getStreams lists the streams as they are configured.
func (h *Handler) getStreams(c *call) *failure {
	if _, f := parseParameters(c.r.URL.RawQuery, nil, ""); f != nil {
		return f
	}
	o := object{empty: true}
	o.open('{')
	o.key("streams")
	o.open('[')
	for _, s := range h.backend.Streams() {
		o.item()
		o.open('{')
		o.describeStream(s)
		o.close('}')
	}
	o.close(']')
	o.close('}')
	writeJSON(c.w, http.StatusOK, append(o.dst, '\n'))
	return nil
}

func (o *object) describeStream(s *Stream) {
	o.str("name", s.Name)
	o.int("partition_count", int64(s.Rules.Partitions))
	segment := s.Segment
	if segment == "" {
		segment = "partitionkey"
	}
	o.str("segment", segment)
	o.int("retention_ms", s.Retention.Milliseconds())
}

// getInfo says how the node is: what the page shows, and what a person asks first.
func (h *Handler) getInfo(c *call) *failure {
	if _, f := parseParameters(c.r.URL.RawQuery, nil, ""); f != nil {
		return f
	}
	o := object{empty: true}
	o.open('{')
	o.node(h)
	o.key("streams")
	o.open('[')
	for _, s := range h.backend.Streams() {
		o.item()
		o.open('{')
		o.stream(s)
		o.close('}')
	}
	o.close(']')
	o.key("counters")
	o.open('[')
	for _, info := range h.backend.Counters() {
		o.item()
		o.open('{')
		o.counterInfo(&info)
		o.close('}')
	}
	o.close(']')
	o.close('}')
	writeJSON(c.w, http.StatusOK, append(o.dst, '\n'))
	return nil
}

func (o *object) node(h *Handler) {
	node, now := h.backend.Node(), h.clock.NowMS()
	status, ready := h.backend.Ready()
	if ready {
		status = "ready"
	}
	o.str("version", node.Version)
	o.str("status", status)
	o.int("now", now)
	o.int("uptime_ms", max(0, now-node.StartedMS))
	o.key("memory")
	o.open('{')
	o.int("limit_bytes", node.MemoryLimitBytes)
	o.int("used_bytes", node.MemoryUsedBytes)
	o.close('}')
	o.key("disk")
	o.open('{')
	o.int("used_bytes", node.DiskUsedBytes)
	o.int("free_bytes", node.DiskFreeBytes)
	o.bool("full", node.DiskFull)
	o.close('}')
}

// stream writes a stream with its partitions. Counts are since the start of the process.
func (o *object) stream(s *Stream) {
	o.describeStream(s)
	var all []eventlog.Stats
	if s.Log != nil { // a stream that recovers has none yet
		for i := range s.Log.Partitions() {
			all = append(all, s.Log.Partition(i).Stats())
		}
	}
	var accepted, duplicates, overloads int64
	for i := range all {
		accepted += all[i].Events
		duplicates += all[i].Duplicates
		overloads += all[i].Overloads
	}
	o.int("accepted", accepted)
	o.int("duplicates", duplicates)
	o.int("rejected", s.Rejected.Total())
	o.int("overloads", overloads)
	o.key("partitions")
	o.open('[')
	for i := range all {
		o.item()
		o.open('{')
		o.partition(i, &all[i])
		o.close('}')
	}
	o.close(']')
}

func (o *object) partition(i int, s *eventlog.Stats) {
	f := s.Frontiers
	o.int("partition", int64(i))
	o.int("first", f.First)
	o.int("appended", f.Appended)
	o.int("durable", f.Durable)
	o.int("warm", f.Warm)
	o.int("queue_bytes", s.QueueBytes)
	o.int("spills", s.Spills)
	o.int("remembered_ids", int64(s.DedupIDs))
	o.key("tiers")
	o.open('{')
	o.tier("ring", s.RingBytes, s.RingFirst, f.Appended)
	o.tier("warm", s.WarmBytes, f.First, f.Warm)
	o.close('}')
}

// tier writes what one tier holds: offsets from first up to but without end.
func (o *object) tier(name string, bytes, first, end int64) {
	o.key(name)
	o.open('{')
	o.int("bytes", bytes)
	o.int("first", first)
	o.int("end", max(first, end))
	o.close('}')
}

// instant writes ms, or null for an instant that is not known.
func (o *object) instant(name string, ms int64) {
	if ms == math.MinInt64 || ms == math.MaxInt64 {
		o.null(name)
		return
	}
	o.int(name, ms)
}
