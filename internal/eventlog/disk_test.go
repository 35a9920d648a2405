package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/weirstream/weir/internal/event"
)

// The free-space guard: appends stop at the reserve, and go on by themselves when there is room.
func TestDiskReserve(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.DiskReserve = 100 << 20
	var told []bool
	o.Events.DiskFull = func(full bool) { told = append(told, full) }
	usage := func(mib uint64) { mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: mib << 20, TotalBytes: 1 << 40}) }
	usage(1000)
	l := mustOpen(t, o)
	defer mustClose(t, l)
	want := newOracle(o.Partitions)
	want.note(t, mustAppend(t, l, AckDisk, numberedRange(0, 10)...))
	usage(90)
	o.manual().Advance(2000) // the budget is no longer fresh
	if err := l.Append(within(t), batchesOf(2, numbered(10)), AckDisk); !errors.Is(err, ErrDiskFull) || !l.DiskFull() {
		t.Fatalf("append at the reserve: %v; want ErrDiskFull", err)
	}
	want.compare(t, l)
	usage(1000)
	want.note(t, mustAppend(t, l, AckDisk, numberedRange(10, 10)...))
	want.compare(t, l)
	if fmt.Sprint(told) != "[true false]" {
		t.Fatalf("told %v; want full, then not", told)
	}
}

// The budget runs out before the disk does, also when the clock stands still.
func TestDiskBudget(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.DiskReserve = 100 << 20
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 110 << 20, TotalBytes: 1 << 40})
	l := mustOpen(t, o)
	defer mustClose(t, l)
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 99 << 20, TotalBytes: 1 << 40})
	bytes := 0
	for n := 0; ; n++ {
		batches := []event.Batch{rawBatch(n*10, 10, 1000)}
		err := l.Append(within(t), batches, AckDisk)
		if errors.Is(err, ErrDiskFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes += 10_000; bytes > 10<<20 {
			t.Fatalf("%d bytes were taken where 10 MiB were free", bytes)
		}
	}
}

// cramped makes writes fail with ENOSPC from one write operation on, until the ballast is removed, or for good.
type cramped struct {
	writes  atomic.Int64
	full    atomic.Int64 // the write that finds the disk full
	freed   atomic.Bool  // space has returned
	refused atomic.Int64
	bed     *deathbed
}

func (c *cramped) inject(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpRemove:
		if strings.HasSuffix(op.Path, ballastFile) {
			c.freed.Store(true)
		}
		return nil
	case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpMkdirAll:
	default:
		return nil
	}
	if c.writes.Add(1) <= c.full.Load() || c.freed.Load() {
		return nil
	}
	c.refused.Add(1)
	return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
}

// The disk is found full by every write in turn. The ballast saves that write; the log goes on or refuses, and nothing
// acknowledged is lost.
func TestFullDiskAtEveryWrite(t *testing.T) {
	stride := int64(1)
	saved := 0
	for index := int64(0); ; index += stride {
		mem := vfs.NewCrashableMem()
		mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 41})
		c := &cramped{bed: newDeathbed()}
		c.full.Store(index)
		o := testOptions(errorfs.Wrap(mem, errorfs.InjectorFunc(c.inject)))
		o.Partitions, o.DiskReserve, o.BallastBytes, o.Fatal = 1, 1<<20, 1<<20, c.bed.fatal
		h := newHistory(t, 1)
		err := c.bed.run(func() error { return lifetime(o, h, 0) })
		h = h.clone(t)
		if err != nil && c.refused.Load() == 0 {
			t.Fatalf("write %d: error without cause: %v", index, err)
		}
		if c.freed.Load() && err == nil {
			saved++
		}
		after := testOptions(mem.CrashClone(vfs.CrashCloneCfg{}))
		after.Partitions = 1
		h.verify(t, after, fmt.Sprintf("disk full at write %d (%v)", index, err))
		if c.refused.Load() == 0 {
			break
		}
	}
	if saved == 0 {
		t.Fatal("the ballast never saved a write")
	}
	t.Logf("%d full disks were survived without a restart", saved)
}

