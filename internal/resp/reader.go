package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

const (
	readBytesMin   = 4 << 10   // read buffer of an idle connection
	readBytesGrow  = 256 << 10 // it grows up to this where the client fills it
	inlineBytesMax = 64 << 10  // of a command that is a line of text
	headerBytesMax = 32        // of "*N\r\n" and "$N\r\n"
	shrinkReads    = 64        // reads in a row that used little, before a grown buffer is given back
)

// ErrBufferSpace says that all connections together hold as many bytes of commands as they may.
var errBufferSpace = errors.New("the server holds as many bytes of unfinished commands as it may: retry later")

// protocolError says what a client sent that is not RESP. The connection cannot go on: nobody knows where the next
// command begins.
type protocolError struct{ message string }

func (e *protocolError) Error() string { return "Protocol error: " + e.message }

// inputLimits bounds one command.
type inputLimits struct {
	args    int // arguments, the command's name among them
	bulk    int // bytes of an argument
	command int // bytes of a command, its framing among them
}

// reader cuts commands out of a connection's bytes.
type reader struct {
	source io.Reader
	limits inputLimits
	budget *budget // for what the buffer has above readBytesMin

	buf        []byte
	start, end int // what was read and not yet consumed
	last       int // where the last command began
	need       int // bytes of the command at start that must be there before parsing it again can succeed
	idle       int // reads in a row that used little of a grown buffer

	args   [][]byte // of the last command; alias buf, or line
	line   []byte   // unquoted arguments of an inline command
	inline bool     // the last command was a line of text
}

// budget is what all connections' grown buffers share.
type budget struct {
	bytesMax int64
	bytes    atomic.Int64
}

