package state

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// life is one life of a store on a file system that fails once: events, epochs, flushes, a compaction, the end.
func (m *model) life(o Options) error {
	if err := m.tryOpen(o); err != nil {
		return err
	}
	log := m.log
	for i := range 3 {
		m.log = log[:len(log)*(i+1)/3]
		if err := m.tryCatchUp(); err != nil {
			return errors.Join(err, m.store.Close())
		}
		if _, err := m.lane.Commit(); err != nil {
			return errors.Join(err, m.store.Close())
		}
		if err := m.store.Flush(); err != nil {
			return errors.Join(err, m.store.Close())
		}
	}
	return errors.Join(m.store.Compact(context.Background()), m.store.Close())
}

// twin is m for a goroutine that may never end: it shares the log, which neither changes, and nothing else.
func (m *model) twin() *model {
	twin := &model{t: m.t, limits: m.limits, log: m.log}
	for _, c := range m.counters {
		copied := *c
		twin.counters = append(twin.counters, &copied)
	}
	return twin
}

// Whichever operation of the file system fails, once, what is on the disk then is opened again and counts right.
func TestFaults(t *testing.T) {
	eachSeed(t, 1, func(t *testing.T, r *rand.Rand) {
		stride := 5
		if os.Getenv("WEIR_SOAK") != "" {
			stride = 1
		}
		fired := 0
		for index := r.IntN(stride); ; index += stride {
			m := newModel(t, r, 2)
			m.must(m.store.Close())
			m.fs = vfs.NewCrashableMem()
			fault := &errorfs.Counter{Injector: errorfs.OnIndex(int32(index))}
			// Pebble ends the process on some errors, by Fatal or by a panic where it cannot sync the folder. Nothing
			// may be written after that.
			var dead atomic.Bool
			died, done := make(chan struct{}), make(chan error, 1)
			die := func() {
				if !dead.Swap(true) {
					close(died)
				}
				select {}
			}
			gone := errorfs.InjectorFunc(func(op errorfs.Op) error {
				if dead.Load() {
					select {}
				}
				err := fault.MaybeError(op)
				if err != nil && op.Kind == errorfs.OpFileSync && op.Path == "state" {
					die()
				}
				return err
			})
			o := Options{FS: errorfs.Wrap(m.fs, gone), Fatal: func(error) { die() }}
			m.append(450)
			twin := m.twin()
			go func() { done <- twin.life(o) }()
			var err error
			select {
			case err = <-done:
			case <-died:
				err = errors.New("died")
			}
			if fault.Load() == 0 {
				m.must(err)
				break
			}
			fired++
			_ = err // an error, a death, or a flush that was tried again: all that counts is what can be read now
			m.fs = m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
			m.open()
			m.checkSome(30)
			m.must(m.store.Close())
		}
		if fired < 10 {
			t.Errorf("only %d faults were met", fired)
		}
	})
}
