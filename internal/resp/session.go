package resp

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// redisVersion is the version of Redis whose commands and reply forms the server follows: clients choose by it what
// they send.
const redisVersion = "7.0.0"

func runPing(c *conn, args [][]byte) {
	switch len(args) {
	case 1:
		c.out = appendStatus(c.out, "PONG")
	case 2:
		c.out = appendBulk(c.out, args[1])
	default:
		c.fail("ERR", "wrong number of arguments for 'ping' command")
	}
}

func runEcho(c *conn, args [][]byte) { c.out = appendBulk(c.out, args[1]) }

func runQuit(c *conn, _ [][]byte) {
	c.out = appendStatus(c.out, "OK")
	c.closing = true
}

func runReset(c *conn, _ [][]byte) {
	c.reset()
	c.out = appendStatus(c.out, "RESET")
}

func runSelect(c *conn, args [][]byte) {
	if string(args[1]) != "0" {
		c.fail("ERR", "DB index is out of range: there is database 0 only")
		return
	}
	c.out = appendStatus(c.out, "OK")
}

// runHello answers HELLO [2|3 [AUTH user token] [SETNAME name]]. Nothing changes unless everything is right.
func runHello(c *conn, args [][]byte) {
	proto, name, authed, allow := c.proto, c.meta.Load().name, c.authed, c.allow
	if len(args) > 1 {
		switch string(args[1]) {
		case "2", "3":
			proto = int(args[1][0] - '0')
		default:
			c.fail("NOPROTO", "unsupported protocol version: want 2 or 3")
			return
		}
	}
	for i := 2; i < len(args); {
		switch left := len(args) - i - 1; {
		case equalFold(args[i], "auth") && left >= 2:
			if allow, authed = c.authenticate(args[i+2], true); !authed {
				return
			}
			i += 3
		case equalFold(args[i], "setname") && left >= 1:
			if !c.checkName(args[i+1]) {
				return
			}
			name = string(args[i+1])
			i += 2
		default:
			c.fail("ERR", "syntax error in HELLO option '"+echo(args[i])+"'")
			return
		}
	}
	if !authed {
		c.fail("NOAUTH", "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH "+
			"<user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	c.proto, c.authed, c.allow = proto, authed, allow
	c.setMeta(func(m *connMeta) { m.name, m.proto = name, proto })
	c.appendHello()
}

func (c *conn) appendHello() {
	out := appendMap(c.out, c.proto, 8)
	pair := func(name, value string) { out = appendBulk(appendBulk(out, name), value) }
	pair("server", "weir")
	pair("version", redisVersion)
	out = appendInt(appendBulk(out, "proto"), int64(c.proto))
	out = appendInt(appendBulk(out, "id"), c.id)
	pair("mode", "standalone")
	pair("role", "master")
	out = appendArray(appendBulk(out, "modules"), 0)
	pair("weir_version", c.server.options.Version)
	c.out = out
}

// runAuth answers AUTH token and AUTH user token.
func runAuth(c *conn, args [][]byte) {
	if len(args) > 3 {
		c.fail("ERR", "syntax error: want AUTH token")
		return
	}
	allow, ok := c.authenticate(args[len(args)-1], len(args) == 3)
	if !ok {
		return
	}
	c.allow, c.authed = allow, true
	c.out = appendStatus(c.out, "OK")
}

// authenticate returns what the token's bearer may do, or replies with the error. Without tokens in the configuration
// everybody is the default user, who needs no password: a client that sends a user name gets along, as with Redis.
func (c *conn) authenticate(token []byte, withUser bool) (Allow, bool) {
	check := c.server.options.Authenticate
	if check == nil {
		if withUser {
			return c.allow, true
		}
		c.fail("ERR", "AUTH <token> called without any token configured. Are you sure your configuration is correct?")
		return 0, false
	}
	allow, ok := check(token)
	if !ok {
		c.fail("WRONGPASS", "invalid token")
	}
	return allow, ok
}

// checkName says whether name can name a connection: it is shown in a list of words.
func (c *conn) checkName(name []byte) bool {
	if len(name) > clientNameMax {
		c.fail("ERR", fmt.Sprintf("a client's name has at most %d bytes, got %d", clientNameMax, len(name)))
		return false
	}
	for _, b := range name {
		if b < '!' || b > '~' {
			c.fail("ERR", "Client names cannot contain spaces, newlines or special characters.")
			return false
		}
	}
	return true
}

func (c *conn) setMeta(change func(*connMeta)) {
	next := *c.meta.Load()
	change(&next)
	c.meta.Store(&next)
}

// runClient answers the subcommands of CLIENT that client libraries send. There is no TRACKING: it would promise
// invalidations.
func runClient(c *conn, args [][]byte) {
	sub, rest := args[1], args[2:]
	switch {
	case equalFold(sub, "setname") && len(rest) == 1:
		if c.checkName(rest[0]) {
			name := string(rest[0])
			c.setMeta(func(m *connMeta) { m.name = name })
			c.out = appendStatus(c.out, "OK")
		}
	case equalFold(sub, "getname") && len(rest) == 0:
		if name := c.meta.Load().name; name != "" {
			c.out = appendBulk(c.out, name)
		} else {
			c.out = appendNull(c.out, c.proto)
		}
	case equalFold(sub, "id") && len(rest) == 0:
		c.out = appendInt(c.out, c.id)
	case equalFold(sub, "setinfo") && len(rest) == 2:
		c.setInfo(rest[0], rest[1])
	case equalFold(sub, "info") && len(rest) == 0:
		c.out = appendText(c.out, c.proto, c.describe(nil, time.Now()))
	case equalFold(sub, "list"):
		c.list()
	case (equalFold(sub, "no-evict") || equalFold(sub, "no-touch")) && len(rest) == 1:
		c.out = appendStatus(c.out, "OK") // there is neither eviction nor a last access to touch
	default:
		c.failSubcommand("CLIENT, or a wrong number of arguments for it", sub)
	}
}

func (c *conn) setInfo(what, value []byte) {
	if !c.checkName(value) {
		return
	}
	text := string(value)
	switch {
	case equalFold(what, "lib-name"):
		c.setMeta(func(m *connMeta) { m.libName = text })
	case equalFold(what, "lib-ver"):
		c.setMeta(func(m *connMeta) { m.libVersion = text })
	default:
		c.fail("ERR", "unrecognized option '"+echo(what)+"' of CLIENT SETINFO")
		return
	}
	c.out = appendStatus(c.out, "OK")
}

// list answers CLIENT LIST.
func (c *conn) list() {
	now := time.Now()
	var text []byte
	c.server.connections(func(other *conn) { text = other.describe(text, now) })
	c.out = appendText(c.out, c.proto, text)
}

// describe appends the connection's line of CLIENT LIST. Any goroutine may call it.
func (c *conn) describe(dst []byte, now time.Time) []byte {
	m := c.meta.Load()
	return fmt.Appendf(dst, "id=%d addr=%s laddr=%s name=%s age=%d db=0 resp=%d lib-name=%s lib-ver=%s\n", c.id,
		c.remote, c.local, m.name, int64(math.Max(0, now.Sub(c.since).Seconds())), m.proto, m.libName,
		m.libVersion)
}

// runInfo answers INFO; sections may be named and are all given.
func runInfo(c *conn, _ [][]byte) {
	s := c.server
	stats := s.Stats()
	loading := "0"
	if c.blocked != "" {
		loading = "1"
	}
	text := []byte("# Server\r\n")
	line := func(name, value string) {
		text = append(append(append(append(append(text, name...), ':'), value...), '\r'), '\n')
	}
	number := func(name string, value int64) { line(name, strconv.FormatInt(value, 10)) }
	line("redis_version", redisVersion)
	line("weir_version", s.options.Version)
	line("redis_mode", "standalone")
	text = append(text, "\r\n# Clients\r\n"...)
	number("connected_clients", int64(stats.Connections))
	number("maxclients", int64(s.options.ConnectionsMax))
	text = append(text, "\r\n# Persistence\r\n"...)
	line("loading", loading)
	text = append(text, "\r\n# Stats\r\n"...)
	number("total_connections_received", stats.Accepted)
	number("rejected_connections", stats.Refused)
	number("total_commands_processed", stats.Commands)
	number("total_error_replies", stats.Errors)
	number("slow_connections_closed", stats.Slow)
	text = append(text, "\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# Weir\r\n"...)
	c.out = appendText(c.out, c.proto, s.options.Backend.AppendInfo(text))
}
