package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// preferredSlice is how long the thread of an asker computes at most before others may: the shorter it is, the sooner
// the kernel lets it run.
const preferredSlice = 200 * time.Microsecond

// preferThread makes the kernel let the calling thread run soon after it wakes up. Kernels before 6.12 take no notice.
func preferThread() error {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return err
	}
	attr.Runtime = uint64(preferredSlice)
	return unix.SchedSetAttr(0, attr, 0)
}

// sleepThread puts the calling thread to sleep.
func sleepThread(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // an early end is noticed by whoever sleeps
}
