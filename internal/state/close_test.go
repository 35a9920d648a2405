package state

import (
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

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
