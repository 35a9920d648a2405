package resp

import "bytes"

// command says how a command is checked and run. arity counts the name and is negative where more may follow.
type command struct {
	name  string
	arity int
	allow Allow
	open  bool // runs before AUTH
	data  bool // needs streams and counters, so waits until they are ready
	adds  bool // is queued: see pending
	run   func(c *conn, args [][]byte)

	// For COMMAND.
	flags             []string
	keyFirst, keyLast int
	keyStep           int
	group, summary    string
}

// commandTable returns the commands by their name in lower case. Everything else is an unknown command.
func commandTable() map[string]*command {
	list := []command{
		{name: "xadd", arity: -5, allow: AllowWrite, data: true, adds: true, run: runAdd,
			flags: []string{"write", "denyoom", "fast"}, keyFirst: 1, keyLast: 1, keyStep: 1,
			group: "stream", summary: "Appends an event to a stream and returns its ID once it is on disk."},
		{name: "xlen", arity: 2, allow: AllowRead, data: true, run: runLen,
			flags: []string{"readonly", "fast"}, keyFirst: 1, keyLast: 1, keyStep: 1,
			group: "stream", summary: "Returns the number of events of a stream, or of one partition (stream:N)."},
		{name: "hgetall", arity: 2, allow: AllowRead, data: true, run: runGetAll,
			flags: []string{"readonly"}, keyFirst: 1, keyLast: 1, keyStep: 1,
			group: "hash", summary: "Returns every window of a counter's key (counter:k1:k2) and its count."},
		{name: "hget", arity: 3, allow: AllowRead, data: true, run: runGet,
			flags: []string{"readonly", "fast"}, keyFirst: 1, keyLast: 1, keyStep: 1,
			group: "hash", summary: "Returns one window's count of a counter's key (counter:k1:k2)."},
		{name: "hmget", arity: -3, allow: AllowRead, data: true, run: runGetMany,
			flags: []string{"readonly", "fast"}, keyFirst: 1, keyLast: 1, keyStep: 1,
			group: "hash", summary: "Returns some windows' counts of a counter's key (counter:k1:k2)."},
		{name: "weir.count", arity: -3, allow: AllowRead, data: true, run: runCount,
			flags: []string{"readonly", "module"},
			group: "module", summary: "Returns count, max and exactness of every window of a key, and the next expiry."},
		{name: "ping", arity: -1, run: runPing, flags: []string{"fast"},
			group: "connection", summary: "Returns PONG, or its argument."},
		{name: "echo", arity: 2, run: runEcho, flags: []string{"fast"},
			group: "connection", summary: "Returns its argument."},
		{name: "hello", arity: -1, open: true, run: runHello, flags: []string{"noscript", "fast", "no_auth"},
			group: "connection", summary: "Chooses RESP2 or RESP3 and says who serves."},
		{name: "auth", arity: -2, open: true, run: runAuth, flags: []string{"noscript", "fast", "no_auth"},
			group: "connection", summary: "Proves who the client is by a token; a user name is ignored."},
		{name: "client", arity: -2, run: runClient, flags: []string{"noscript"},
			group: "connection", summary: "Names and lists connections."},
		{name: "command", arity: -1, run: runCommand, flags: []string{"loading"},
			group: "server", summary: "Describes the commands."},
		{name: "info", arity: -1, allow: AllowRead, run: runInfo, flags: []string{"loading"},
			group: "server", summary: "Returns facts about the server, its streams and its counters."},
		{name: "select", arity: 2, run: runSelect, flags: []string{"fast"},
			group: "connection", summary: "Accepts database 0, the only one."},
		{name: "quit", arity: -1, open: true, run: runQuit, flags: []string{"fast", "no_auth"},
			group: "connection", summary: "Closes the connection."},
		{name: "reset", arity: 1, open: true, run: runReset, flags: []string{"noscript", "fast", "no_auth"},
			group: "connection", summary: "Makes the connection as new."},
	}
	table := make(map[string]*command, len(list))
	for i := range list {
		table[list[i].name] = &list[i]
	}
	return table
}

// runCommand answers COMMAND and its subcommands COUNT, LIST, INFO and DOCS.
func runCommand(c *conn, args [][]byte) {
	if len(args) == 1 {
		c.out = appendArray(c.out, len(c.server.commands))
		for _, spec := range c.server.commands {
			c.appendSpec(spec)
		}
		return
	}
	names := args[2:]
	switch {
	case equalFold(args[1], "count") && len(names) == 0:
		c.out = appendInt(c.out, int64(len(c.server.commands)))
	case equalFold(args[1], "list") && len(names) == 0:
		c.out = appendArray(c.out, len(c.server.commands))
		for name := range c.server.commands {
			c.out = appendBulk(c.out, name)
		}
	case equalFold(args[1], "info") && len(names) == 0:
		runCommand(c, args[:1])
	case equalFold(args[1], "info"):
		c.out = appendArray(c.out, len(names))
		for _, name := range names {
			c.appendSpec(c.find(name))
		}
	case equalFold(args[1], "docs"):
		c.appendDocs(names)
	default:
		c.failSubcommand("COMMAND", args[1])
	}
}

// appendSpec appends what COMMAND says of a command, in the form of Redis 7. nil becomes null.
func (c *conn) appendSpec(spec *command) {
	if spec == nil {
		if c.proto < 3 {
			c.out = append(c.out, "*-1\r\n"...) // Redis 2 clients expect a null array where an array stands
		} else {
			c.out = appendNull(c.out, c.proto)
		}
		return
	}
	out := appendBulk(appendArray(c.out, 10), spec.name)
	out = appendInt(out, int64(spec.arity))
	out = appendArray(out, len(spec.flags))
	for _, flag := range spec.flags {
		out = appendStatus(out, flag)
	}
	out = appendInt(out, int64(spec.keyFirst))
	out = appendInt(out, int64(spec.keyLast))
	out = appendInt(out, int64(spec.keyStep))
	for range 4 { // ACL categories, tips, key specifications, subcommands: none
		out = appendArray(out, 0)
	}
	c.out = out
}

// appendDocs answers COMMAND DOCS for the given names, or for all commands. Unknown names are left out.
func (c *conn) appendDocs(names [][]byte) {
	var specs []*command
	for _, name := range names {
		if spec := c.find(name); spec != nil {
			specs = append(specs, spec)
		}
	}
	if len(names) == 0 {
		for _, spec := range c.server.commands {
			specs = append(specs, spec)
		}
	}
	c.out = appendMap(c.out, c.proto, len(specs))
	for _, spec := range specs {
		out := appendMap(appendBulk(c.out, spec.name), c.proto, 3)
		for _, pair := range [][2]string{{"summary", spec.summary}, {"since", "0.1.0"}, {"group", spec.group}} {
			out = appendBulk(appendBulk(out, pair[0]), pair[1])
		}
		c.out = out
	}
}

func (c *conn) failSubcommand(name string, sub []byte) {
	c.fail("ERR", "unknown subcommand '"+echo(sub)+"' of "+name)
}

// equalFold compares word with an ASCII string in lower case.
func equalFold(word []byte, lower string) bool {
	return len(word) == len(lower) && bytes.EqualFold(word, []byte(lower))
}
