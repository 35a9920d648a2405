package eventlog

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/clock"
)

// guard keeps the disk from running full under the store, which would end the process: a WAL that cannot be written
// cannot be taken back.
//
// Appends pass it first. It grants them a budget of bytes that it has seen to be free above the reserve, and looks
// again when that is used up or old. Should a write meet a full disk all the same, because something else filled it,
// the ballast file is removed and the write is tried once more (vfs.OnDiskFull); appends are then refused until there is
// room for reserve and ballast.
type guard struct {
	fs      vfs.FS // unwrapped: removing the ballast must not wait for the writes that wait for it
	dir     string
	reserve int64
	ballast int64
	clock   clock.Clock
	changed func(full bool)

	budget    atomic.Int64 // bytes that may be admitted before the next look
	checkedMS atomic.Int64 // when it was granted
	full      atomic.Bool
	spent     atomic.Bool // the ballast is gone
	mu        sync.Mutex  // one look at a time
}

const (
	ballastFile = "BALLAST"

	budgetBytesMax = 64 << 20
	budgetShare    = 4    // of the room above the reserve, one part is granted at once
	budgetAgeMS    = 1000 // others write to the disk too
	// spaceFactor is what an admitted byte may take on the disk before anything is freed: the WAL, the table it is
	// flushed to, and a table that a compaction writes.
	spaceFactor = 3
)

// admit says whether n more bytes of records may be appended.
func (g *guard) admit(n int64) error {
	if g.reserve < 0 {
		return nil
	}
	need := n * spaceFactor
	if !g.full.Load() && g.budget.Add(-need) >= 0 && g.fresh() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.look(need) {
		return nil
	}
	return ErrDiskFull
}

func (g *guard) fresh() bool {
	age := g.clock.NowMS() - g.checkedMS.Load()
	return age >= 0 && age <= budgetAgeMS
}

// look asks the file system for its room, grants a budget less need, and reports whether there was enough.
func (g *guard) look(need int64) bool {
	g.checkedMS.Store(g.clock.NowMS())
	usage, err := g.fs.GetDiskUsage(g.dir)
	if err != nil {
		// The file system does not tell, or not now. Refusing everything would be worse than the risk.
		g.budget.Store(budgetBytesMax)
		g.set(false)
		return true
	}
	floor := g.reserve
	if g.spent.Load() {
		floor += max(g.ballast, 0)
	}
	room := int64(min(usage.AvailBytes, 1<<62)) - floor
	if room <= need {
		g.budget.Store(0)
		g.set(true)
		return false
	}
	if g.spent.Load() && g.placeBallast() == nil {
		g.spent.Store(false)
	}
	g.budget.Store(min(room/budgetShare, budgetBytesMax) - need)
	g.set(false)
	return true
}

func (g *guard) set(full bool) {
	if g.full.Swap(full) != full && g.changed != nil {
		g.changed(full)
	}
}

// emergency is called between a write that met a full disk and its second try.
func (g *guard) emergency() {
	g.budget.Store(0)
	g.spent.Store(true)
	g.set(true)
	// Where it fails there is nothing else to give up; the second try will tell.
	_ = g.fs.Remove(g.fs.PathJoin(g.dir, ballastFile))
}

// placeBallast makes the ballast file as long as it should be.
func (g *guard) placeBallast() error {
	if g.ballast <= 0 {
		return nil
	}
	path := g.fs.PathJoin(g.dir, ballastFile)
	f, err := g.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	err = f.Preallocate(0, g.ballast)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = g.fs.Remove(path)
	}
	return err
}

// open sets the ballast down, if there is room for it, and takes a first look.
func (g *guard) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spent.Store(g.ballast > 0)
	g.look(0)
}