// Without ballast a full disk is a crash; with space again the log opens and has all that was acknowledged.
func TestFullDiskCrashAndRecovery(t *testing.T) {
	mem := vfs.NewCrashableMem()
	bed := newDeathbed()
	c := &cramped{bed: bed}
	c.full.Store(1 << 40)
	o := testOptions(errorfs.Wrap(mem, bed.stopOnPanic(errorfs.InjectorFunc(c.inject))))
	o.Partitions, o.Fatal = 1, bed.fatal
	h := newHistory(t, 1)
	err := bed.run(func() error {
		l, err := Open(o)
		for n := 0; err == nil; n += 100 {
			if n == 1000 {
				c.full.Store(0)
			}
			err = h.append(l, AckDisk, numberedRange(n, 100)...)
		}
		return err
	})
	h = h.clone(t)
	if !errors.Is(err, ErrFailed) || h.acked[0] < 1000 {
		t.Fatalf("%d acknowledged, then %v; want 1000, then ErrFailed", h.acked[0], err)
	}
	after := testOptions(mem.CrashClone(vfs.CrashCloneCfg{}))
	after.Partitions = 1
	h.verify(t, after, "space returned")
}

// One bit is flipped in every part of every file of a log that was closed: what is read is right and complete, or an
// error says where it is not.
func TestFlippedBits(t *testing.T) {
	o, l, want := logOfFiles(t)
	mustClose(t, l)
	flipBits(t, o, want, len(want))
}

