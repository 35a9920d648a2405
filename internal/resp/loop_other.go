//go:build !linux

package resp

import "errors"

// loop exists on Linux only. Elsewhere every connection keeps its goroutine.
type loop struct{}

func newLoop(*Server) (*loop, error) { return nil, nil }

func (*loop) interrupt()       {}
func (*loop) run()             {}
func (*loop) adopt(*conn) bool { return false }

func readFD(int, []byte) (int, error)  { return 0, errors.ErrUnsupported }
func writeFD(int, []byte) (int, error) { return 0, errors.ErrUnsupported }
