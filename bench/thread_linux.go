package main

import (
	"syscall"
	"time"
	"unsafe"

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

// The waits below do not tell Go's runtime that they wait. It would look after each of them every 20 us, from a thread
// that takes a tenth of a core from what is measured, and let none go on before a place to run Go is free. What it
// cannot do meanwhile is collect garbage, so a process that waits like this has that switched off.

// sleepThread puts the calling thread to sleep. It may return early.
func sleepThread(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

func readThread(fd int, p []byte) (int, error) { return transferThread(unix.SYS_READ, fd, p) }

func writeThread(fd int, p []byte) (int, error) { return transferThread(unix.SYS_WRITE, fd, p) }

func transferThread(call uintptr, fd int, p []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
