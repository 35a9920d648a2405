package resp

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

func (l *loop) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.conns)
}

// settleIn sends commands one by one until the connection is in the loop. On a busy machine some runs are slow, so
// their number is not known.
func settleIn(t *testing.T, s *serving, c *talk, size int) {
	t.Helper()
	for range 100_000 {
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
		if s.loop.size() >= size {
			return
		}
	}
	t.Fatal("the connection did not join the loop")
}

// TestLoopJourney takes a connection into the loop and out of it again for every reason that there is.
func TestLoopJourney(t *testing.T) {
	m := newMemory()
	s := serve(t, Options{Backend: m})
	c := dial(t, s)

	settleIn(t, s, c, 1)
	c.send("HGET seen:u1:a9 1h\r\n")
	c.expect("$2\r\n22\r\n")

	// An event leaves the loop, and what came before and after it is answered in order.
	c.send("PING\r\n" + array("XADD", "s", "*", "id", "e1", "type", "view") + "XLEN s\r\n")
	c.expect("+PONG\r\n$3\r\n1-0\r\n:1\r\n")
	if got := s.loop.size(); got != 0 {
		t.Errorf("%d connections in the loop after XADD; want 0", got)
	}

	// So does a pipeline.
	settleIn(t, s, c, 1)
	c.send(strings.Repeat("PING\r\n", 1000))
	c.expect(strings.Repeat("+PONG\r\n", 1000))

	// And a client that does not take its replies at once.
	settleIn(t, s, c, 1)
	text := strings.Repeat("x", 1<<20)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 8 {
			_, _ = c.Write([]byte(array("ECHO", text)))
		}
	}()
	for range 8 {
		c.expect("$1048576\r\n" + text + "\r\n")
	}
	<-done

	// A command in pieces, half of it in the loop.
	settleIn(t, s, c, 1)
	c.send("*2\r\n$4\r\nEC")
	c.send("HO\r\n$3\r\na")
	c.send("bc\r\n")
	c.expect("$3\r\nabc\r\n")

	settleIn(t, s, c, 1)
	c.send("QUIT\r\n")
	c.expect("+OK\r\n")
	c.expectEnd()

	p := dial(t, s)
	settleIn(t, s, p, 1)
	p.send("*x\r\n")
	p.expect("-ERR Protocol error: invalid multibulk length\r\n")
	p.expectEnd()
}

// TestLoopDrains shuts down with connections in the loop.
func TestLoopDrains(t *testing.T) {
	s := serve(t, Options{Backend: newMemory()})
	var all []*talk
	for i := range 3 {
		c := dial(t, s)
		settleIn(t, s, c, i+1)
		all = append(all, c)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		c.expectEnd()
	}
	if stats := s.Stats(); stats.Connections != 0 || stats.BufferBytes != 0 {
		t.Errorf("stats after the drain: %+v", stats)
	}
}

// TestSlowLookUpsLeaveTheLoop has look-ups that wait: after a few of them the connection must have a goroutine, so
// that it keeps nobody else waiting.
func TestSlowLookUpsLeaveTheLoop(t *testing.T) {
	m := newMemory()
	s := serve(t, Options{Backend: m})
	c := dial(t, s)
	settleIn(t, s, c, 1)
	m.counter.delay.Store(int64(2 * loopRunMax))
	for range slowMax/slowRun + 1 {
		c.send("HGET seen:u1:a9 1h\r\n")
		c.expect("$2\r\n22\r\n")
	}
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
	if got := s.loop.size(); got != 0 {
		t.Errorf("%d connections in the loop; want 0", got)
	}
}

// TestManyConnections has clients that mix events, look-ups and pipelines, so that connections move all the time.
func TestManyConnections(t *testing.T) {
	m := newMemory()
	s := serve(t, Options{Backend: m})
	var all sync.WaitGroup
	for i := range 8 {
		c := dial(t, s)
		all.Go(func() {
			for j := range 300 {
				switch {
				case j%100 == 99:
					c.send(array("XADD", "s", "*", "id", fmt.Sprint(i, "-", j), "type", "view"))
					if b := make([]byte, 64); c.readLine(b) == 0 || b[0] != '$' || c.readLine(b) == 0 {
						t.Error("no id")
						return
					}
				case j%150 == 149:
					c.send(strings.Repeat("PING\r\n", 50))
					c.expect(strings.Repeat("+PONG\r\n", 50))
				default:
					c.send("HGET seen:u1:a9 1d\r\n")
					c.expect("$3\r\n333\r\n")
				}
			}
		})
	}
	all.Wait()
	if got := m.streams["s"].Len(0); got != 8*3 {
		t.Errorf("%d events; want 24", got)
	}
}

// readLine reads up to and with a line feed, byte by byte.
func (c *talk) readLine(b []byte) (n int) {
	for n < len(b) {
		if _, err := readFull(c, b[n:n+1]); err != nil {
			return 0
		}
		if n++; b[n-1] == '\n' {
			return n
		}
	}
	return n
}

// A loop that sleeps in the kernel serves and ends as one that sleeps as a goroutine does.
func TestCalmLoop(t *testing.T) {
	s := serve(t, Options{Backend: newMemory()})
	l, err := newLoop(s.Server)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.move(true)
		l.run()
	}()
	server, client := tcpPair(t)
	c := newConn(s.Server, server, 1)
	if !l.adopt(c) {
		t.Fatal("the loop does not take a connection")
	}
	if _, err := client.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, len("+PONG\r\n"))
	if _, err := io.ReadFull(client, reply); err != nil || string(reply) != "+PONG\r\n" {
		t.Errorf("got %q, %v; want +PONG", reply, err)
	}
	l.interrupt()
	<-done
	l.interrupt() // of one that has ended
}

// tcpPair returns both ends of a connection.
func tcpPair(t *testing.T) (server, client net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if client, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if server, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return server, client
}
