package resp

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirstream/weir/internal/osthread"
)

// loopEvents is how many ready connections the loop takes at once.
const loopEvents = 256

// errAgain says that a connection in the loop has nothing to read.
var errAgain = errors.New("nothing to read")

// loop serves on one goroutine all connections that send one short command at a time. A goroutine a connection costs
// such a command a fruitless read before the goroutine sleeps, and the scheduler's work to put it to sleep, to wake it
// and to wake another thread for its neighbours: more than the command itself. Here it costs one read and one write.
//
// What may wait does not belong here, because everybody behind it would wait too. XADD and long pipelines leave for a
// goroutine of their own before they run, and a connection whose commands turn out slow leaves afterwards: see settle.
//
// A connection in the loop is a bare descriptor that the runtime does not know. While commands come so densely that one
// wait finds several, the loop sleeps as a goroutine: the runtime polls its descriptor, and what that takes longer lets
// more of them gather. Otherwise it sleeps in the kernel, on a thread that the kernel prefers, so that a single command
// does not wait for Go's scheduler behind goroutines that compute.
type loop struct {
	server  *Server
	epoll   *os.File
	raw     syscall.RawConn
	fd      int // of epoll, while the loop runs
	wake    int // an eventfd, in epoll, that ends a sleep in the kernel
	stopped atomic.Bool
	events  [loopEvents]unix.EpollEvent

	alone bool // sleeping in the kernel
	calm  int  // waits in a row that found one command, after a while

	mu struct {
		sync.Mutex
		conns  map[int32]*conn // by descriptor
		closed bool
	}
}

func newLoop(s *Server) (*loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	l := &loop{server: s, epoll: os.NewFile(uintptr(fd), "epoll")}
	if l.raw, err = l.epoll.SyscallConn(); err != nil {
		_ = l.epoll.Close()
		return nil, err
	}
	l.mu.conns = map[int32]*conn{}
	if err := l.openWake(fd); err != nil {
		_ = l.epoll.Close()
		return nil, err
	}
	return l, nil
}

func (l *loop) openWake(epoll int) (err error) {
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(l.wake)}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, l.wake, &event); err != nil {
		return errors.Join(os.NewSyscallError("epoll_ctl", err), unix.Close(l.wake))
	}
	l.fd = epoll
	return nil
}

// interrupt makes run return. Any goroutine may call it.
func (l *loop) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return // the descriptors may be somebody else's by now
	}
	l.stopped.Store(true)
	_ = l.epoll.SetReadDeadline(time.Unix(1, 0))
	_, _ = unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

const (
	// denseWait separates a wait after which the next command is expected at once from one after which it is not.
	denseWait = 100 * time.Microsecond
	// calmWaits is how many waits in a row must be long for the loop to sleep in the kernel.
	calmWaits = 16
)

// wait returns how many connections have something to read. An error: interrupt was called.
func (l *loop) wait() (ready int, err error) {
	start := time.Now()
	if l.alone {
		ready, err = unix.EpollWait(l.fd, l.events[:], -1)
		if errors.Is(err, unix.EINTR) {
			ready, err = 0, nil
		}
	} else {
		err = l.raw.Read(func(fd uintptr) bool {
			n, err := unix.EpollWait(int(fd), l.events[:], 0)
			if ready = n; err != nil {
				ready = 0
			}
			return ready > 0
		})
	}
	if ready > 1 || time.Since(start) < denseWait {
		l.calm = 0
	} else {
		l.calm++
	}
	if alone := l.calm >= calmWaits; alone != l.alone {
		l.move(alone)
	}
	return ready, err
}

// move changes how the loop sleeps.
func (l *loop) move(alone bool) {
	l.alone = alone
	if !alone {
		runtime.UnlockOSThread()
		return
	}
	runtime.LockOSThread()
	if err := osthread.Prefer(); err != nil {
		l.server.options.Logger.Debug("the kernel does not let the RESP loop's thread run first", "err", err)
	}
}

