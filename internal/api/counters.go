package api

import (
	"net/http"

	"github.com/weirstream/weir/internal/counter"
	"github.com/weirstream/weir/internal/slide"
)

// The states of a counter.
const (
	stateReady    = "ready"
	stateBuilding = "building"
)

// getCounters lists the counters as they are configured, and whether they answer.
func (h *Handler) getCounters(c *call) *failure {
	if _, f := parseParameters(c.r.URL.RawQuery, nil, ""); f != nil {
		return f
	}
	o := object{empty: true}
	o.open('{')
	o.key("counters")
	o.open('[')
	for _, info := range h.backend.Counters() {
		def := &info.Definition
		o.item()
		o.open('{')
		o.str("name", def.Name)
		o.str("stream", def.Stream)
		o.str("where", def.Where)
		o.strings("key", def.Key)
		o.strings("windows", windowNames(def.Windows))
		o.str("measure", "count")
		o.int("lateness_ms", def.LatenessMS)
		o.bool("local", info.Local)
		o.counterState(&info)
		o.close('}')
	}
	o.close(']')
	o.close('}')
	writeJSON(c.w, http.StatusOK, append(o.dst, '\n'))
	return nil
}

func (o *object) counterState(info *counter.Info) {
	if info.Building {
		o.str("state", stateBuilding)
		o.float("progress", info.Progress, progressDigits)
		return
	}
	o.str("state", stateReady)
	o.float("progress", 1, progressDigits)
}

const progressDigits = 4

// counterInfo writes a counter with its partitions. Counts are since the start of the process, but late, which is the
// counter's own.
func (o *object) counterInfo(info *counter.Info) {
	var counted, late, where, key, failed, disk, lag int64
	horizon, newest, completeSince := slide.NoHorizon, slide.NoHorizon, slide.CompleteAlways
	for i := range info.Partitions {
		p := &info.Partitions[i]
		counted, late, where = counted+p.Counted, late+p.Standing.Late, where+p.SkippedWhere
		key, failed = key+p.SkippedKey, failed+p.WhereErrors
		disk, lag = disk+p.DiskBytes, lag+p.Lag
		horizon = max(horizon, p.Standing.H)
		completeSince = max(completeSince, p.Standing.CompleteSince)
		if p.Standing.Seen {
			newest = max(newest, p.Standing.Newest)
		}
	}
	o.str("name", info.Definition.Name)
	o.str("stream", info.Definition.Stream)
	o.counterState(info)
	o.int("lag", lag)
	o.instant("newest", newest)
	if info.Building {
		o.null("horizon")
		o.null("complete_since")
	} else {
		o.instant("horizon", horizon)
		o.instant("complete_since", completeSince)
	}
	o.int("counted", counted)
	o.int("late", late)
	o.key("skipped")
	o.open('{')
	o.int("where", where)
	o.int("key", key)
	o.int("where_error", failed)
	o.close('}')
	o.int("disk_bytes", disk)
	o.key("partitions")
	o.open('[')
	for i := range info.Partitions {
		o.item()
		o.open('{')
		o.share(&info.Partitions[i])
		o.close('}')
	}
	o.close(']')
}

func (o *object) share(p *counter.ShareInfo) {
	o.int("partition", int64(p.Partition))
	o.bool("building", p.Building)
	o.int("lag", p.Lag)
	if p.Building {
		return
	}
	o.int("applied", p.Standing.Next)
	o.instant("horizon", p.Standing.H)
}
