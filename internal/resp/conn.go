package resp

import (
	"errors"
	"net"
	"os"
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
)

// conn is one connection. Its goroutine owns everything in it but meta.
type conn struct {
	server *Server
	nc     net.Conn
	id     int64
	since  time.Time
	in     *reader
	out    []byte

	proto   int   // 2 or 3
	allow   Allow // what the client may do
	authed  bool  // the client may do anything at all
	closing bool  // after the replies are written
	blocked string

	commandN, errorN int64 // since the last flush

	pending pending
	key     [][]byte
	answer  Answer

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
	c := &conn{server: s, nc: nc, id: id, since: time.Now(), in: newReader(nc, limits, &s.budget)}
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

// interrupt ends the read that the connection's goroutine may be in. Any goroutine may call it.
func (c *conn) interrupt() { _ = c.nc.SetReadDeadline(time.Unix(1, 0)) }

// serve runs the connection until the client leaves, does not speak RESP, or the server drains.
func (c *conn) serve() {
	defer func() {
		c.pending.release()
		c.in.close()
		_ = c.nc.Close()
	}()
	for !c.closing {
		if err := c.in.fill(); err != nil {
			if errors.Is(err, errBufferSpace) {
				c.fail("ERR", err.Error())
				_ = c.flush()
			}
			return
		}
		if err := c.run(); err != nil {
			return
		}
	}
}

// run runs every complete command in the read buffer and writes the replies.
func (c *conn) run() error {
	status, ok := c.server.options.Backend.Ready()
	if c.blocked = ""; !ok {
		c.blocked = status
	}
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
		c.commandN++
		c.dispatch(c.in.args)
		if len(c.out) >= flushBytes {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
	c.commit()
	if c.server.draining.Load() {
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

// fail replies with an error.
func (c *conn) fail(code, message string) {
	c.errorN++
	c.out = appendError(c.out, code, message)
}

// dispatch runs one command, or queues it when it is an XADD.
func (c *conn) dispatch(args [][]byte) {
	spec := c.find(args[0])
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
