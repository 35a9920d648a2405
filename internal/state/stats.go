package state

import "fmt"

// Stats is what a store takes.
type Stats struct {
	DiskBytes     int64 // files
	MemtableBytes int64 // write buffers
	Compacting    int64 // bytes that compactions work on
	Levels        int   // read amplification: places where a key may be
}

// Stats returns what the store takes now. It does not wait for an epoch that is being written.
func (s *Store) Stats() Stats {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.life.ended {
		return Stats{}
	}
	m := s.db.Metrics()
	return Stats{
		DiskBytes:     int64(m.DiskSpaceUsage()),
		MemtableBytes: int64(m.MemTable.Size),
		Compacting:    m.Compact.InProgressBytes,
		Levels:        m.ReadAmp(),
	}
}

// DiskBytes estimates what one counter takes on disk. It does not wait for an epoch that is being written.
func (s *Store) DiskBytes(id uint32) (int64, error) {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.life.ended {
		return 0, ErrClosed
	}
	lower, upper := counterBounds(id)
	bytes, err := s.db.EstimateDiskUsage(lower, upper)
	if err != nil {
		return 0, fmt.Errorf("cannot estimate what counter %d takes: %w", id, err)
	}
	return int64(bytes), nil
}