// run serves until interrupt, then closes the connections that are left: none has a command under way.
func (l *loop) run() {
	for {
		ready, err := l.wait()
		if err != nil || l.stopped.Load() {
			break
		}
		for i := range l.events[:ready] {
			l.mu.Lock()
			c := l.mu.conns[l.events[i].Fd]
			l.mu.Unlock()
			if c != nil {
				l.step(c)
			}
		}
	}
	l.mu.Lock()
	l.mu.closed = true
	rest := make([]*conn, 0, len(l.mu.conns))
	for _, c := range l.mu.conns {
		rest = append(rest, c)
	}
	l.mu.Unlock()
	for _, c := range rest {
		l.drop(c)
	}
	_ = l.epoll.Close()
	_ = unix.Close(l.wake)
}

// step serves what one connection sent.
func (l *loop) step(c *conn) {
	start := time.Now()
	err := c.in.fill()
	if err == nil {
		err = c.run()
	}
	switch {
	case errors.Is(err, errAgain):
	case errors.Is(err, errBufferSpace) || c.leaving:
		l.release(c)
	case err != nil || c.closing:
		l.drop(c)
	case c.settle(time.Since(start)):
		l.release(c)
	}
}

// adopt takes c over from its goroutine, which must not touch it afterwards if the answer is true.
func (l *loop) adopt(c *conn) bool {
	tcp, ok := c.nc.(*net.TCPConn)
	if !ok {
		return false
	}
	fd, err := duplicate(tcp)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: int32(fd)}
	if l.mu.closed || control(l.raw, func(epoll int) error { return unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &event) }) != nil {
		_ = unix.Close(fd)
		return false
	}
	c.attach(nil)
	c.fd = fd
	_ = tcp.Close()
	l.mu.conns[int32(fd)] = c
	return true
}

// duplicate returns a descriptor of the same socket that the runtime does not know.
func duplicate(tcp *net.TCPConn) (fd int, err error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	err = control(raw, func(from int) (err error) {
		fd, err = unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	return fd, err
}

func control(raw syscall.RawConn, f func(fd int) error) error {
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// release gives c a goroutine of its own, which goes on with what was read and not yet run.
func (l *loop) release(c *conn) {
	fd := c.forgetFD(l)
	file := os.NewFile(uintptr(fd), "resp")
	nc, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		l.server.options.Logger.Warn("cannot move a RESP connection to a goroutine", "err", err)
		c.finish()
		return
	}
	c.attach(nc)
	l.server.running.Add(1)
	go l.server.own(c)
}

// drop closes c.
func (l *loop) drop(c *conn) {
	_ = unix.Close(c.forgetFD(l))
	c.finish()
}

// forgetFD takes c out of the loop.
func (c *conn) forgetFD(l *loop) (fd int) {
	fd = c.fd
	c.fd = -1
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.conns, int32(fd))
	_ = control(l.raw, func(epoll int) error { return unix.EpollCtl(epoll, unix.EPOLL_CTL_DEL, fd, nil) })
	return fd
}

// readFD reads without waiting. Package syscall, unlike x/sys/unix, tells the race detector that what happened before a
// write happened before the read at the other end, as package net does.
func readFD(fd int, dst []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, dst)
		switch {
		case n > 0:
			return n, nil
		case err == nil:
			return 0, io.EOF
		case err == syscall.EAGAIN:
			return 0, errAgain
		case err != syscall.EINTR:
			return 0, os.NewSyscallError("read", err)
		}
	}
}

// writeFD writes as much as goes without waiting.
func writeFD(fd int, src []byte) (int, error) {
	for {
		n, err := syscall.Write(fd, src)
		switch {
		case err == nil:
			return n, nil
		case err == syscall.EAGAIN:
			return 0, nil
		case err != syscall.EINTR:
			return 0, os.NewSyscallError("write", err)
		}
	}
}
