package state

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/slide"
)

// A look-up that read a view may cache what it read only while that is still what the key holds.
func TestOldReadsAreNotRemembered(t *testing.T) {
	b := newBench(t, Options{FS: vfs.NewMem(), Dir: "s"})
	now := int64(1_700_000_000_000)
	key := append([]byte(nil), b.keyOf(1, 1)...)
	hash := HashKey(key)
	q := slide.Query{Windows: b.windows, AsOf: now}
	var s Scratch
	var a slide.Answer
	add := func(fp uint64) {
		b.lane.Lock()
		b.add(1, 1, slide.Entry{TS: now, FP: fp})
		b.lane.Unlock()
	}
	read := func() (*view, []byte) {
		v, _, _, err := b.lane.gather(b.counter, hash, key, &q, &s)
		if err != nil || v == nil {
			t.Fatalf("got view %v, %v; want a miss", v, err)
		}
		value, err := appendValue(nil, v.snapshot, key)
		if err != nil {
			t.Fatal(err)
		}
		return v, value
	}
	want := func(count int64) {
		t.Helper()
		if _, err := b.lane.Lookup(b.counter, key, &q, &s, &a); err != nil {
			t.Fatal(err)
		}
		if a.Windows[0].Count != count {
			t.Fatalf("got %+v; want %d", a.Windows[0], count)
		}
	}

	// An epoch is published between read and remember.
	add(1)
	v, value := read()
	b.commit(t)
	b.lane.remember(v, hash, key, value)
	v.release()
	want(1)

	// An epoch that holds the key is under way: the committer may have passed it already.
	b.lane.cache.drop(hash, key)
	add(2)
	v, value = read()
	b.store.writer.Lock()
	e := b.lane.freeze()
	if err := b.lane.write(e); err != nil {
		t.Fatal(err)
	}
	b.lane.remember(v, hash, key, value)
	v.release()
	want(2)
	b.lane.publish(e)
	b.store.writer.Unlock()
	want(2)
}

// A view is closed when its last reader lets go of it, and closing the lane waits for that.
func TestCloseWaitsForReaders(t *testing.T) {
	s, err := Open(Options{FS: vfs.NewMem(), Dir: "s"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.NewLane(LaneOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v := l.mu.view
	v.refs.Add(1)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for {
		l.mu.RLock()
		isClosed := l.mu.closed
		l.mu.RUnlock()
		if isClosed {
			break
		}
	}
	select {
	case err := <-closed:
		t.Fatalf("closed (%v) under a reader", err)
	default:
	}
	if _, err := appendValue(nil, v.snapshot, AppendKey(nil, 16, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	v.release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
}

func TestWantedHasABound(t *testing.T) {
	var w wanted
	r := rand.New(rand.NewPCG(1, 1))
	hashes := make([]uint64, 2*wantedMax)
	for i := range hashes {
		hashes[i] = r.Uint64()
		w.add(hashes[i])
	}
	taken := 0
	for _, h := range hashes {
		if w.take(h) {
			taken++
		}
	}
	if taken != wantedMax || w.take(hashes[0]) || w.some.Load() {
		t.Errorf("took %d; want %d, once each", taken, wantedMax)
	}
}
