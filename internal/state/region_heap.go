//go:build !unix || race

package state

import "unsafe"

// newRegion allocates size bytes on the Go heap: the race detector does not see other memory. It starts at a multiple
// of 8, as the slabs need.
func newRegion(size int) ([]byte, error) {
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size), nil
}

// freeRegion leaves the memory to the garbage collector.
func freeRegion([]byte) error { return nil }