func (b *budget) take(n int64) bool {
	if b.bytes.Add(n) > b.bytesMax {
		b.bytes.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.bytes.Add(-n) }

// newReader returns a reader that owns its buffer.
func newReader(source io.Reader, limits inputLimits, budget *budget) *reader {
	return &reader{source: source, limits: limits, budget: budget, buf: make([]byte, readBytesMin)}
}

// close gives the buffer back. The reader must not be used afterwards.
func (r *reader) close() {
	r.budget.give(int64(len(r.buf) - readBytesMin))
	r.buf = nil
}

// fill reads once. It moves the buffer: the arguments of earlier commands are gone.
func (r *reader) fill() error {
	if err := r.makeRoom(); err != nil {
		return err
	}
	n, err := r.source.Read(r.buf[r.end:])
	r.end += n
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// makeRoom makes the buffer fit for the next read: it fits the command that is under way, is larger for a client that
// pipelines and small again for one that stopped.
func (r *reader) makeRoom() error {
	held := r.end - r.start
	want := len(r.buf)
	switch {
	case r.end == len(r.buf) && len(r.buf) < readBytesGrow && held < len(r.buf):
		want, r.idle = 2*len(r.buf), 0 // the last read filled it: the client has more
	case len(r.buf) > readBytesMin && r.end <= len(r.buf)/4:
		if r.idle++; r.idle >= shrinkReads && held == 0 {
			want, r.idle = readBytesMin, 0
		}
	default:
		r.idle = 0
	}
	must := max(r.need, held+1)
	if want < must {
		want = roundUp(must)
	}
	if want != len(r.buf) && r.resize(want) {
		return nil
	}
	if must > len(r.buf) && (want == must || !r.resize(must)) {
		return errBufferSpace
	}
	r.compact()
	return nil
}

// roundUp leaves room behind a command of n bytes, so that the end of it and the next one's head come together.
func roundUp(n int) int { return n + min(n/4, readBytesGrow) + headerBytesMax }

// resize moves what is held to a buffer of n bytes, if the budget allows.
func (r *reader) resize(n int) bool {
	grown := int64(n - len(r.buf))
	if grown > 0 && !r.budget.take(grown) {
		return false
	}
	if grown < 0 {
		r.budget.give(-grown)
	}
	buf := make([]byte, n)
	r.end = copy(buf, r.buf[r.start:r.end])
	r.buf, r.start = buf, 0
	return true
}

func (r *reader) compact() {
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
}

// next parses the command at the head of the buffer into args. ok is false when it is not complete yet. Empty
// commands are skipped. The error is a *protocolError.
func (r *reader) next() (ok bool, err error) {
	for r.start < r.end && r.end-r.start >= r.need {
		var used int
		src := r.buf[r.start:r.end]
		r.need = 0
		if r.inline = src[0] != '*'; r.inline {
			used, err = r.parseLine(src)
		} else {
			used, err = r.parseArray(src)
		}
		if err != nil || used == 0 {
			return false, err
		}
		r.last = r.start
		r.start += used
		if len(r.args) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// unread makes next return the last command again.
func (r *reader) unread() { r.start = r.last }

// parseArray parses "*N\r\n" and N times "$L\r\n" + L bytes + "\r\n". used is 0 while bytes are missing.
func (r *reader) parseArray(src []byte) (used int, err error) {
	r.args = r.args[:0]
	count, at, err := parseHeader(src, r.limits.args, "multibulk length")
	if at == 0 || err != nil {
		return 0, err
	}
	for range count {
		if at == len(src) {
			return 0, nil
		}
		if src[at] != '$' {
			return 0, &protocolError{fmt.Sprintf("expected '$', got %q", src[at:at+1])}
		}
		length, n, err := parseHeader(src[at:], r.limits.bulk, "bulk length")
		if n == 0 || err != nil {
			return 0, err
		}
		if length < 0 {
			return 0, &protocolError{"invalid bulk length"}
		}
		at += n
		end := at + length
		if end+2 > r.limits.command {
			return 0, &protocolError{fmt.Sprintf("command too long: got more than %d bytes", r.limits.command)}
		}
		if end+2 > len(src) {
			r.need = end + 2
			return 0, nil
		}
		if src[end] != '\r' || src[end+1] != '\n' {
			return 0, &protocolError{"bulk string is not followed by CR LF"}
		}
		r.args = append(r.args, src[at:end:end])
		at = end + 2
	}
	return at, nil
}

// parseHeader parses a type byte, a decimal number and CR LF. used is 0 while bytes are missing.
func parseHeader(src []byte, most int, what string) (n, used int, err error) {
	at, negative := 1, false
	if len(src) > 1 && src[1] == '-' {
		negative, at = true, 2
	}
	for digits := at; at < len(src) && src[at] >= '0' && src[at] <= '9'; at++ {
		if n = n*10 + int(src[at]-'0'); n > most || at-digits > headerBytesMax {
			return 0, 0, &protocolError{fmt.Sprintf("invalid %s: got more than %d", what, most)}
		}
	}
	if at < len(src) && src[at] != '\r' || at+1 < len(src) && (src[at+1] != '\n' || src[at-1] < '0') {
		return 0, 0, &protocolError{"invalid " + what}
	}
	if at+1 >= len(src) {
		return 0, 0, nil
	}
	if negative {
		n = -n
	}
	return n, at + 2, nil
}

// parseLine parses a command that a person typed: words, or strings in single or double quotes.
func (r *reader) parseLine(src []byte) (used int, err error) {
	end := bytes.IndexByte(src, '\n')
	if end < 0 && len(src) < inlineBytesMax {
		return 0, nil
	}
	if end < 0 || end >= inlineBytesMax {
		return 0, &protocolError{"too big inline request"}
	}
	r.args, r.line = r.args[:0], r.line[:0]
	if cap(r.line) < end {
		r.line = make([]byte, 0, end) // words are no longer than the line, so it never moves under args
	}
	rest := bytes.TrimSuffix(src[:end], []byte{'\r'})
	for {
		rest = bytes.TrimLeft(rest, " \t\x00\v\f\r")
		if len(rest) == 0 {
			return end + 1, nil
		}
		if len(r.args) == r.limits.args {
			return 0, &protocolError{fmt.Sprintf("too many arguments: got more than %d", r.limits.args)}
		}
		from, ok := len(r.line), false
		if rest, ok = r.word(rest); !ok {
			return 0, &protocolError{"unbalanced quotes in request"}
		}
		r.args = append(r.args, r.line[from:len(r.line):len(r.line)])
	}
}

// word unquotes the word at the head of src to the end of line. A closing quote must end the word.
func (r *reader) word(src []byte) (rest []byte, ok bool) {
	quote := byte(0)
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case quote == 0 && isSpace(c):
			return src[i:], true
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			return src[i+1:], i+1 == len(src) || isSpace(src[i+1])
		case quote == '"' && c == '\\' && i+1 < len(src):
			var n int
			c, n = unescape(src[i:])
			r.line = append(r.line, c)
			i += n - 1
		case quote == '\'' && c == '\\' && i+1 < len(src) && src[i+1] == '\'':
			r.line = append(r.line, '\'')
			i++
		default:
			r.line = append(r.line, c)
		}
	}
	return nil, quote == 0
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' || c == 0 }

// unescape decodes the escape at the head of src, a backslash and at least one byte, and returns its length.
func unescape(src []byte) (c byte, n int) {
	switch src[1] {
	case 'x':
		if len(src) >= 4 {
			high, low := hexDigit(src[2]), hexDigit(src[3])
			if high >= 0 && low >= 0 {
				return byte(high<<4 | low), 4
			}
		}
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'b':
		return '\b', 2
	case 'a':
		return '\a', 2
	}
	return src[1], 2
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
