package resp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/weirstream/weir/internal/invariant"
)

// failWith replies with an error of the backend.
func (c *conn) failWith(err error) {
	var busy *BusyError
	var building *BuildingError
	switch {
	case errors.As(err, &busy):
		ms := (busy.RetryAfter + time.Millisecond - 1) / time.Millisecond
		c.fail("BUSY", "retry in "+strconv.FormatInt(int64(max(ms, 1)), 10)+" ms")
	case errors.As(err, &building):
		c.fail("LOADING", oneLine(err.Error()))
	default:
		c.fail("ERR", oneLine(err.Error()))
	}
}

// splitKey finds the counter in counter:k1:k2 and cuts the key behind it into parts: the first KeyParts-1 colons
// split, so the last part may hold any.
func (c *conn) splitKey(arg []byte) (Counter, bool) {
	name, rest, found := bytes.Cut(arg, []byte{':'})
	counter, ok := c.server.options.Backend.Counter(name)
	if !ok {
		c.fail("ERR", "unknown counter '"+echo(name)+"'")
		return nil, false
	}
	parts := counter.KeyParts()
	c.key = c.key[:0]
	for len(c.key) < parts-1 && found {
		var part []byte
		if part, rest, found = bytes.Cut(rest, []byte{':'}); found {
			c.key = append(c.key, part)
		}
	}
	if !found {
		c.fail("ERR", fmt.Sprintf("too few key parts in '%s': counter '%s' wants %d, each behind a colon", echo(arg),
			echo(name), parts))
		return nil, false
	}
	c.key = append(c.key, rest)
	return counter, true
}

// lookUp answers for c.key into c.answer, or replies with the error.
func (c *conn) lookUp(counter Counter, name []byte, asOf int64) bool {
	err := counter.Lookup(c.server.ctx, c.key, asOf, &c.answer)
	if err == nil {
		if invariant.Enabled {
			invariant.Check(len(c.answer.Windows) == len(counter.Windows()), "%d answers for %d windows",
				len(c.answer.Windows), len(counter.Windows()))
		}
		return true
	}
	var building *BuildingError
	if errors.As(err, &building) {
		c.fail("LOADING", fmt.Sprintf("counter '%s' is being rebuilt, %d%% done", echo(name), int(building.Progress*100)))
		return false
	}
	c.failWith(err)
	return false
}

func counterName(arg []byte) []byte {
	name, _, _ := bytes.Cut(arg, []byte{':'})
	return name
}

// runGetAll answers HGETALL counter:k1:k2: every window with its count.
func runGetAll(c *conn, args [][]byte) {
	counter, ok := c.splitKey(args[1])
	if !ok || !c.lookUp(counter, counterName(args[1]), AsOfNow) {
		return
	}
	names := counter.Windows()
	c.out = appendMap(c.out, c.proto, len(names))
	for i, name := range names {
		c.out = appendBulk(c.out, name)
		c.out = appendBulkInt(c.out, c.answer.Windows[i].Count)
	}
}

// runGet answers HGET counter:k1:k2 window: null where the counter has no such window.
func runGet(c *conn, args [][]byte) {
	counter, ok := c.splitKey(args[1])
	if !ok || !c.lookUp(counter, counterName(args[1]), AsOfNow) {
		return
	}
	c.appendWindow(counter, args[2])
}

// runGetMany answers HMGET counter:k1:k2 window [window …].
func runGetMany(c *conn, args [][]byte) {
	counter, ok := c.splitKey(args[1])
	if !ok || !c.lookUp(counter, counterName(args[1]), AsOfNow) {
		return
	}
	c.out = appendArray(c.out, len(args)-2)
	for _, window := range args[2:] {
		c.appendWindow(counter, window)
	}
}

func (c *conn) appendWindow(counter Counter, window []byte) {
	for i, name := range counter.Windows() {
		if name == string(window) {
			c.out = appendBulkInt(c.out, c.answer.Windows[i].Count)
			return
		}
	}
	c.out = appendNull(c.out, c.proto)
}

// runCount answers WEIR.COUNT counter k1 [k2 …] [ASOF ms]: [name, count, max, exact] for each window, then
// next_expiry. A part may hold any bytes, also the word ASOF, because the counter says how many parts there are.
func runCount(c *conn, args [][]byte) {
	counter, ok := c.server.options.Backend.Counter(args[1])
	if !ok {
		c.fail("ERR", "unknown counter '"+echo(args[1])+"'")
		return
	}
	parts := counter.KeyParts()
	rest := args[min(2+parts, len(args)):]
	if len(args) < 2+parts || len(rest) != 0 && len(rest) != 2 || len(rest) == 2 && !equalFold(rest[0], "asof") {
		c.fail("ERR", fmt.Sprintf("syntax error: want WEIR.COUNT %s, %d key parts and, if you like, ASOF ms",
			echo(args[1]), parts))
		return
	}
	asOf := AsOfNow
	if len(rest) == 2 {
		var err error
		if asOf, err = strconv.ParseInt(string(rest[1]), 10, 64); err != nil || asOf == AsOfNow {
			c.fail("ERR", "ASOF must be milliseconds since 1970, got '"+echo(rest[1])+"'")
			return
		}
	}
	c.key = append(c.key[:0], args[2:2+parts]...)
	if c.lookUp(counter, args[1], asOf) {
		c.appendAnswer(counter)
	}
}

func (c *conn) appendAnswer(counter Counter) {
	names := counter.Windows()
	out := appendArray(c.out, len(names)+1)
	for i, name := range names {
		w := &c.answer.Windows[i]
		out = appendInt(appendBulk(appendArray(out, 4), name), w.Count)
		if w.Max == NoMax {
			out = appendNull(out, c.proto)
		} else {
			out = appendInt(out, w.Max)
		}
		out = appendBool(out, c.proto, w.Exact)
	}
	if c.answer.NextExpiry == NoExpiry {
		c.out = appendNull(out, c.proto)
	} else {
		c.out = appendInt(out, c.answer.NextExpiry)
	}
}
