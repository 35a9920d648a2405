package config

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Budget divides MemoryBytes into named parts, in bytes. They add up to Total.
type Budget struct {
	Total int64
	// Rings are the rings of all streams, at their caps.
	Rings int64
	// RecentIDs are the ids that all streams remember for dedup.
	RecentIDs int64
	// Bodies are the request bodies in flight, until they are answered.
	Bodies int64
	// Commands are the unfinished commands that all RESP connections hold, beyond a small buffer of each.
	Commands int64
	// Queues are the records that wait for their partition's next commit, of all streams, which share them equally.
	Queues int64
	// BlockCache is the one Pebble cache that all logs and counters share.
	BlockCache int64
	// Memtables are the write buffers of all Pebble instances together; Instances says how many there are.
	Memtables int64
	Instances int
	// DeltaTables are the open and the frozen epoch of all counters together. 0 without counters.
	DeltaTables int64
	// LookupCache holds values of keys that look-ups asked for. 0 without counters.
	LookupCache int64
	// Heap is left to Go: the program, goroutines, connections, the collector's slack.
	Heap int64
}

// Shares of memory and floors under them. What is left after the fixed parts goes to the flexible ones by weight.
const (
	ringShare      = 4 // rings get at most 1/4 by default
	recentIDsShare = 8 // recent ids get at most 1/8 by default
	bodiesShare    = 16
	bodiesMinCount = 2 // the largest body can arrive while another is being answered
	queuesShare    = 16
	commandsShare  = 32
	// commandsMinCount of the largest command fit, with commandBytesBeside for its other arguments and the room for growth.
	commandsMinCount   = 2
	commandBytesBeside = 1 << 20
	heapShare          = 8
	heapBytesMin       = 64 << 20

	// recentIDBytes is what one remembered id takes: a fingerprint, an offset and an arrival in a hash table and a
	// queue, with the table half empty at worst.
	recentIDBytes = 64

	blockCacheWeight, memtablesWeight = 3, 3
	deltaWeight, lookupWeight         = 3, 2

	blockCacheBytesMin   = 8 << 20
	memtableBytesMin     = 2 << 20 // one instance: the buffer being filled and the one being flushed
	deltaBytesMin        = 1 << 20 // one partition's delta tables
	lookupCacheBytesMin  = 4 << 20
	ringChunkRounding    = 1 << 20
	ringBytesBeside      = 1 << 20 // attributes and headers of two largest events, and a little room
	budgetLargestToBlame = 3
	memorySearchStep     = 16 << 20
	memorySearchShare    = 32 // leastMemory tries sizes up to 1/32 apart
)

// ErrBudget says that the parts do not fit into memory.
var ErrBudget = errors.New("memory is too small for its parts")

// settle fills in the defaults that depend on memory and on the number of streams.
func (c *Config) settle() {
	streams := int64(len(c.Streams))
	ring := min(defaultRingBytes, c.MemoryBytes/ringShare/streams)
	ids := min(defaultDedupMaxIDs, c.MemoryBytes/recentIDsShare/streams/recentIDBytes)
	for i := range c.Streams {
		s := &c.Streams[i]
		if s.Ring.defaulted {
			s.Ring.Bytes = max(ring/ringChunkRounding*ringChunkRounding, c.ringBytesLeast(s))
		}
		if s.Dedup.defaulted {
			s.Dedup.MaxIDs = int(ids)
		}
	}
}

// ringBytesLeast is the smallest ring with which every partition can write one largest event while another is read.
func (c *Config) ringBytesLeast(s *Stream) int64 {
	return int64(s.Partitions) * (2*c.Limits.EventBytes + ringBytesBeside)
}

// Divide divides c.MemoryBytes. It fails with ErrBudget when a part would fall below what it needs; Load has checked
// that it does not.
func (c *Config) Divide() (Budget, error) {
	b := Budget{Total: c.MemoryBytes, Instances: c.instances()}
	for i := range c.Streams {
		b.Rings += c.Streams[i].Ring.Bytes
		b.RecentIDs += c.Streams[i].Dedup.bytes()
	}
	b.Bodies = max(c.Limits.BodyBytes*bodiesMinCount, c.MemoryBytes/bodiesShare)
	b.Commands = max((c.Limits.EventBytes+c.Limits.EventBytes/4+commandBytesBeside)*commandsMinCount, c.MemoryBytes/commandsShare)
	b.Queues = max(c.Limits.BodyBytes*int64(len(c.Streams)), c.MemoryBytes/queuesShare) // a whole body can wait
	heap := max(heapBytesMin, c.MemoryBytes/heapShare)

	needs := c.flexibleNeeds(b.Instances)
	rest := c.MemoryBytes - b.Rings - b.RecentIDs - b.Bodies - b.Commands - b.Queues - heap - needs.sum()
	if rest < 0 {
		return b, ErrBudget
	}
	weights := int64(blockCacheWeight + memtablesWeight)
	if len(c.Counters) > 0 {
		weights += deltaWeight + lookupWeight
		b.DeltaTables = needs.delta + rest*deltaWeight/weights
		b.LookupCache = needs.lookup + rest*lookupWeight/weights
	}
	b.BlockCache = needs.block + rest*blockCacheWeight/weights
	b.Memtables = needs.memtables + rest*memtablesWeight/weights
	b.Heap = b.Total - b.Rings - b.RecentIDs - b.Bodies - b.Commands - b.Queues - b.BlockCache - b.Memtables - b.DeltaTables - b.LookupCache
	return b, nil
}

