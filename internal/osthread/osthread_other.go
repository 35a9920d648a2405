//go:build !linux

package osthread

// Prefer does nothing here.
func Prefer() error { return nil }

// Yield does nothing here.
func Yield() {}
