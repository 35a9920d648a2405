package server

import (
	"github.com/weirstream/weir/internal/api"
	"github.com/weirstream/weir/internal/counter"
	"github.com/weirstream/weir/internal/metrics"
)

// httpBackend is the node as the API sees it.
type httpBackend struct{ *node }

func (b httpBackend) Stream(name string) (*api.Stream, bool) {
	e := b.opened.Load()
	if e == nil {
		return nil, false
	}
	s, ok := e.byName[name]
	if !ok {
		return nil, false
	}
	return s.api, true
}

func (b httpBackend) Streams() []*api.Stream {
	if e := b.opened.Load(); e != nil {
		return e.streams
	}
	return nil
}

func (b httpBackend) Counter(name string) (*counter.Counter, bool) {
	if e := b.opened.Load(); e != nil {
		return e.counters.Counter(name)
	}
	return nil, false
}

func (b httpBackend) Counters() []counter.Info {
	if e := b.opened.Load(); e != nil {
		return e.counters.Info()
	}
	return nil
}

func (b httpBackend) Ready() (status string, ok bool) { return b.status() }

func (b httpBackend) AdmitBody(bytes int64) bool { return b.bodies.take(bytes) }

func (b httpBackend) ReleaseBody(bytes int64) { b.bodies.give(bytes) }

func (b httpBackend) Node() api.Node {
	disk := b.usage.disk(b.clock.NowMS())
	return api.Node{
		Version: b.version, StartedMS: b.startedMS,
		MemoryLimitBytes: b.cfg.MemoryBytes, MemoryUsedBytes: residentBytes(),
		DiskUsedBytes: disk.used, DiskFreeBytes: disk.free, DiskFull: b.diskFull.Load() > 0,
	}
}

func (n *node) metricStreams() []metrics.Stream {
	e := n.opened.Load()
	if e == nil {
		return nil
	}
	streams := make([]metrics.Stream, 0, len(e.streams))
	for _, s := range e.streams {
		streams = append(streams, metrics.Stream{Name: s.Name, Log: s.Log})
	}
	return streams
}

func (n *node) metricCounterPartitions() []counter.PartitionInfo {
	if e := n.opened.Load(); e != nil {
		return e.counters.Partitions()
	}
	return nil
}

func (n *node) metricNode() metrics.Node {
	disk := n.usage.disk(n.clock.NowMS())
	_, ready := n.status()
	return metrics.Node{
		Ready: ready, MemoryLimitBytes: n.cfg.MemoryBytes,
		DiskUsedBytes: disk.used, DiskFreeBytes: disk.free, DiskFull: n.diskFull.Load() > 0,
	}
}
