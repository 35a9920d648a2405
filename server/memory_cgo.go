//go:build cgo

package server

// pebbleOutsideHeap says that block cache and write buffers come from C's malloc, which the collector does not see.
const pebbleOutsideHeap = true
