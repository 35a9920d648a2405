package resp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkAgainstRedis asks Redis for a hash of four fields and this server for a key of four windows, in turn and
// through redis-benchmark, and reports the ratio of the rates. The look-up behind the server is free, so the ratio is
// that of the protocol alone. One iteration is one run of each; use -benchtime 5x.
func BenchmarkAgainstRedis(b *testing.B) {
	port := startRedis(b)
	m := newMemory()
	m.counter.record = false
	s := serve(b, Options{Backend: m})
	_, own, _ := strings.Cut(s.address, ":")
	for _, c := range []struct{ depth, requests int }{{1, 100_000}, {100, 1_000_000}} {
		b.Run(fmt.Sprint("pipeline=", c.depth), func(b *testing.B) {
			var redis, weir float64
			for range b.N {
				r, w := rate(b, port, "h", c.depth, c.requests), rate(b, own, "seen:u1:a9", c.depth, c.requests)
				b.Logf("redis %.0f/s, weir %.0f/s, ratio %.2f", r, w, w/r)
				redis, weir = redis+r, weir+w
			}
			b.ReportMetric(redis/float64(b.N), "redis/s")
			b.ReportMetric(weir/float64(b.N), "weir/s")
			b.ReportMetric(weir/redis, "ratio")
		})
	}
}

// startRedis runs a Redis without persistence that holds the hash h, until the end of the benchmark.
func startRedis(b *testing.B) (port string) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		b.Skip("redis-server is not installed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	_, port, _ = strings.Cut(l.Addr().String(), ":")
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	command := exec.Command(path, "--port", port, "--save", "", "--appendonly", "no", "--dir", b.TempDir())
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	set := []byte(array("HSET", "h", "1m", "1", "1h", "22", "1d", "333", "7d", "4444"))
	for deadline := time.Now().Add(10 * time.Second); ; {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			_, _ = c.Write(set)
			reply := make([]byte, 4)
			_, err = io.ReadFull(c, reply)
			_ = c.Close()
			if err == nil && string(reply) == ":4\r\n" {
				return port
			}
		}
		if time.Now().After(deadline) {
			b.Fatalf("redis does not answer: %v", err)
		}
	}
}

// rate runs redis-benchmark and returns HGETALLs a second.
func rate(b *testing.B, port, key string, depth, requests int) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "redis-benchmark", "-p", port, "-n", strconv.Itoa(requests), "-P",
		strconv.Itoa(depth), "--csv", "HGETALL", key).Output()
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fields := strings.Split(lines[len(lines)-1], ",")
	if len(fields) < 2 {
		b.Fatalf("redis-benchmark: %s", out)
	}
	r, err := strconv.ParseFloat(strings.Trim(fields[1], `"`), 64)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// pipe is a connection that serves the same pipeline again and again and swallows the replies.
type pipe struct {
	net.Conn
	input []byte
	left  int // times
	at    int // in input
}

func (p *pipe) Read(dst []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := copy(dst, p.input[p.at:])
	if p.at += n; p.at == len(p.input) {
		p.at, p.left = 0, p.left-1
	}
	return n, nil
}

func (p *pipe) Write(src []byte) (int, error)      { return len(src), nil }
func (p *pipe) SetWriteDeadline(_ time.Time) error { return nil }
func (p *pipe) Close() error                       { return nil }

// BenchmarkCommand times one command of a pipeline, without the network.
func BenchmarkCommand(b *testing.B) {
	m := newMemory()
	m.counter.record = false
	s, err := New(Options{Backend: nullBackend{m}})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range [][]string{{"HGETALL", "seen:u1:a9"}, {"WEIR.COUNT", "seen", "u1", "a9"}, {"PING"},
		{"XADD", "null", "*", "id", "b-000000000001", "type", "impression", "time", "2026-11-30T12:00:00.123Z", "data",
			`{"user":"u00000001","ad":"a0001","campaign":"c042","device":"mobile","country":"de","price":1.25}`}} {
		b.Run(c[0], func(b *testing.B) {
			input := bytes.Repeat([]byte(array(c...)), 50)
			p := &pipe{input: input, left: b.N/50 + 1}
			b.ReportAllocs()
			b.ResetTimer()
			newConn(s, p, 1).serve()
			if p.left > 0 || s.errorN.Load() > 0 {
				b.Fatal("a command failed")
			}
		})
	}
}

// TestLookUpsDoNotAllocate wants that nothing on the way from a read to a write allocates.
func TestLookUpsDoNotAllocate(t *testing.T) {
	m := newMemory()
	m.counter.record = false
	s, err := New(Options{Backend: m})
	if err != nil {
		t.Fatal(err)
	}
	var input []byte
	for _, command := range [][]string{
		{"HGETALL", "seen:u1:a9"}, {"HGET", "seen:u1:a9", "1h"}, {"HMGET", "seen:u1:a9", "1h", "7d", "2h"},
		{"WEIR.COUNT", "seen", "u1", "a9"}, {"WEIR.COUNT", "seen", "u1", "a9", "ASOF", "1700000000000"}, {"PING"}, {"XLEN", "s"},
	} {
		input = append(input, array(command...)...)
	}
	p := &pipe{input: input, left: 1 << 30}
	c := newConn(s, p, 1)
	if n := testing.AllocsPerRun(1000, func() {
		if err := c.in.fill(); err != nil {
			t.Fatal(err)
		}
		if err := c.run(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a pipeline; want 0", n)
	}
	if c.errorN != 0 || s.errorN.Load() != 0 {
		t.Error("a command failed")
	}
}

func (p *pipe) RemoteAddr() net.Addr { return &net.TCPAddr{} }
func (p *pipe) LocalAddr() net.Addr  { return &net.TCPAddr{} }

// nullBackend has a stream called null that takes events and keeps none.
type nullBackend struct{ *memory }

func (n nullBackend) Stream(name []byte) (Stream, bool) { return nullStream{}, string(name) == "null" }

type nullStream struct{}

func (nullStream) Partitions() int              { return 1 }
func (nullStream) Len(int) int64                { return 0 }
func (nullStream) NewBatch() Batch              { return nullStream{} }
func (nullStream) Add([][]byte) error           { return nil }
func (nullStream) Commit(context.Context) error { return nil }
func (nullStream) ID(i int) (int, int64)        { return 0, int64(i) }
func (nullStream) Release()                     {}
