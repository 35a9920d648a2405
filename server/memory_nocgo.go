//go:build !cgo

package server

// pebbleOutsideHeap says that block cache and write buffers are Go memory, which the collector counts.
const pebbleOutsideHeap = false
