package state

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/weirstream/weir/internal/clock"
	"github.com/weirstream/weir/internal/slide"
)

// A look-up that has read from disk since before the last epoch goes on reading while the store closes: closing waits.
func TestCloseWaitsForOldViews(t *testing.T) {
	s := newBench(t, Options{FS: vfs.NewMem(), Dir: "s"})
	add := func(fp uint64) {
		s.lane.Lock()
		s.add(1, 1, slide.Entry{TS: 1_700_000_000_000, FP: fp})
		s.lane.Unlock()
		s.commit(t)
	}
	add(1)
	key := s.keyOf(1, 1)
	q := slide.Query{Windows: s.windows}
	v, _, _, err := s.lane.gather(s.counter, HashKey(key), key, &q, new(Scratch))
	if err != nil || v == nil {
		t.Fatalf("got view %v, %v; want one", v, err)
	}
	add(2) // the lane has another view from now on
	closed := make(chan error, 1)
	go func() { closed <- s.store.Close() }()
	for closing := false; !closing; runtime.Gosched() {
		s.lane.mu.RLock()
		closing = s.lane.mu.closed
		s.lane.mu.RUnlock()
	}
	if value, err := appendValue(nil, v.snapshot, key); err != nil || len(value) == 0 {
		t.Errorf("got %d bytes, %v; want the value that the look-up began to read", len(value), err)
	}
	v.release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// What a node tells about itself is told also while an epoch waits for a disk.
func TestStatsDoNotWaitForAnEpoch(t *testing.T) {
	s := newBench(t, Options{FS: vfs.NewMem(), Dir: "s"})
	s.store.writer.Lock() // as Commit holds it
	stats := s.store.Stats()
	_, err := s.store.DiskBytes(s.counter.ID)
	s.store.writer.Unlock()
	if stats.MemtableBytes == 0 || err != nil {
		t.Errorf("got %+v, %v; want some", stats, err)
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.DiskBytes(s.counter.ID); !errors.Is(err, ErrClosed) || s.store.Stats() != (Stats{}) {
		t.Errorf("got %v, %+v of a closed store; want ErrClosed and nothing", err, s.store.Stats())
	}
}

// A disk that takes no table any more does not keep the process from ending.
func TestCloseOnAFullDisk(t *testing.T) {
	var full atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			return syscall.ENOSPC
		}
		return nil
	}))
	s := newBench(t, Options{FS: fs, Dir: "s"})
	s.lane.Lock()
	s.add(1, 1, slide.Entry{TS: 1_700_000_000_000, FP: 1})
	s.lane.Unlock()
	s.commit(t)
	full.Store(true)
	if err := s.store.Close(); err != nil {
		t.Error(err)
	}
}

// A clock that was set back does not keep memtables from being flushed.
func TestFlushAfterClockWasSetBack(t *testing.T) {
	var now clock.Manual
	now.Set(1_700_000_000_000)
	s := newBench(t, Options{FS: vfs.NewMem(), Dir: "s", Clock: &now})
	now.Advance(-3_600_000)
	s.lane.Lock()
	s.add(1, 1, slide.Entry{TS: 1_700_000_000_000, FP: 1})
	s.lane.Unlock()
	s.commit(t)
	if m := s.store.db.Metrics(); m.MemTable.Count < 2 && m.Flush.Count == 0 {
		t.Errorf("got %d memtables and no flush; want one that was asked for", m.MemTable.Count)
	}
}
