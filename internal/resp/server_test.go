package resp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// TestDialogue sends commands one by one to one connection and compares the bytes of the replies. A line of the
// script is sent as an inline command; what it wants has | for CR LF.
func TestDialogue(t *testing.T) {
	m := newMemory()
	c := dial(t, serve(t, Options{Backend: m, Version: "0.1.0"}))
	for _, step := range []struct{ send, want string }{
		{`PING`, `+PONG|`},
		{`ping "hello there"`, `$11|hello there|`},
		{`PING a b`, `-ERR wrong number of arguments for 'ping' command|`},
		{`ECHO "\x41\n'"`, "$3|A\n'|"},
		{`ECHO 'it\'s'`, `$4|it's|`},
		{`SELECT 0`, `+OK|`},
		{`SELECT 1`, `-ERR DB index is out of range: there is database 0 only|`},
		{`AUTH secret`, `-ERR AUTH <token> called without any token configured. Are you sure your configuration is correct?|`},
		{`AUTH default secret`, `+OK|`},
		{`CLIENT SETNAME me`, `+OK|`},
		{`CLIENT GETNAME`, `$2|me|`},
		{`CLIENT ID`, `:1|`},
		{`CLIENT SETINFO LIB-NAME x`, `+OK|`},
		{`CLIENT SETINFO LIB-VER 1.0`, `+OK|`},
		{`CLIENT SETINFO OTHER 1.0`, `-ERR unrecognized option 'OTHER' of CLIENT SETINFO|`},
		{`CLIENT SETNAME "a b"`, `-ERR Client names cannot contain spaces, newlines or special characters.|`},
		{`CLIENT NO-EVICT ON`, `+OK|`},
		{`CLIENT TRACKING ON`, `-ERR unknown subcommand 'TRACKING' of CLIENT, or a wrong number of arguments for it|`},
		{`COMMAND COUNT`, `:16|`},
		{`COMMAND INFO nothing`, `*1|*-1|`},
		{`COMMAND INFO hget`, `*1|*10|$4|hget|:3|*2|+readonly|+fast|:1|:1|:1|*0|*0|*0|*0|`},
		{`COMMAND DOCS nothing echo`, `*2|$4|echo|*6|$7|summary|$21|Returns its argument.|$5|since|$5|0.1.0|$5|group|$10|connection|`},
		{`COMMAND FOO`, `-ERR unknown subcommand 'FOO' of COMMAND|`},
		{`MULTI`, `-ERR unknown command 'MULTI', with args beginning with: |`},
		{`GET "a\r\nb" c`, `-ERR unknown command 'GET', with args beginning with: 'a??b' 'c' |`},
		{`XRANGE s - +`, `-ERR unknown command 'XRANGE', with args beginning with: 's' '-' '+' |`},
		{`CONFIG GET save`, `-ERR unknown command 'CONFIG', with args beginning with: 'GET' 'save' |`},

		{`XADD s * id e1 type view data '{"a":1}'`, `$3|1-0|`},
		{`XADD s * id e2 type view`, `$3|2-0|`},
		{`XADD s * id e1 type view`, `$3|1-0|`},
		{`XADD quads * id e1 type view segment abc`, `$3|1-3|`},
		{`XADD nope * id e1 type view`, `-ERR unknown stream 'nope'|`},
		{`XADD s 1-1 id e1 type view`, "-ERR " + errAddID.Error() + "|"},
		{`XADD s MAXLEN 5 * id e1 type view`, "-ERR " + errAddOption.Error() + "|"},
		{`XADD s nomkstream * id e1`, "-ERR " + errAddOption.Error() + "|"},
		{`XADD s * id e1 type`, "-ERR " + errAddPairs.Error() + "|"},
		{`XADD s * type`, `-ERR wrong number of arguments for 'xadd' command|`},
		{`XADD s * type view source x`, `-ERR missing_field id and type are required,  got neither|`},
		{`XLEN s`, `:2|`},
		{`XLEN quads`, `:1|`},
		{`XLEN quads:3`, `:1|`},
		{`XLEN quads:0`, `:0|`},
		{`XLEN quads:4`, `-ERR unknown partition '4' of stream 'quads': want 0 to 3|`},
		{`XLEN nope`, `-ERR unknown stream 'nope'|`},

		{`HGETALL seen:u1:a9`, `*8|$2|1m|$1|1|$2|1h|$2|22|$2|1d|$3|333|$2|7d|$4|4444|`},
		{`HGETALL seen:u1`, `-ERR too few key parts in 'seen:u1': counter 'seen' wants 2, each behind a colon|`},
		{`HGETALL seen`, `-ERR too few key parts in 'seen': counter 'seen' wants 2, each behind a colon|`},
		{`HGETALL other:u1:a9`, `-ERR unknown counter 'other'|`},
		{`HGETALL clicks:a:b:c`, `*2|$2|1h|$1|0|`},
		{`HGET seen:u1:a9 1h`, `$2|22|`},
		{`HGET seen:u1:a9 2h`, `$-1|`},
		{`HMGET seen:u1:a9 7d 2h 1m`, `*3|$4|4444|$-1|$1|1|`},
		{`WEIR.COUNT seen u1 a9`, `*5|*4|$2|1m|:1|:1|:1|*4|$2|1h|:22|:22|:1|*4|$2|1d|:333|:340|:0|*4|$2|7d|:4444|$-1|:0|:1700000000123|`},
		{`WEIR.COUNT clicks u1 ASOF 99`, `*2|*4|$2|1h|:0|:0|:1|$-1|`},
		{`weir.count clicks ASOF asof 99`, `*2|*4|$2|1h|:0|:0|:1|$-1|`},
		{`WEIR.COUNT clicks u1 ASOF -1`, `*2|*4|$2|1h|:0|:0|:1|$-1|`},
		{`WEIR.COUNT clicks u1 ASOF soon`, `-ERR ASOF must be milliseconds since 1970, got 'soon'|`},
		{`WEIR.COUNT clicks u1 u2`, `-ERR syntax error: want WEIR.COUNT clicks, 1 key parts and, if you like, ASOF ms|`},
		{`WEIR.COUNT seen u1`, `-ERR syntax error: want WEIR.COUNT seen, 2 key parts and, if you like, ASOF ms|`},
		{`WEIR.COUNT nope u1`, `-ERR unknown counter 'nope'|`},

		{`HELLO 4`, `-NOPROTO unsupported protocol version: want 2 or 3|`},
		{`HELLO 3 FOO`, `-ERR syntax error in HELLO option 'FOO'|`},
		{`HELLO 3 AUTH default x SETNAME you`, `%8|$6|server|$4|weir|$7|version|$5|7.0.0|$5|proto|:3|$2|id|:1|` +
			`$4|mode|$10|standalone|$4|role|$6|master|$7|modules|*0|$12|weir_version|$5|0.1.0|`},
		{`CLIENT GETNAME`, `$3|you|`},
		{`HGETALL seen:u1:a9`, `%4|$2|1m|$1|1|$2|1h|$2|22|$2|1d|$3|333|$2|7d|$4|4444|`},
		{`HGET seen:u1:a9 2h`, `_|`},
		{`WEIR.COUNT clicks u1`, `*2|*4|$2|1h|:0|:0|#t|_|`},
		{`RESET`, `+RESET|`},
		{`CLIENT GETNAME`, `$-1|`},
		{`HGET seen:u1:a9 2h`, `$-1|`},
		{`QUIT`, `+OK|`},
	} {
		c.send(step.send + "\r\n")
		t.Log(step.send)
		c.expect(strings.ReplaceAll(step.want, "|", "\r\n"))
	}
	c.expectEnd()
	if got := m.other.keys; strings.Join(got, " ") != "a:b:c u1 ASOF u1 u1" {
		t.Errorf("clicks was asked for %q", got)
	}
}

