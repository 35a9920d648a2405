package resp

import (
	"bytes"
	"errors"
	"strconv"
)

// pending is the run of XADDs whose replies wait for one append.
type pending struct {
	stream  Stream
	name    []byte // of stream
	batch   Batch
	results []addResult // one per XADD, in order
	added   int         // of them in batch
	bytes   int         // of their arguments
	scratch []byte
}

// addResult is the outcome of one XADD so far: the event is in the batch, or err refused it.
type addResult struct{ err error }

// release forgets the run. Events that were not committed are dropped.
func (p *pending) release() {
	if p.batch != nil {
		p.batch.Release()
	}
	clear(p.results)
	p.stream, p.batch, p.results, p.added, p.bytes = nil, nil, p.results[:0], 0, 0
}

// runAdd queues XADD stream * name value [name value …].
func runAdd(c *conn, args [][]byte) {
	p := &c.pending
	if p.batch != nil && (!bytes.Equal(p.name, args[1]) || p.added >= batchEventsMax || p.bytes >= batchBytesMax) {
		c.commit()
	}
	if p.batch == nil {
		stream, ok := c.server.options.Backend.Stream(args[1])
		if !ok {
			c.fail("ERR", "unknown stream '"+echo(args[1])+"'")
			return
		}
		p.stream, p.batch, p.name = stream, stream.NewBatch(), append(p.name[:0], args[1]...)
	}
	err := checkAdd(args[2:])
	if err == nil {
		err = p.batch.Add(args[3:])
	}
	p.results = append(p.results, addResult{err})
	if err == nil {
		p.added++
		for _, arg := range args[3:] {
			p.bytes += len(arg)
		}
	}
	if len(p.results) >= batchEventsMax {
		c.commit()
	}
}

// Errors of an XADD that never reaches the backend.
var (
	errAddID = errors.New("the ID of XADD must be *: an event's ID is its offset and its partition, which Weir " +
		"assigns; the event's own id is the field 'id'")
	errAddOption = errors.New("options of XADD (NOMKSTREAM, MAXLEN, MINID, LIMIT) are not supported: streams and their " +
		"retention are set in the configuration")
	errAddPairs = errors.New("wrong number of arguments for 'xadd' command: want pairs of name and value after *")
)

// checkAdd looks at the arguments of an XADD behind the stream's name.
func checkAdd(args [][]byte) error {
	if string(args[0]) != "*" {
		for _, option := range []string{"nomkstream", "maxlen", "minid", "limit"} {
			if equalFold(args[0], option) {
				return errAddOption
			}
		}
		return errAddID
	}
	if len(args) < 3 || len(args)%2 == 0 {
		return errAddPairs
	}
	return nil
}

// commit appends the queued events and replies to their XADDs.
func (c *conn) commit() {
	p := &c.pending
	if p.batch == nil {
		return
	}
	var failed error
	if p.added > 0 {
		failed = p.batch.Commit(c.server.ctx)
	}
	added := 0
	for _, result := range p.results {
		switch {
		case result.err != nil:
			c.failWith(result.err)
		case failed != nil:
			c.failWith(failed)
		default:
			partition, offset := p.batch.ID(added)
			p.scratch = appendID(p.scratch[:0], partition, offset)
			c.out = appendBulk(c.out, p.scratch)
		}
		if result.err == nil {
			added++
		}
	}
	p.release()
}

// appendID appends the ID of an event as Redis spells one: <offset+1>-<partition>. Redis knows no ID 0-0, hence the 1.
func appendID(dst []byte, partition int, offset int64) []byte {
	dst = append(strconv.AppendInt(dst, offset+1, 10), '-')
	return strconv.AppendInt(dst, int64(partition), 10)
}

// runLen answers XLEN stream and XLEN stream:partition.
func runLen(c *conn, args [][]byte) {
	name, number, one := bytes.Cut(args[1], []byte{':'})
	stream, ok := c.server.options.Backend.Stream(name)
	if !ok {
		c.fail("ERR", "unknown stream '"+echo(name)+"'")
		return
	}
	if one {
		partition, err := strconv.Atoi(string(number))
		if err != nil || partition < 0 || partition >= stream.Partitions() {
			c.fail("ERR", "unknown partition '"+echo(number)+"' of stream '"+echo(name)+"': want 0 to "+
				strconv.Itoa(stream.Partitions()-1))
			return
		}
		c.out = appendInt(c.out, stream.Len(partition))
		return
	}
	sum := int64(0)
	for partition := range stream.Partitions() {
		sum += stream.Len(partition)
	}
	c.out = appendInt(c.out, sum)
}
