package config

// The bounds of every setting, in the units their names say.
const (
	fileBytesMax = 128 << 10
	nestingMax   = 32 // brackets, or dashes in a row; settings lie at most six deep

	memoryBytesMin = 64 << 20
	memoryBytesMax = 1 << 50

	bodyBytesMin, bodyBytesMax       = 1 << 10, 1 << 30
	eventBytesMin, eventBytesMax     = 1 << 10, 64 << 20
	batchMin, batchMax               = 1, 10_000_000
	keyPartBytesMin, keyPartBytesMax = 1, 256 // a counter's keys have room for no more: state.KeyPartBytesMax
	connectionsMin, connectionsMax   = 1, 1_000_000

	streamsMax                     = 256
	partitionsMin, partitionsMax   = 1, 256
	retentionMSMin, retentionMSMax = secondMS, 36_500 * dayMS
	ringAgeMSMin, ringAgeMSMax     = 100, hourMS
	ringBytesMin, ringBytesMax     = 1 << 20, 1 << 40
	dedupWindowMSMax               = 7 * dayMS
	dedupMaxIDsMax                 = 1_000_000_000
	skewMSMax                      = 400 * dayMS

	countersMax              = 256
	keyPartsMax              = 16
	windowsMax               = 16
	windowMSMin, windowMSMax = secondMS, 400 * dayMS
	latenessMSMax            = 400 * dayMS
	dedupIDsMin, dedupIDsMax = 1, 100_000_000
	nameBytesMax             = 64
	whereBytesMax            = 4096
)

// The defaults that do not depend on other settings.
const (
	defaultData          = "./weir-data"
	defaultHTTP          = "127.0.0.1:7330"
	defaultRESP          = "127.0.0.1:7331"
	defaultMemoryBytes   = 1 << 30
	defaultBodyBytes     = 16 << 20
	defaultEventBytes    = 1 << 20
	defaultBatch         = 100_000
	defaultKeyPartBytes  = 256
	defaultConnections   = 4096
	defaultStreamName    = "events"
	defaultPartitions    = 4
	defaultRetentionMS   = 8 * dayMS
	defaultRingAgeMS     = 5 * secondMS
	defaultRingBytes     = 256 << 20 // less when memory is small: ringShare
	defaultDedupWindowMS = 10 * minuteMS
	defaultDedupMaxIDs   = 1_000_000 // fewer when memory is small: recentIDsShare
	defaultSkewMS        = 5 * minuteMS
	defaultLatenessMS    = 24 * hourMS
	defaultDedupIDs      = 1_000_000
)

// baseConfig is the Config before file, environment and flags: no streams, no counters.
func baseConfig() Config {
	return Config{
		Data:        defaultData,
		Listen:      Listen{HTTP: defaultHTTP, RESP: defaultRESP},
		MemoryBytes: defaultMemoryBytes,
		Limits: Limits{
			BodyBytes:    defaultBodyBytes,
			EventBytes:   defaultEventBytes,
			Batch:        defaultBatch,
			KeyPartBytes: defaultKeyPartBytes,
			Connections:  defaultConnections,
		},
	}
}

func baseStream(name string) Stream {
	return Stream{
		Name:        name,
		Partitions:  defaultPartitions,
		RetentionMS: defaultRetentionMS,
		Ring:        Ring{AgeMS: defaultRingAgeMS, defaulted: true},
		Dedup:       Dedup{WindowMS: defaultDedupWindowMS, defaulted: true},
		Time:        Time{SkewMS: defaultSkewMS, Future: FutureReject, UnitCheck: true},
	}
}

func baseCounter() Counter {
	return Counter{Measure: MeasureCount, LatenessMS: defaultLatenessMS, DedupIDs: defaultDedupIDs}
}

// Default returns the Config of a node without a file: the stream events, no counters.
func Default() *Config {
	cfg := baseConfig()
	cfg.Streams = []Stream{baseStream(defaultStreamName)}
	cfg.settle()
	return &cfg
}
