package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirstream/weir/internal/counter"
	"github.com/weirstream/weir/internal/eventlog"
	"github.com/weirstream/weir/internal/slide"
)

// Sources are where scrapes read from. A nil function has nothing to show. They are called for every scrape, from several
// goroutines, and must be cheap.
type Sources struct {
	Streams           func() []Stream
	Counters          func() []counter.Info          // counter.Set.Info
	CounterPartitions func() []counter.PartitionInfo // counter.Set.Partitions
	Node              func() Node
}

// Stream is one stream's log and its name.
type Stream struct {
	Name string
	Log  *eventlog.Log
}

// Node is the state of the process as a whole.
type Node struct {
	Ready            bool
	MemoryLimitBytes int64
	DiskUsedBytes    int64
	DiskFreeBytes    int64
	DiskFull         bool
}

// snapshots collects what the engine counts itself.
type snapshots struct {
	sources    Sources
	partitions []row[eventlog.Stats]
	shares     []row[counter.ShareInfo]
	skipped    *prometheus.Desc
	building   *prometheus.Desc
	states     []row[counter.PartitionInfo]
	node       []row[Node]
}

// row is one metric and how to read it from a snapshot.
type row[S any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*S) int64
}

func gauge[S any](labels []string, name, help string, value func(*S) int64) row[S] {
	return row[S]{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, value}
}

func total[S any](labels []string, name, help string, value func(*S) int64) row[S] {
	return row[S]{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue, value}
}

func newSnapshots(sources Sources) *snapshots {
	return &snapshots{
		sources: sources, partitions: partitionRows(), shares: shareRows(), states: stateRows(), node: nodeRows(),
		skipped: prometheus.NewDesc("weir_counter_skipped_total",
			"Events that a counter did not count, by reason: where (excluded), key (a part is missing), where_error.", []string{"counter", "partition", "reason"}, nil),
		building: prometheus.NewDesc("weir_counter_building_ratio", "How far a counter is built from the log; 1 when it answers.", []string{"counter"}, nil),
	}
}

func shareRows() []row[counter.ShareInfo] {
	type info = counter.ShareInfo
	labels := []string{"counter", "partition"}
	return []row[info]{
		total(labels, "weir_counter_applied_total", "Events counted since the start.", func(s *info) int64 { return s.Counted }),
		total(labels, "weir_counter_late_total", "Events at or below the lateness horizon, which were not counted, since the start.", func(s *info) int64 { return s.Late }),
		gauge(labels, "weir_counter_lag_events", "Durable events that are not counted yet.", func(s *info) int64 { return s.Lag }),
		gauge(labels, "weir_counter_disk_bytes", "Estimated bytes on disk.", func(s *info) int64 { return s.DiskBytes }),
		gauge(labels, "weir_counter_horizon_timestamp_seconds", "Lateness horizon, in whole seconds since the epoch; 0 before the first event.", horizon),
	}
}

func horizon(s *counter.ShareInfo) int64 {
	if s.Standing.H == slide.NoHorizon {
		return 0
	}
	return s.Standing.H / 1000
}

func stateRows() []row[counter.PartitionInfo] {
	type info = counter.PartitionInfo
	labels := []string{"stream", "partition"}
	return []row[info]{
		gauge(labels, "weir_counter_applied_offset", "Offset behind the last event that can be looked up.", func(p *info) int64 { return p.Applied }),
		total(labels, "weir_counter_epochs_total", "Epochs written.", func(p *info) int64 { return p.Epochs }),
		total(labels, "weir_counter_folds_total", "Keys read and written back to change their form.", func(p *info) int64 { return p.Folds }),
		total(labels, "weir_counter_swept_total", "Dead keys deleted.", func(p *info) int64 { return p.Swept }),
		total(labels, "weir_counter_conflicts_total", "Copies of one event id that differed in time, as far as they were noticed.", func(p *info) int64 { return p.Conflicts }),
		gauge(labels, "weir_counter_failed", "1 when the partition stopped counting; the log says why.", func(p *info) int64 { return one(p.Err != nil) }),
		gauge(labels, "weir_state_disk_bytes", "Files of the counters' state.", func(p *info) int64 { return p.State.DiskBytes }),
		gauge(labels, "weir_state_memtable_bytes", "Write buffers of the counters' state.", func(p *info) int64 { return p.State.MemtableBytes }),
		gauge(labels, "weir_state_read_amplification", "Places where a key of the state may be.", func(p *info) int64 { return int64(p.State.Levels) }),
	}
}