func (d Dedup) bytes() int64 {
	if d.WindowMS == 0 {
		return 0
	}
	return int64(d.MaxIDs) * recentIDBytes
}

// instances counts Pebble instances: one a partition for the log, and one for the state of its counters.
func (c *Config) instances() int {
	counted := map[string]bool{}
	for i := range c.Counters {
		counted[c.Counters[i].Stream] = true
	}
	n := 0
	for i := range c.Streams {
		n += c.Streams[i].Partitions
		if counted[c.Streams[i].Name] {
			n += c.Streams[i].Partitions
		}
	}
	return n
}

type flexible struct{ block, memtables, delta, lookup int64 }

func (c *Config) flexibleNeeds(instances int) flexible {
	needs := flexible{block: blockCacheBytesMin, memtables: int64(instances) * memtableBytesMin}
	if len(c.Counters) == 0 {
		return needs
	}
	needs.lookup = lookupCacheBytesMin
	for i := range c.Streams {
		needs.delta += int64(c.Streams[i].Partitions) * deltaBytesMin
	}
	return needs
}

func (f flexible) sum() int64 { return f.block + f.memtables + f.delta + f.lookup }

// part is memory that one setting decides.
type part struct {
	path  string
	bytes int64
}

// largest returns the largest parts of b that settings decide, the largest first.
func (c *Config) largest(b Budget) []part {
	parts := []part{{"limits.body", b.Bodies + b.Queues}}
	for i := range c.Streams {
		s := &c.Streams[i]
		parts = append(parts, part{"streams." + s.Name + ".ring.bytes", s.Ring.Bytes}, part{"streams." + s.Name + ".dedup.max_ids", s.Dedup.bytes()})
	}
	sort.SliceStable(parts, func(i, j int) bool { return parts[i].bytes > parts[j].bytes })
	return parts[:min(len(parts), budgetLargestToBlame)]
}

// leastMemory returns the smallest memory, in steps that are easy to write, in which everything else of c fits.
func (c *Config) leastMemory() int64 {
	try := *c
	try.Streams = append([]Stream(nil), c.Streams...)
	for try.MemoryBytes < memoryBytesMax {
		step := max(try.MemoryBytes/memorySearchShare/memorySearchStep, 1) * memorySearchStep
		try.MemoryBytes = (try.MemoryBytes/step + 1) * step
		try.settle()
		if _, err := try.Divide(); err == nil {
			break
		}
	}
	return try.MemoryBytes
}

func (c *Config) partitions() int {
	n := 0
	for i := range c.Streams {
		n += c.Streams[i].Partitions
	}
	return n
}

func roundMiB(bytes int64) string {
	const mib = 1 << 20
	return FormatSize((bytes + mib - 1) / mib * mib)
}

// checkMemory checks that every part of memory fits.
func (r *reader) checkMemory() {
	for i := range r.cfg.Streams {
		s := &r.cfg.Streams[i]
		if least := r.cfg.ringBytesLeast(s); s.Ring.Bytes < least {
			r.misfit("streams."+s.Name+".ring.bytes", fmt.Sprintf("%s cannot hold an event of limits.event in each of %d partitions", FormatSize(s.Ring.Bytes), s.Partitions),
				fmt.Sprintf("raise it to at least %s, or lower limits.event", roundMiB(least)))
		}
	}
	if b, err := r.cfg.Divide(); err != nil && r.unnoted("memory") {
		r.noteBudget(b)
	}
}

// noteBudget points at memory, or, where that was left to its default, at the largest of the parts that was given.
func (r *reader) noteBudget(b Budget) {
	path := "memory"
	var names []string
	for _, p := range r.cfg.largest(b) {
		names = append(names, p.path+" takes "+roundMiB(p.bytes))
		if path == "memory" && !r.given(path) && r.given(p.path) {
			path = p.path
		}
	}
	r.misfit(path, fmt.Sprintf("memory of %s does not hold its parts: %s; %d partitions and the program take the rest", FormatSize(b.Total), strings.Join(names, ", "), r.cfg.partitions()),
		fmt.Sprintf("raise memory to %s, or lower one of these settings or the number of partitions", FormatSize(r.cfg.leastMemory())))
}
