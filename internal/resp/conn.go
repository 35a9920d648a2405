package resp

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	flushBytes     = 64 << 10  // replies that are written without waiting for the end of the pipeline
	replyBytesKeep = 256 << 10 // a reply buffer larger than this is not kept
	batchEventsMax = 8192      // XADDs in one append
	batchBytesMax  = 4 << 20   // bytes of their arguments in one append
	clientNameMax  = 128       // bytes of a connection's name and of a library's
	nameBytesMax   = 32        // of a command's name

	// bufferSpaceRetry is what a client is told to wait whose command finds no memory. The rest of the command cannot be read
	// then, so the connection ends.
	bufferSpaceRetry = time.Second
)

// conn is one connection. It is served by a goroutine of its own or by the server's loop, and whichever does owns
// everything in it but mu and meta.
type conn struct {
	server        *Server
	nc            net.Conn // nil in the loop
	fd            int      // in the loop, else -1
	id            int64
	since         time.Time
	remote, local string
	in            *reader
	out           []byte

	proto   int    // 2 or 3
	allow   Allow  // what the client may do
	authed  bool   // the client may do anything at all
	closing bool   // after the replies are written
	leaving bool   // the loop, for a goroutine
	blocked string // the status that keeps commands from being served

	commandsRun int // in this run
	runs        int // since the connection moved to its goroutine or to the loop, or was slow
	slow        int // grows with slow runs, shrinks with others

	commandN, errorN int64 // since the last flush

	pending pending
	key     [][]byte
	answer  Answer

	mu struct {
		sync.Mutex
		nc net.Conn // as above, for those who end a read or the connection
	}
	meta atomic.Pointer[connMeta]
}

// connMeta is what CLIENT LIST of another connection shows. It is replaced, never changed.
type connMeta struct {
	name, libName, libVersion string
	proto                     int
}

func newConn(s *Server, nc net.Conn, id int64) *conn {
	limits := inputLimits{
		args:    s.options.ArgsMax,
		bulk:    s.options.BulkBytesMax,
		command: s.options.BulkBytesMax + commandOverheadBytes,
	}
	c := &conn{server: s, fd: -1, id: id, since: time.Now(), remote: nc.RemoteAddr().String(), local: nc.LocalAddr().String()}
	c.in = newReader(c, limits, &s.budget)
	c.attach(nc)
	c.reset()
	return c
}

// reset makes the connection as it was when it was opened.
func (c *conn) reset() {
	c.proto = 2
	c.authed = c.server.options.Authenticate == nil
	c.allow = 0
	if c.authed {
		c.allow = AllowRead | AllowWrite
	}
	c.meta.Store(&connMeta{proto: 2})
}

// attach makes nc what the connection reads and writes; nil while it is in the loop.
func (c *conn) attach(nc net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc, c.mu.nc = nc, nc
}