func TestPipelinedAddsAreOneAppend(t *testing.T) {
	m := newMemory()
	c := dial(t, serve(t, Options{Backend: m}))
	var send, want strings.Builder
	for i := range 10 {
		send.WriteString(array("XADD", "s", "*", "id", fmt.Sprint("e", i), "type", "view"))
		fmt.Fprintf(&want, "$%d\r\n%d-0\r\n", len(fmt.Sprint(i+1))+2, i+1)
		if i == 4 { // refused, in its place, and nobody else with it
			send.WriteString(array("XADD", "s", "*", "id", "bad", "source", "x"))
			want.WriteString("-ERR missing_field id and type are required,  got neither\r\n")
		}
	}
	send.WriteString(array("XLEN", "s") + array("XADD", "s", "*", "id", "e3", "type", "view") +
		array("XADD", "quads", "*", "id", "x", "type", "view") + array("PING"))
	want.WriteString(":10\r\n$3\r\n4-0\r\n$3\r\n1-0\r\n+PONG\r\n")
	c.send(send.String())
	c.expect(want.String())
	if got := fmt.Sprint(m.streams["s"].commits); got != "[10 1]" {
		t.Errorf("commits of %s events; want [10 1]: one append for the run before XLEN", got)
	}
}

func TestBackendErrors(t *testing.T) {
	m := newMemory()
	c := dial(t, serve(t, Options{Backend: m}))
	add := array("XADD", "s", "*", "id", "e", "type", "view")
	m.streams["s"].fail = fmt.Errorf("cannot append: %w", &BusyError{RetryAfter: 1500 * time.Microsecond})
	c.send(add + add)
	c.expect("-BUSY retry in 2 ms\r\n-BUSY retry in 2 ms\r\n")
	m.streams["s"].fail = errors.New("disk_full the disk\r\nis full")
	c.send(add)
	c.expect("-ERR disk_full the disk  is full\r\n")
	m.counter.fail = fmt.Errorf("x: %w", &BuildingError{Progress: 0.437})
	c.send("HGETALL seen:a:b\r\n")
	c.expect("-LOADING counter 'seen' is being rebuilt, 43% done\r\n")
	m.mu.Lock()
	m.status = "recovering"
	m.mu.Unlock()
	c.send("HGETALL seen:a:b\r\nPING\r\n")
	c.expect("-LOADING Weir is recovering\r\n+PONG\r\n")
	c.send(add + array("XLEN", "s"))
	c.expect("-LOADING Weir is recovering\r\n-LOADING Weir is recovering\r\n")
}

