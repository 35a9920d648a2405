package state

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/slide"
)

// A damaged file costs the look-ups that need it an error, and nobody else anything: the process lives.
func TestDamagedFileFailsLookups(t *testing.T) {
	const users = 2000
	good := filepath.Join(t.TempDir(), "good")
	o := Options{FS: vfs.Default, Dir: good, DeltaBytes: 8 << 20, LookupBytes: -1}
	b := newBench(t, o)
	b.fill(t, rand.New(rand.NewPCG(1, 2)), 3*users, users, 1_700_000_000_000, 1000)
	if err := errors.Join(b.store.Compact(t.Context()), b.store.Close()); err != nil {
		t.Fatal(err)
	}
	o.Dir = filepath.Join(t.TempDir(), "bad")
	if err := os.CopyFS(o.Dir, os.DirFS(good)); err != nil {
		t.Fatal(err)
	}
	flipMiddle(t, largestTable(t, o.Dir))
	o.Fatal = func(err error) { t.Errorf("the process ends: %v", err) }
	store, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	counter, err := store.Counter(store.Catalog()[0], slide.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	lane, err := store.NewLane(LaneOptions{Counters: []*Counter{counter}, Lookups: true})
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for user := range uint64(users) {
		var s Scratch
		var a slide.Answer
		key := b.keyOf(user*0x9e3779b97f4a7c15, uint32(user*0x9e3779b97f4a7c15>>32)%1000)
		_, err := lane.Lookup(counter, key, &slide.Query{Windows: b.windows, AsOf: 1_700_000_002_000}, &s, &a)
		if err != nil && !pebble.IsCorruptionError(err) {
			t.Fatalf("got %v; want corruption", err)
		}
		if err != nil {
			failed++
		}
	}
	if failed == 0 || failed > users/10 {
		t.Errorf("%d of %d look-ups failed; want those in one block", failed, users)
	}
}

// largestTable returns the path of the largest file of a store.
func largestTable(t *testing.T, dir string) (path string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables in %s: %v", dir, err)
	}
	most := int64(-1)
	for _, table := range tables {
		info, err := os.Stat(table)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > most {
			path, most = table, info.Size()
		}
	}
	return path
}

// flipMiddle flips a bit in the middle of a file.
func flipMiddle(t *testing.T, path string) {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	body[len(body)/3] ^= 4
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
}
