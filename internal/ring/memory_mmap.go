//go:build unix && !race

package ring

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// OffHeap says that the ring's memory is not the Go heap's.
const OffHeap = true

// mapMemory returns zeroed memory from the system. It is not unix.Mmap, which keeps a Go map of its mappings.
func mapMemory(bytes int) ([]byte, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), bytes), nil
}

func unmapMemory(mem []byte) {
	// It fails only for an address that is not mapped, which would be a mistake of this package.
	_ = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)))
}
