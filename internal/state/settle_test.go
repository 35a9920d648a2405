package state

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/clock"
	"github.com/weirstream/weir/internal/slide"
)

// scatter leaves tables in level 0, fewer than begin a merge.
func scatter(t *testing.T, b *bench, tables int) {
	t.Helper()
	for i := range uint64(tables) {
		b.lane.Lock()
		for user := range uint64(1000) {
			b.add(user, 1, slide.Entry{TS: 1_700_000_000_000 + int64(i), FP: user<<8 | i})
		}
		b.lane.Unlock()
		b.commit(t)
		if err := b.store.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bench) tablesAboveLast() (n int64) {
	levels := b.store.db.Metrics().Levels
	for i := range len(levels) - 1 {
		n += levels[i].TablesCount
	}
	return n
}

// pass lets d go by, after which the committer comes along as it does every epoch.
func (b *bench) pass(t *testing.T, now *clock.Manual) {
	t.Helper()
	now.Advance(flushAfterDefault.Milliseconds())
	if _, err := b.lane.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestQuietStoreMerges(t *testing.T) {
	var now clock.Manual
	now.Set(1_700_000_000_000)
	b := newBench(t, Options{FS: vfs.NewMem(), Dir: "s", Clock: &now})
	scatter(t, b, l0CompactionTrigger/2)
	b.pass(t, &now)
	if b.store.writer.settling.done == nil {
		t.Fatal("a scattered store has been quiet and does not merge")
	}
	<-b.store.writer.settling.done
	if n := b.tablesAboveLast(); n != 0 {
		t.Errorf("got %d tables above the last level; want none", n)
	}
	first := b.store.writer.settling.done
	b.pass(t, &now)
	if b.store.writer.settling.done != first {
		t.Error("a merged store merges again")
	}
}

func TestBusyStoreDoesNotMerge(t *testing.T) {
	var now clock.Manual
	now.Set(1_700_000_000_000)
	b := newBench(t, Options{FS: vfs.NewMem(), Dir: "s", Clock: &now})
	scatter(t, b, l0CompactionTrigger/2)
	now.Advance(flushAfterDefault.Milliseconds() - 1)
	scatter(t, b, 1)
	b.pass(t, &now) // quiet since the last event for as long, and it is time
	<-b.store.writer.settling.done
	scatter(t, b, l0CompactionTrigger/2)
	done := b.store.writer.settling.done
	now.Advance(flushAfterDefault.Milliseconds() / 2)
	if _, err := b.lane.Commit(); err != nil {
		t.Fatal(err)
	}
	if b.store.writer.settling.done != done || b.tablesAboveLast() == 0 {
		t.Error("the store merges half the time after an event")
	}
}

// Closing while the merge is under way ends it, wherever it is.
func TestCloseWhileMerging(t *testing.T) {
	for range 20 {
		var now clock.Manual
		now.Set(1_700_000_000_000)
		fs := vfs.NewMem()
		b := newBench(t, Options{FS: fs, Dir: "s", Clock: &now})
		scatter(t, b, 2)
		b.pass(t, &now)
		if b.store.writer.settling.done == nil {
			t.Fatal("no merge to close under")
		}
		if err := b.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