// interrupt ends the read that the connection's goroutine may be in. Any goroutine may call it.
func (c *conn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.nc != nil {
		_ = c.mu.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// abort closes the connection under its goroutine's feet. Any goroutine may call it.
func (c *conn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.nc != nil {
		_ = c.mu.nc.Close()
	}
}

// Read reads from the client. In the loop it does not wait.
func (c *conn) Read(dst []byte) (int, error) {
	if c.fd >= 0 {
		return readFD(c.fd, dst)
	}
	return c.nc.Read(dst)
}

// serve runs the connection, what was read before first, until it belongs into the loop (true), the client leaves or
// does not speak RESP, or the server drains.
func (c *conn) serve() (settled bool) {
	for start := time.Now(); ; start = time.Now() {
		if err := c.run(); err != nil || c.closing {
			return false
		}
		if c.settle(time.Since(start)) {
			return true
		}
		if err := c.in.fill(); err != nil {
			if errors.Is(err, errBufferSpace) {
				c.failWith(&BusyError{RetryAfter: bufferSpaceRetry})
				_ = c.flush()
			}
			return false
		}
	}
}

// finish gives back what the connection holds, once nobody serves it any more.
func (c *conn) finish() {
	c.pending.release()
	c.in.close()
	c.abort()
	c.server.forget(c)
}

// Who is served by whom.
const (
	loopCommandsMax = 8                      // commands of a pipeline that run in the loop
	loopRunMax      = 200 * time.Microsecond // for what a client sent at once; more is slow
	loopRunsMin     = 64                     // runs in a row, all short, before a connection joins the loop
	slowRun         = 16                     // what a slow run adds to conn.slow; every other takes 1 away
	slowMax         = 64                     // of conn.slow before a connection leaves the loop: the machine may be busy
)

// settle says, after a run that took d, whether the connection belongs to the other side: into the loop when it sends
// short commands one by one, out of it when one run in slowRun is slow.
func (c *conn) settle(d time.Duration) (move bool) {
	c.runs++
	if d > loopRunMax || c.commandsRun > loopCommandsMax {
		c.slow, c.runs = min(c.slow+slowRun, slowMax), 0
	} else {
		c.slow = max(c.slow-1, 0)
	}
	if c.fd >= 0 {
		move = c.slow >= slowMax
	} else {
		move = c.runs >= loopRunsMin && c.slow == 0 && c.in.start == c.in.end
	}
	if move {
		c.runs = 0
	}
	return move
}

// run runs every complete command in the read buffer and writes the replies.
func (c *conn) run() error {
	status, ok := c.server.options.Backend.Ready()
	if c.blocked = ""; !ok {
		c.blocked = status
	}
	c.commandsRun, c.leaving = 0, false
	for !c.closing {
		ok, err := c.in.next()
		if err != nil {
			c.commit()
			c.fail("ERR", err.Error())
			c.closing = true
			break
		}
		if !ok {
			break
		}
		spec := c.find(c.in.args[0])
		if c.fd >= 0 && (spec != nil && spec.adds || c.commandsRun == loopCommandsMax) {
			c.in.unread()
			c.leaving, c.runs, c.slow = true, 0, slowMax
			break
		}
		c.commandN++
		c.commandsRun++
		c.dispatch(spec, c.in.args)
		if len(c.out) >= flushBytes {
			if err := c.flush(); err != nil {
				return err
			}
			if c.leaving {
				break
			}
		}
	}
	c.commit()
	if c.server.draining.Load() && !c.leaving {
		c.closing = true
	}
	return c.flush()
}

// flush writes the replies. A client that does not take them within the write timeout is cut off.
func (c *conn) flush() error {
	s := c.server
	s.commandN.Add(c.commandN)
	if c.errorN > 0 {
		s.errorN.Add(c.errorN)
	}
	c.commandN, c.errorN = 0, 0
	if len(c.out) == 0 {
		return nil
	}
	if c.fd >= 0 {
		return c.flushLoop()
	}
	err := c.nc.SetWriteDeadline(time.Now().Add(s.options.WriteTimeout))
	if err == nil {
		_, err = c.nc.Write(c.out)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.slow.Add(1)
	}
	if c.out = c.out[:0]; cap(c.out) > replyBytesKeep {
		c.out = nil
	}
	return err
}

// flushLoop writes what the client takes at once. The rest waits for a goroutine.
func (c *conn) flushLoop() error {
	n, err := writeFD(c.fd, c.out)
	if err != nil {
		return err
	}
	c.leaving = c.leaving || n < len(c.out)
	if c.out = c.out[:copy(c.out, c.out[n:])]; len(c.out) == 0 && cap(c.out) > replyBytesKeep {
		c.out = nil
	}
	return nil
}

// fail replies with an error.
func (c *conn) fail(code, message string) {
	c.errorN++
	c.out = appendError(c.out, code, message)
}

// dispatch runs one command, or queues it when it is an XADD.
func (c *conn) dispatch(spec *command, args [][]byte) {
	if spec == nil || !spec.adds {
		c.commit() // replies come in the order of the commands
	}
	switch {
	case spec == nil:
		c.unknown(args)
	case !c.authed && !spec.open:
		c.refuse("NOAUTH", "Authentication required.")
	case spec.allow&^c.allow != 0:
		c.refuse("NOPERM", "this token does not allow the '"+spec.name+"' command")
	case spec.arity > 0 && len(args) != spec.arity || len(args) < -spec.arity:
		c.refuse("ERR", "wrong number of arguments for '"+spec.name+"' command")
	case c.blocked != "" && spec.data:
		c.refuse("LOADING", "Weir is "+oneLine(c.blocked))
	default:
		spec.run(c, args)
	}
}

// refuse fails a command in its turn: behind the replies of the XADDs before it.
func (c *conn) refuse(code, message string) {
	c.commit()
	c.fail(code, message)
}

// find returns the command called name, in any case, or nil.
func (c *conn) find(name []byte) *command {
	var lower [nameBytesMax]byte
	if len(name) > len(lower) {
		return nil
	}
	for i, b := range name {
		if b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	return c.server.commands[string(lower[:len(name)])]
}

func (c *conn) unknown(args [][]byte) {
	message := "unknown command '" + echo(args[0]) + "', with args beginning with: "
	for _, arg := range args[1:] {
		if len(message) > 2*echoBytesMax {
			break
		}
		message += "'" + echo(arg) + "' "
	}
	c.fail("ERR", message)
	if c.in.inline && isHTTP(args[0]) {
		// A page in a browser can make it POST to a port of this machine. The lines of its body would run as commands.
		c.closing = true
	}
}

// isHTTP recognises a line of an HTTP request that a RESP client never sends.
func isHTTP(word []byte) bool {
	switch string(word) {
	case "POST", "PUT", "Host:", "host:":
		return true
	}
	return false
}