func TestAuth(t *testing.T) {
	m := newMemory()
	s := serve(t, Options{Backend: m, Authenticate: func(token []byte) (Allow, bool) {
		switch string(token) {
		case "reader":
			return AllowRead, true
		case "writer":
			return AllowWrite, true
		}
		return 0, false
	}})
	c := dial(t, s)
	add := array("XADD", "s", "*", "id", "e", "type", "view")
	for _, step := range []struct{ send, want string }{
		{"PING\r\n", "-NOAUTH Authentication required.\r\n"},
		{add, "-NOAUTH Authentication required.\r\n"},
		{"AUTH wrong\r\n", "-WRONGPASS invalid token\r\n"},
		{"HELLO 3 AUTH default wrong\r\nXLEN s\r\n", "-WRONGPASS invalid token\r\n-NOAUTH Authentication required.\r\n"},
		{"AUTH anybody reader\r\n", "+OK\r\n"},
		{"XLEN s\r\n" + add, ":0\r\n-NOPERM this token does not allow the 'xadd' command\r\n"},
		{"AUTH writer\r\n", "+OK\r\n"},
		{add + "XLEN s\r\n", "$3\r\n1-0\r\n-NOPERM this token does not allow the 'xlen' command\r\n"},
		{"RESET\r\nPING\r\n", "+RESET\r\n-NOAUTH Authentication required.\r\n"},
		{"QUIT\r\n", "+OK\r\n"},
	} {
		c.send(step.send)
		c.expect(step.want)
	}
	c.expectEnd()
	h := dial(t, s)
	h.send("HELLO\r\n")
	h.expect("-NOAUTH HELLO must be called")
}