// The same for a log that was killed: the end of its WAL may be torn by the crash or be damaged, which nobody can tell
// apart, so the last group may be missing; nothing else may.
func TestFlippedBitsAfterKill(t *testing.T) {
	o, l, want := logOfFiles(t)
	killed := o
	killed.Dir = filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(killed.Dir, os.DirFS(o.Dir)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	flipBits(t, killed, want, len(want)-500)
}

// logOfFiles is a log on the real disk that has appended 3,000 events in groups of 500, the first 2,000 flushed.
func logOfFiles(t *testing.T) (Options, *Log, []sample) {
	t.Helper()
	o := testOptions(vfs.Default)
	o.Dir, o.Partitions = filepath.Join(t.TempDir(), "good"), 1
	l := mustOpen(t, o)
	want := newOracle(1)
	for n := 0; n < 3000; n += 500 {
		want.note(t, mustAppend(t, l, AckDisk, numberedRange(n, 500)...))
		if n == 1500 {
			flushAll(t, l)
		}
	}
	return o, l, want.partitions[0]
}

func flipBits(t *testing.T, o Options, want []sample, least int) {
	t.Helper()
	seen, reported := 0, 0
	bad := o
	bad.Dir = filepath.Join(t.TempDir(), "bad")
	for _, name := range filesOf(t, o.Dir) {
		good, err := os.ReadFile(filepath.Join(o.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range spread(len(good), soak(8, 100)) {
			if err := errors.Join(os.RemoveAll(bad.Dir), os.CopyFS(bad.Dir, os.DirFS(o.Dir))); err != nil {
				t.Fatal(err)
			}
			flipped := append([]byte{}, good...)
			flipped[at] ^= 1 << (at % 8)
			if err := os.WriteFile(filepath.Join(bad.Dir, name), flipped, 0o644); err != nil {
				t.Fatal(err)
			}
			bed := newDeathbed()
			bad.Fatal = bed.fatal
			seen++
			if err := bed.run(func() error { return readEqual(bad, want, least) }); err != nil {
				reported++
			}
			if p := bed.panicked.Load(); p != nil {
				t.Errorf("%s, byte %d of %d: %v", name, at, len(good), *p)
			}
		}
	}
	t.Logf("%d of %d flipped bits were reported; the others changed nothing", reported, seen)
	if reported == 0 {
		t.Fatal("no flipped bit was found")
	}
}

func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) < 5 {
		t.Fatalf("files %v: %v", names, err)
	}
	return names
}

// spread returns up to n places in 0..length-1.
func spread(length, n int) (places []int) {
	for i := range min(n, length) {
		places = append(places, i*length/min(n, length))
	}
	return places
}

// readEqual opens a log and reads its partition, whose first least events at least must be there and right, or there
// must be an error. It panics where neither is so.
func readEqual(o Options, want []sample, least int) error {
	l, err := Open(o)
	if err != nil {
		return err
	}
	defer l.Close(context.Background())
	r := l.Partition(0).NewReader(0)
	defer r.Close()
	var e event.Event
	for offset := int64(0); ; {
		frame, ok, err := r.Next(1 << 40)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		for records := frame.Records; len(records) > 0; offset++ {
			if records, err = e.Decode(records); err != nil {
				return err
			}
			if sampleOf(&e) != want[offset] {
				panic(fmt.Sprintf("offset %d: got %+v; want %+v", offset, sampleOf(&e), want[offset]))
			}
		}
	}
	if r.Offset() < int64(least) {
		panic(fmt.Sprintf("%d events; want %d", r.Offset(), least))
	}
	return nil
}

// A frame whose bytes are wrong under a right block checksum: written so by a bug or by bad RAM.
func TestBadFrame(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Partitions = 1
	l := mustOpen(t, o)
	mustAppend(t, l, AckDisk, numberedRange(0, 1500)...)
	mustClose(t, l)
	l = mustOpen(t, o) // with an empty ring
	defer mustClose(t, l)
	p := l.Partition(0)
	value, err := get(p.db, frameKey(nil, 512))
	if err != nil || value == nil {
		t.Fatalf("frame 512: %v", err)
	}
	check := func(what string, is error) {
		t.Helper()
		r := p.NewReader(0)
		defer r.Close()
		for range 2 {
			if got, ok := readFrame(t, r, 512); ok && len(got) != 512 {
				t.Fatalf("%s: the frame before is cut to %d", what, len(got))
			}
		}
		_, _, err := r.Next(1 << 40)
		var c *Corruption
		if !errors.As(err, &c) || c.Offset != 512 || c.Partition != 0 || !errors.Is(err, ErrCorrupt) || is != nil && !errors.Is(err, is) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	put := func(key, value []byte) {
		t.Helper()
		if err := p.db.Set(key, value, nil); err != nil {
			t.Fatal(err)
		}
	}
	bad := append([]byte{}, value...)
	bad[frameHeaderBytes+10] ^= 4
	put(frameKey(nil, 512), bad)
	check("flipped bit", nil)
	bad = append([]byte{}, value...)
	bad[0] = 9
	put(frameKey(nil, 512), bad)
	check("unknown version", ErrUnknownFormat)
	other, err := get(p.db, frameKey(nil, 1024))
	if err != nil {
		t.Fatal(err)
	}
	put(frameKey(nil, 512), other)
	check("frame under another's key", nil)
	if err := p.db.Delete(frameKey(nil, 512), nil); err != nil {
		t.Fatal(err)
	}
	check("missing frame", nil)
}

func TestSwappedFolders(t *testing.T) {
	o := testOptions(vfs.Default)
	o.Dir = t.TempDir()
	mustClose(t, mustOpen(t, o))
	at := func(name string) string { return filepath.Join(o.Dir, name) }
	if err := errors.Join(os.Rename(at("p0000"), at("x")), os.Rename(at("p0001"), at("p0000")), os.Rename(at("x"), at("p0001"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("swapped folders: %v", err)
	}
}

// What a stream had is not begun anew where a partition's folder, or the file that makes it a store, is gone.
func TestLostPartition(t *testing.T) {
	for _, lost := range []string{"p0001", "p0001/marker.manifest.*", "p0001/marker.*"} {
		o := testOptions(vfs.Default)
		o.Dir = t.TempDir()
		l := mustOpen(t, o)
		mustAppend(t, l, AckDisk, numberedRange(0, 500)...)
		flushAll(t, l)
		mustClose(t, l)
		paths, err := filepath.Glob(filepath.Join(o.Dir, lost))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v %v", lost, paths, err)
		}
		for _, path := range paths {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		before := tablesOf(t, o.Dir)
		if l, err := Open(o); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v; want %v", lost, err, ErrCorrupt)
			if err == nil {
				mustClose(t, l)
			}
		}
		if after := tablesOf(t, o.Dir); !slices.Equal(before, after) {
			t.Errorf("%s: got tables %v; want all of %v", lost, after, before)
		}
	}
}

// A start that was interrupted before all partitions were made goes on with the next one.
func TestInterruptedFirstStart(t *testing.T) {
	o := testOptions(vfs.Default)
	o.Dir = t.TempDir()
	mustClose(t, mustOpen(t, o))
	if err := errors.Join(os.Remove(filepath.Join(o.Dir, streamFile)), os.RemoveAll(filepath.Join(o.Dir, "p0001"))); err != nil {
		t.Fatal(err)
	}
	mustClose(t, mustOpen(t, o))
	mustClose(t, mustOpen(t, o))
}

func tablesOf(t *testing.T, dir string) []string {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "p*", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	return tables
}
