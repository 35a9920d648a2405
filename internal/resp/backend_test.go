package resp

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// memory is a backend that keeps events in maps and counts nothing: its counter answers what the test set.
type memory struct {
	mu      sync.Mutex
	streams map[string]*memoryStream
	counter memoryCounter
	other   memoryCounter
	status  string
}

type memoryStream struct {
	mu         sync.Mutex
	partitions [][]string        // "name=value name=value" of each event
	byID       map[string][2]int // id to partition, offset
	commits    []int             // events of each commit
	fail       error             // of the next commits
	gate       chan struct{}     // a commit waits for it, unless nil
	entered    chan struct{}     // a commit says that it waits, unless nil
	pool       []*memoryBatch
}

type memoryBatch struct {
	stream *memoryStream
	events []memoryEvent
	ids    [][2]int
}

type memoryEvent struct{ id, segment, text string }

type memoryCounter struct {
	parts   int
	windows []string
	answer  Answer
	fail    error
	mu      sync.Mutex
	keys    []string // of look-ups, parts joined by |
	record  bool
	delay   atomic.Int64 // ns that a look-up takes
	asOf    int64
}

func newMemory() *memory {
	m := &memory{streams: map[string]*memoryStream{
		"s":     {partitions: make([][]string, 1), byID: map[string][2]int{}},
		"quads": {partitions: make([][]string, 4), byID: map[string][2]int{}},
	}}
	m.counter.parts, m.counter.windows, m.counter.record = 2, []string{"1m", "1h", "1d", "7d"}, true
	m.counter.answer = Answer{
		Windows: []WindowAnswer{
			{Count: 1, Max: 1, Exact: true}, {Count: 22, Max: 22, Exact: true},
			{Count: 333, Max: 340}, {Count: 4444, Max: NoMax},
		},
		NextExpiry: 1_700_000_000_123,
	}
	m.other.parts, m.other.windows, m.other.record = 1, []string{"1h"}, true
	m.other.answer = Answer{
		Windows: []WindowAnswer{{Count: 0, Max: 0, Exact: true}}, NextExpiry: NoExpiry,
	}
	return m
}

func (m *memory) Stream(name []byte) (Stream, bool) {
	s, ok := m.streams[string(name)]
	return s, ok
}

func (m *memory) Counter(name []byte) (Counter, bool) {
	switch string(name) {
	case "seen":
		return &m.counter, true
	case "clicks":
		return &m.other, true
	}
	return nil, false
}

func (m *memory) Ready() (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status, m.status == ""
}

func (m *memory) AppendInfo(dst []byte) []byte { return append(dst, "weir_streams:2\r\n"...) }

func (s *memoryStream) Partitions() int { return len(s.partitions) }

func (s *memoryStream) Len(partition int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.partitions[partition]))
}

func (s *memoryStream) NewBatch() Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.pool); n > 0 {
		b := s.pool[n-1]
		s.pool = s.pool[:n-1]
		return b
	}
	return &memoryBatch{stream: s}
}

func (b *memoryBatch) Add(fields [][]byte) error {
	e := memoryEvent{}
	var text []string
	hasType := false
	for i := 0; i < len(fields); i += 2 {
		switch string(fields[i]) {
		case "id":
			e.id = string(fields[i+1])
		case "segment":
			e.segment = string(fields[i+1])
		case "type":
			hasType = true
		}
		text = append(text, string(fields[i])+"="+string(fields[i+1]))
	}
	if e.id == "" || !hasType {
		return &EventError{Code: "missing_field", Message: "id and type are required,\r\ngot neither"}
	}
	e.text = strings.Join(text, " ")
	b.events = append(b.events, e)
	return nil
}

func (b *memoryBatch) Commit(ctx context.Context) error {
	s := b.stream
	if s.gate != nil {
		s.entered <- struct{}{}
		select {
		case <-s.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits = append(s.commits, len(b.events))
	if s.fail != nil {
		return s.fail
	}
	for _, e := range b.events {
		at, ok := s.byID[e.id]
		if !ok {
			p := len(e.segment) % len(s.partitions)
			at = [2]int{p, len(s.partitions[p])}
			s.partitions[p] = append(s.partitions[p], e.text)
			s.byID[e.id] = at
		}
		b.ids = append(b.ids, at)
	}
	return nil
}

func (b *memoryBatch) ID(i int) (int, int64) { return b.ids[i][0], int64(b.ids[i][1]) }

func (b *memoryBatch) Release() {
	b.events, b.ids = b.events[:0], b.ids[:0]
	b.stream.mu.Lock()
	defer b.stream.mu.Unlock()
	b.stream.pool = append(b.stream.pool, b)
}

func (c *memoryCounter) KeyParts() int     { return c.parts }
func (c *memoryCounter) Windows() []string { return c.windows }

func (c *memoryCounter) Lookup(_ context.Context, key [][]byte, asOf int64, a *Answer) error {
	if c.record {
		c.mu.Lock()
		parts := make([]string, len(key))
		for i := range key {
			parts[i] = string(key[i])
		}
		c.keys = append(c.keys, strings.Join(parts, "|"))
		c.asOf = asOf
		c.mu.Unlock()
	}
	c.wait()
	if c.fail != nil {
		return c.fail
	}
	a.Windows = append(a.Windows[:0], c.answer.Windows...)
	a.NextExpiry = c.answer.NextExpiry
	return nil
}

// serving is a server of a test, on a port of its own.
type serving struct {
	*Server
	address string
	done    chan error
}

// serve starts a server and ends it with the test.
func serve(t testing.TB, options Options) *serving {
	t.Helper()
	s, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out := &serving{Server: s, address: l.Addr().String(), done: make(chan error, 1)}
	go func() { out.done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-out.done; err != ErrServerClosed {
			t.Errorf("Serve returned %v; want ErrServerClosed", err)
		}
	})
	return out
}

// talk is a client that sends bytes and compares the bytes of the replies.
type talk struct {
	t testing.TB
	net.Conn
}

func dial(t testing.TB, s *serving) *talk {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &talk{t, c}
}

func (c *talk) send(s string) {
	c.t.Helper()
	if _, err := c.Write([]byte(s)); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads as many bytes as want has.
func (c *talk) expect(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	n, err := readFull(c, got)
	if string(got[:n]) != want {
		c.t.Fatalf("got %q (%v); want %q", got[:n], err, want)
	}
}

// expectEnd wants the server to close the connection without another byte.
func (c *talk) expectEnd() {
	c.t.Helper()
	one := make([]byte, 1)
	if n, err := c.Read(one); n != 0 || err == nil {
		c.t.Fatalf("got byte %q, error %v; want the end of the connection", one[:n], err)
	}
}

func readFull(c net.Conn, buf []byte) (int, error) {
	at := 0
	for at < len(buf) {
		n, err := c.Read(buf[at:])
		at += n
		if err != nil {
			return at, err
		}
	}
	return at, nil
}

// array encodes a command.
func array(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b.String()
}

// wait is a look-up that takes its time.
func (c *memoryCounter) wait() {
	if d := c.delay.Load(); d > 0 {
		for start := time.Now(); time.Since(start) < time.Duration(d); {
		}
	}
}
