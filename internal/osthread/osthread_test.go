package osthread

import (
	"runtime"
	"testing"
)

// What is asked for needs no rights.
func TestPreferAndYield(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
	if err := Prefer(); err != nil {
		t.Errorf("got %v; want a preferred thread", err)
	}
	Yield()
	if n := testing.AllocsPerRun(100, Yield); n != 0 {
		t.Errorf("got %v allocations a yield; want none", n)
	}
}
