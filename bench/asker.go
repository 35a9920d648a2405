package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"time"
)

// asker is a connection that measures how long a node takes, and as little as possible of how long this process takes to
// notice: it has a thread of its own, waits in the kernel for its reply and for the instant of its next question, and
// the kernel lets it run as soon as it may. Its users' clients would be on other machines.
type asker struct {
	fd    int
	reply []byte
	head  []byte
}

// newAsker connects. The calling goroutine keeps its thread until it ends.
func newAsker(ctx context.Context, addr string) (*asker, error) {
	runtime.LockOSThread()
	if err := preferThread(); err != nil {
		return nil, fmt.Errorf("cannot make a thread run at once: %w", err)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("cannot ask over a %T", conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	a := &asker{reply: make([]byte, 64<<10)}
	var inner error
	err = raw.Control(func(fd uintptr) { a.fd, inner = syscall.Dup(int(fd)) })
	if err := errors.Join(err, inner); err != nil {
		return nil, err
	}
	return a, syscall.SetNonblock(a.fd, false)
}

func (a *asker) close() { _ = syscall.Close(a.fd) }

// ask sends one command, whose reply must be an array of that many elements of one line each.
func (a *asker) ask(command []byte, elements int) error {
	if _, err := writeThread(a.fd, command); err != nil {
		return fmt.Errorf("cannot ask: %w", err)
	}
	a.head = fmt.Appendf(a.head[:0], "*%d\r\n", elements)
	for got := 0; ; {
		n, err := readThread(a.fd, a.reply[got:])
		if err != nil || n <= 0 {
			return fmt.Errorf("the node hung up: %w", errors.Join(err, net.ErrClosed))
		}
		got += n
		reply := a.reply[:got]
		if len(reply) >= len(a.head) && !bytes.HasPrefix(reply, a.head) {
			return fmt.Errorf("got %.200q; want an array of %d", reply, elements)
		}
		// Each element is two lines: its length and itself.
		if bytes.Count(reply, []byte("\r\n")) == 1+2*elements {
			return nil
		}
	}
}

// sleepUntil returns at due.
func sleepUntil(due time.Time) {
	for wait := time.Until(due); wait > 0; wait = time.Until(due) {
		sleepThread(wait)
	}
}
