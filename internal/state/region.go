package state

import "unsafe"

// regionAlign is what slabs inside a region are aligned to, in bytes.
const regionAlign = 64

// slabOf interprets mem, which starts at a multiple of 8, as elements of T. T must hold no pointers: the garbage
// collector does not look into a region.
func slabOf[T any](mem []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/int(unsafe.Sizeof(zero)))
}

func alignUp(n, to int) int { return (n + to - 1) / to * to }
