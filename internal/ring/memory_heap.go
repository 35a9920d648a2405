//go:build !unix || race

package ring

// OffHeap says that the ring's memory is the Go heap's: the race detector does not see mapped memory.
const OffHeap = false

func mapMemory(bytes int) ([]byte, error) { return make([]byte, bytes), nil }

func unmapMemory([]byte) {}