func partitionRows() []row[eventlog.Stats] {
	type stats = eventlog.Stats
	labels := []string{"stream", "partition"}
	return []row[stats]{
		total(labels, "weir_events_accepted_total", "Events appended since the start.", func(s *stats) int64 { return s.Events }),
		total(labels, "weir_events_accepted_bytes_total", "Bytes of the events appended since the start.", func(s *stats) int64 { return s.Bytes }),
		total(labels, "weir_events_duplicate_total", "Events acknowledged without being appended: the partition held them already.", func(s *stats) int64 { return s.Duplicates }),
		gauge(labels, "weir_log_first_offset", "First offset that retention left.", func(s *stats) int64 { return s.Frontiers.First }),
		gauge(labels, "weir_log_appended_offset", "Offset behind the last appended event.", func(s *stats) int64 { return s.Frontiers.Appended }),
		gauge(labels, "weir_log_durable_offset", "Offset behind the last fsynced event.", func(s *stats) int64 { return s.Frontiers.Durable }),
		gauge(labels, "weir_log_warm_offset", "Offset behind the last event in the warm tier's files.", func(s *stats) int64 { return s.Frontiers.Warm }),
		gauge(labels, "weir_ring_bytes", "Memory of the ring.", func(s *stats) int64 { return s.RingBytes }),
		gauge(labels, "weir_ring_limit_bytes", "Bound of the ring's memory.", func(s *stats) int64 { return s.RingBytesMax }),
		gauge(labels, "weir_ring_chunks", "Chunks of the ring.", func(s *stats) int64 { return int64(s.RingChunks) }),
		gauge(labels, "weir_ring_first_offset", "First offset that the ring still holds.", func(s *stats) int64 { return s.RingFirst }),
		total(labels, "weir_ring_spills_total", "Chunks that the ring gave up before their age, for want of room.", func(s *stats) int64 { return s.Spills }),
		gauge(labels, "weir_warm_bytes", "Files of the warm tier on disk, its write-ahead log included.", func(s *stats) int64 { return s.WarmBytes }),
		gauge(labels, "weir_queue_bytes", "Events that wait for their partition.", func(s *stats) int64 { return s.QueueBytes }),
		gauge(labels, "weir_dedup_ids", "Event ids remembered to recognise duplicates.", func(s *stats) int64 { return int64(s.DedupIDs) }),
		gauge(labels, "weir_dedup_bytes", "Memory of the remembered ids.", func(s *stats) int64 { return s.DedupBytes }),
		total(labels, "weir_log_commits_total", "Group commits.", func(s *stats) int64 { return s.Commits }),
		total(labels, "weir_log_frames_total", "Frames written.", func(s *stats) int64 { return s.Frames }),
		total(labels, "weir_log_overloads_total", "Appends that the partition's queue refused.", func(s *stats) int64 { return s.Overloads }),
		total(labels, "weir_log_trims_total", "Times that retention removed events.", func(s *stats) int64 { return s.Trims }),
	}
}

func nodeRows() []row[Node] {
	return []row[Node]{
		gauge(nil, "weir_ready", "1 while the node takes events and look-ups.", func(n *Node) int64 { return one(n.Ready) }),
		gauge(nil, "weir_memory_limit_bytes", "The configured bound of memory.", func(n *Node) int64 { return n.MemoryLimitBytes }),
		gauge(nil, "weir_disk_used_bytes", "Bytes of the data folder.", func(n *Node) int64 { return n.DiskUsedBytes }),
		gauge(nil, "weir_disk_free_bytes", "Bytes free where the data folder is.", func(n *Node) int64 { return n.DiskFreeBytes }),
		gauge(nil, "weir_disk_full", "1 while events are refused for want of disk space.", func(n *Node) int64 { return one(n.DiskFull) }),
	}
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// Describe implements prometheus.Collector.
func (s *snapshots) Describe(into chan<- *prometheus.Desc) {
	describe(into, s.partitions)
	describe(into, s.shares)
	describe(into, s.states)
	describe(into, s.node)
	into <- s.skipped
	into <- s.building
}

func describe[S any](into chan<- *prometheus.Desc, rows []row[S]) {
	for _, r := range rows {
		into <- r.desc
	}
}

// Collect implements prometheus.Collector.
func (s *snapshots) Collect(into chan<- prometheus.Metric) {
	if s.sources.Node != nil {
		node := s.sources.Node()
		collect(into, s.node, &node)
	}
	if s.sources.Streams != nil {
		for _, stream := range s.sources.Streams() {
			for i := range stream.Log.Partitions() {
				stats := stream.Log.Partition(i).Stats()
				collect(into, s.partitions, &stats, stream.Name, strconv.Itoa(i))
			}
		}
	}
	if s.sources.Counters != nil {
		for _, info := range s.sources.Counters() {
			s.collectCounter(into, &info)
		}
	}
	if s.sources.CounterPartitions != nil {
		for _, info := range s.sources.CounterPartitions() {
			collect(into, s.states, &info, info.Stream, strconv.Itoa(info.Partition))
		}
	}
}

func (s *snapshots) collectCounter(into chan<- prometheus.Metric, info *counter.Info) {
	name := info.Definition.Name
	progress := 1.0
	if info.Building {
		progress = info.Progress
	}
	into <- prometheus.MustNewConstMetric(s.building, prometheus.GaugeValue, progress, name)
	for i := range info.Partitions {
		share := &info.Partitions[i]
		partition := strconv.Itoa(share.Partition)
		collect(into, s.shares, share, name, partition)
		for reason, events := range map[string]int64{"where": share.SkippedWhere, "key": share.SkippedKey, "where_error": share.WhereErrors} {
			into <- prometheus.MustNewConstMetric(s.skipped, prometheus.CounterValue, float64(events), name, partition, reason)
		}
	}
}

func collect[S any](into chan<- prometheus.Metric, rows []row[S], snapshot *S, labels ...string) {
	for _, r := range rows {
		into <- prometheus.MustNewConstMetric(r.desc, r.kind, float64(r.value(snapshot)), labels...)
	}
}