func TestProtocolErrors(t *testing.T) {
	s := serve(t, Options{Backend: newMemory(), ArgsMax: 8, BulkBytesMax: 1000})
	for _, step := range []struct{ send, want string }{
		{"*9\r\n", "-ERR Protocol error: invalid multibulk length: got more than 8\r\n"},
		{"*99999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length: got more than 8\r\n"},
		{"*x\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
		{"*\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
		{"*1\r\n$1001\r\n", "-ERR Protocol error: invalid bulk length: got more than 1000\r\n"},
		{"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
		{"*1\r\n:1\r\n", "-ERR Protocol error: expected '$', got \":\"\r\n"},
		{"*1\r\n$4\r\nPINGxx", "-ERR Protocol error: bulk string is not followed by CR LF\r\n"},
		{"PING \"x\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"},
		{"PING \"x\"y\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"},
		{strings.Repeat("x", inlineBytesMax), "-ERR Protocol error: too big inline request\r\n"},
		{"POST / HTTP/1.1\r\nHost: x\r\n\r\nXADD s * id e type v\r\n",
			"-ERR unknown command 'POST', with args beginning with: '/' 'HTTP/1.1' \r\n"},
		{array("XADD", "s", "*", "id", "e", "type", "v") + "*x\r\n",
			"$3\r\n1-0\r\n-ERR Protocol error: invalid multibulk length\r\n"},
	} {
		c := dial(t, s)
		c.send("PING\r\n\r\n*0\r\n*-1\r\n" + step.send)
		c.expect("+PONG\r\n" + step.want)
		if rest, _ := io.ReadAll(c); len(rest) != 0 {
			t.Errorf("%q: got %q behind the error; want the end", step.send, rest)
		}
	}
}

func TestConnectionLimit(t *testing.T) {
	s := serve(t, Options{Backend: newMemory(), ConnectionsMax: 1})
	first := dial(t, s)
	first.send("PING\r\n")
	first.expect("+PONG\r\n")
	second := dial(t, s)
	second.expect("-ERR max number of clients reached\r\n")
	second.expectEnd()
	if stats := s.Stats(); stats.Connections != 1 || stats.Refused != 1 || stats.Accepted != 1 {
		t.Errorf("stats: %+v", stats)
	}
}

func TestLargeCommandInPieces(t *testing.T) {
	m := newMemory()
	s := serve(t, Options{Backend: m})
	c := dial(t, s)
	data := strings.Repeat("x", DefaultBulkBytesMax)
	command := array("XADD", "s", "*", "id", "e", "type", "v", "data", data)
	for len(command) > 0 {
		n := min(len(command), 100_003)
		c.send(command[:n])
		command = command[n:]
	}
	c.expect("$3\r\n1-0\r\n")
	for range shrinkReads + 2 { // a quiet connection gives the memory back
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
	}
	if got := s.Stats().BufferBytes; got != 0 {
		t.Errorf("buffers hold %d bytes; want 0", got)
	}
	if got := m.streams["s"].partitions[0][0]; got != "id=e type=v data="+data {
		t.Errorf("the event has %d bytes", len(got))
	}
}

func TestBufferSpaceIsShared(t *testing.T) {
	most := roundUp(1000 + commandOverheadBytes)
	s := serve(t, Options{Backend: newMemory(), BulkBytesMax: 1000, BufferBytesMax: int64(most)})
	half := array("ECHO", strings.Repeat("x", 1000))
	many := "*1000\r\n" + strings.Repeat("$900\r\n"+strings.Repeat("y", 900)+"\r\n", 50)
	a := dial(t, s)
	a.send("PING\r\n" + many)
	a.expect("+PONG\r\n")
	b := dial(t, s)
	b.send("PING\r\n" + many)
	b.expect("+PONG\r\n")
	small := dial(t, s)
	small.send(half)
	small.expect("$1000\r\n" + strings.Repeat("x", 1000) + "\r\n")
	if got := s.Stats().BufferBytes; got > int64(most) {
		t.Errorf("buffers hold %d bytes; want at most %d", got, most)
	}
}

// TestNoBufferSpaceIsBusy has two clients hold unfinished commands that do not fit together: one of them is told to come back,
// as where the stream itself has too much to do.
func TestNoBufferSpaceIsBusy(t *testing.T) {
	most := roundUp(1000 + commandOverheadBytes)
	s := serve(t, Options{Backend: newMemory(), BulkBytesMax: 1000, BufferBytesMax: int64(most)})
	unfinished := "*1000\r\n" + strings.Repeat("$900\r\n"+strings.Repeat("y", 900)+"\r\n", 65)
	replies := make(chan string)
	for range 2 {
		c := dial(t, s)
		c.send(unfinished)
		go func() {
			reply, _ := io.ReadAll(c)
			replies <- string(reply)
		}()
	}
	if got, want := <-replies, "-BUSY retry in 1000 ms\r\n"; got != want && !strings.HasPrefix(want, got) {
		t.Errorf("got %q; want %q", got, want)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	<-replies
}

// TestSlowClientIsCutOff has a client that sends and never reads: the server must not keep its replies for ever.
func TestSlowClientIsCutOff(t *testing.T) {
	s := serve(t, Options{Backend: newMemory(), WriteTimeout: 20 * time.Millisecond})
	c := dial(t, s)
	echo := array("ECHO", strings.Repeat("x", 100_000))
	for {
		if _, err := c.Write([]byte(echo)); err != nil {
			break // reset by the server, or the deadline of the test
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Fatal("the connection is still open")
	}
	if got := s.Stats().Slow; got != 1 {
		t.Errorf("got %d slow clients; want 1", got)
	}
}

// TestDrain shuts down while an append is under way: its reply still comes, then the connection closes.
func TestDrain(t *testing.T) {
	m := newMemory()
	stream := m.streams["s"]
	stream.gate, stream.entered = make(chan struct{}), make(chan struct{}, 1)
	s := serve(t, Options{Backend: m})
	idle, busy := dial(t, s), dial(t, s)
	idle.send("PING\r\n")
	idle.expect("+PONG\r\n")
	busy.send(array("XADD", "s", "*", "id", "e", "type", "v"))
	<-stream.entered
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	idle.expectEnd()
	close(stream.gate)
	busy.expect("$3\r\n1-0\r\n")
	busy.expectEnd()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestDrainByForce has a drain that runs out of time: the context of the append ends and so does the connection.
func TestDrainByForce(t *testing.T) {
	m := newMemory()
	stream := m.streams["s"]
	stream.gate, stream.entered = make(chan struct{}), make(chan struct{}, 1)
	s := serve(t, Options{Backend: m})
	c := dial(t, s)
	c.send(array("XADD", "s", "*", "id", "e", "type", "v"))
	<-stream.entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want that the time ran out", err)
	}
}

func TestOptions(t *testing.T) {
	for _, options := range []Options{
		{},
		{Backend: newMemory(), ArgsMax: -1},
		{Backend: newMemory(), BufferBytesMax: 1000},
	} {
		if _, err := New(options); err == nil {
			t.Errorf("%+v: got no error", options)
		}
	}
}

func TestInfoAndList(t *testing.T) {
	s := serve(t, Options{Backend: newMemory(), Version: "0.1.0"})
	c := dial(t, s)
	c.send("INFO\r\n")
	c.expect("$")
	text := make([]byte, 4096)
	n, err := c.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"redis_version:7.0.0\r\n", "weir_version:0.1.0\r\n", "loading:0\r\n", "weir_streams:2\r\n"} {
		if !strings.Contains(string(text[:n]), want) {
			t.Errorf("INFO lacks %q: %s", want, text[:n])
		}
	}
	c.send("CLIENT SETNAME me\r\nCLIENT LIST\r\n")
	n, err = c.Read(text)
	if err != nil || !strings.Contains(string(text[:n]), "id=1 addr=127.0.0.1:") || !strings.Contains(string(text[:n]), " name=me ") {
		t.Errorf("CLIENT LIST: %s, %v", text[:n], err)
	}
}
