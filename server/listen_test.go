package server

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestListenCureFitsTheFailure(t *testing.T) {
	for _, c := range []struct {
		cause syscall.Errno
		want  string
	}{
		{syscall.EADDRINUSE, "another node"},
		{syscall.EACCES, "below 1024"},
		{syscall.EADDRNOTAVAIL, "no such address"},
		{syscall.EINVAL, "another address"},
	} {
		err := &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", c.cause)}
		if got := listenCure(err); !strings.Contains(got, c.want) {
			t.Errorf("%v: got %q; want it to say %q", err, got, c.want)
		}
	}
}
