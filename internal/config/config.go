// Package config turns a YAML file, the environment and flags into one checked Config, or into every mistake they hold.
//
// A mistake names file, line, column, excerpt and cure, and all mistakes are returned together: whoever mends a file
// should need one round, not one round a mistake. The file is read as a tree of nodes with positions, not decoded into
// structs, so that a check which spans two settings can still point at the line to change.
//
// Precedence is flag, environment, file, default. Values of the environment enter twice: ${NAME} inside the file, and
// WEIR_SECTION_KEY in place of a setting (see Load).
package config

// Config is everything that is settled before a node starts. Load returns it complete: every default is filled in.
type Config struct {
	// Data is the folder that holds streams and counters; relative to the working directory.
	Data   string
	Listen Listen
	// MemoryBytes is the bound that the process's resident memory obeys; see Divide.
	MemoryBytes int64
	Limits      Limits
	// Streams are sorted by name.
	Streams []Stream
	// Counters are in the order of the file.
	Counters []Counter
}

// Listen holds the addresses, each host:port.
type Listen struct {
	HTTP string
	RESP string
	// Admin carries pprof; empty: off. Always a loopback address.
	Admin string
	// Insecure allows addresses that others than this machine reach.
	Insecure bool
}

// Limits bound what one client may ask for.
type Limits struct {
	BodyBytes    int64 // one request's body
	EventBytes   int64 // one event
	Batch        int   // events in one request
	KeyPartBytes int   // one part of a counter's key
	Connections  int   // of HTTP and of RESP, each
}

// Stream describes one stream.
type Stream struct {
	Name string
	// Partitions is fixed once data is stored.
	Partitions int
	// Segment is the path of what keeps events together; empty: the partitionkey attribute, else the id.
	Segment string
	// RetentionMS counts from arrival, in ms.
	RetentionMS int64
	Ring        Ring
	Dedup       Dedup
	Time        Time
}

// Ring bounds the newest events that a stream keeps in RAM.
type Ring struct {
	AgeMS int64
	Bytes int64 // all partitions together

	// defaulted says that Bytes follows memory.
	defaulted bool
}

// Dedup bounds the ids that a stream remembers to recognise a second copy.
type Dedup struct {
	WindowMS int64 // since arrival; 0: none are remembered
	MaxIDs   int   // all partitions together

	// defaulted says that MaxIDs follows memory.
	defaulted bool
}

// Time says which source timestamps a stream takes.
type Time struct {
	// SkewMS is how far ahead of its arrival an event may claim to be, in ms.
	SkewMS int64
	// Future is what happens to one that is further ahead.
	Future Future
	// UnitCheck refuses integers that look like seconds or microseconds.
	UnitCheck bool
}

// Future is a stream's policy for events from beyond the allowed skew.
type Future string

// The policies: refuse the event, set its time to its arrival plus skew, or take it as it is.
const (
	FutureReject Future = "reject"
	FutureClamp  Future = "clamp"
	FutureAccept Future = "accept"
)

// Counter describes one sliding counter.
type Counter struct {
	Name   string
	Stream string
	// Where is the condition an event must fulfil; empty: every event.
	Where string
	// Key are the paths of the key's parts, at least one.
	Key []string
	// Windows are in the order of the file, at least one, each length once.
	Windows []Window
	// Measure is MeasureCount.
	Measure string
	// LatenessMS is how far behind the newest event an event may be and still be counted, beyond the longest window.
	LatenessMS int64
	// DedupIDs bounds the ids remembered for one key.
	DedupIDs int
}

// MeasureCount counts events. This version has no other measure.
const MeasureCount = "count"

// Window is one length that a counter answers for.
type Window struct {
	Name   string // as written in the file, which is how answers name it
	Millis int64
}

// Stream returns the stream of that name.
func (c *Config) Stream(name string) (*Stream, bool) {
	for i := range c.Streams {
		if c.Streams[i].Name == name {
			return &c.Streams[i], true
		}
	}
	return nil, false
}
