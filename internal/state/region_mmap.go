//go:build unix && !race

package state

import (
	"fmt"
	"syscall"
)

// newRegion reserves size bytes of zeroed memory outside the Go heap. The system hands out pages when they are first
// touched, so a region costs what was used of it.
func newRegion(size int) ([]byte, error) {
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("cannot reserve %d bytes of memory: %w", size, err)
	}
	return mem, nil
}

// freeRegion gives a region back. Nothing may use it afterwards.
func freeRegion(mem []byte) error { return syscall.Munmap(mem) }
