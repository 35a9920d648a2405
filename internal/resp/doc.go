// Package resp lets Redis clients put events into streams and read counters: a server for RESP2 and RESP3.
//
// A connection is one goroutine with a read buffer and a reply buffer of its own. One read takes whatever the client
// has pipelined; every complete command in it is run in place, its arguments aliasing the buffer; then the replies go
// out in one write. So a pipeline costs two system calls however long it is, and a look-up allocates nothing.
//
// Neighbouring XADDs of one pipeline to one stream become one append to the log: a client that pipelines pays for
// durability once a pipeline, not once an event. Their replies are written when the append has returned, before those
// of the command that follows them.
//
// What a client can make the server hold is bounded: the length of an argument, the number of arguments, the bytes of
// a command, the bytes of all buffers together, the number of connections. Replies are bounded by not reading: what
// was answered is written before more is read, and a client that does not take its replies is cut off after a while.
//
// The server knows streams and counters through Backend only.
package resp
