package resp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// pieces hands out its bytes in pieces of the given lengths, in turn.
type pieces struct {
	data    []byte
	lengths []byte
	at      int
}

func (p *pieces) Read(dst []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := min(int(p.lengths[p.at%len(p.lengths)])+1, len(p.data), len(dst))
	p.at++
	copy(dst, p.data[:n])
	p.data = p.data[n:]
	return n, nil
}

// readAll returns every command in data, read in pieces, and the error that ended it (io.EOF where none did).
func readAll(t *testing.T, data, lengths []byte, limits inputLimits) (commands [][][]byte, err error) {
	t.Helper()
	shared := &budget{bytesMax: 1 << 20}
	r := newReader(&pieces{data: data, lengths: lengths}, limits, shared)
	for {
		if err := r.fill(); err != nil {
			r.close()
			if got := shared.bytes.Load(); got != 0 {
				t.Fatalf("%d bytes of the budget are lost", got)
			}
			return commands, err
		}
		for {
			ok, err := r.next()
			if err != nil {
				return commands, err
			}
			if !ok {
				break
			}
			var args [][]byte
			for _, arg := range r.args {
				args = append(args, bytes.Clone(arg))
			}
			commands = append(commands, args)
		}
	}
}

// FuzzReader wants the same commands and the same end however the bytes are cut into reads, and bounds that hold.
func FuzzReader(f *testing.F) {
	f.Add([]byte("*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$0\r\n\r\n"), []byte{0, 3})
	f.Add([]byte("PING \"a\\x41\\n\" 'b\\'' c\r\n\r\n*0\r\n*-1\r\nQUIT\n"), []byte{1})
	f.Add([]byte("*3\r\n$1\r\n"), []byte{0})
	f.Add([]byte("*1\r\n$99\r\n"), []byte{200})
	f.Add([]byte("*00001\r\n$-1\r\n"), []byte{2})
	limits := inputLimits{args: 5, bulk: 64, command: 256}
	f.Fuzz(func(t *testing.T, data, lengths []byte) {
		if len(lengths) == 0 {
			lengths = []byte{0}
		}
		whole, wholeErr := readAll(t, data, []byte{255}, limits)
		cut, cutErr := readAll(t, data, lengths, limits)
		if len(whole) != len(cut) {
			t.Fatalf("%d commands at once, %d in pieces", len(whole), len(cut))
		}
		for i, args := range whole {
			if len(args) == 0 || len(args) > limits.args || len(args) != len(cut[i]) {
				t.Fatalf("command %d has %d and %d arguments", i, len(args), len(cut[i]))
			}
			for j, arg := range args {
				if !bytes.Equal(arg, cut[i][j]) {
					t.Fatalf("argument %d of command %d: %q at once, %q in pieces", j, i, arg, cut[i][j])
				}
			}
		}
		if (wholeErr == io.EOF) != (cutErr == io.EOF) {
			t.Fatalf("ended by %v at once, by %v in pieces", wholeErr, cutErr)
		}
		var protocol *protocolError
		if wholeErr != io.EOF && !errors.As(wholeErr, &protocol) {
			t.Fatalf("ended by %v", wholeErr)
		}
	})
}

// FuzzCommands runs commands made of any arguments: nothing panics, every command gets exactly one reply, and errors
// stay on their line.
func FuzzCommands(f *testing.F) {
	f.Add([]byte("HGETALL\x00seen:u1:a9"))
	f.Add([]byte("HELLO\x003\x00AUTH\x00x\x00y\x00SETNAME\x00n"))
	f.Add([]byte("XADD\x00s\x00*\x00id\x00e\r\n1\x00type\x00view"))
	f.Add([]byte("WEIR.COUNT\x00clicks\x00u\x00ASOF\x0012"))
	f.Add([]byte("CLIENT\x00SETINFO\x00lib-name\x00a\r\nb"))
	f.Add([]byte("command\x00docs\x00xadd"))
	f.Fuzz(func(t *testing.T, joined []byte) {
		s, err := New(Options{Backend: newMemory()})
		if err != nil {
			t.Fatal(err)
		}
		words := bytes.Split(joined, []byte{0})
		text := make([]string, len(words))
		for i, word := range words {
			text[i] = string(word)
		}
		if len(words) > DefaultArgsMax || len(joined) > DefaultBulkBytesMax {
			return // refused with an error of the protocol: see TestProtocolErrors
		}
		out := &output{input: bytes.NewReader([]byte(array(text...)))}
		newConn(s, out, 1).serve()
		rest, ok := skipReply(out.bytes.Bytes())
		if !ok || len(rest) != 0 {
			t.Fatalf("%q: not one reply: %q", words, out.bytes.Bytes())
		}
	})
}

// output is a connection that reads from memory and keeps the replies.
type output struct {
	pipe
	input *bytes.Reader
	bytes bytes.Buffer
}

func (o *output) Read(dst []byte) (int, error) { return o.input.Read(dst) }

func (o *output) Write(src []byte) (int, error) { return o.bytes.Write(src) }

// skipReply parses one reply of RESP2 or RESP3, slowly and by the book.
func skipReply(src []byte) (rest []byte, ok bool) {
	end := bytes.Index(src, []byte("\r\n"))
	if end < 1 {
		return nil, false
	}
	n, sign := 0, 1
	for i, c := range src[1:end] {
		if c == '-' && i == 0 {
			sign = -1
		} else {
			n = n*10 + int(c-'0')
		}
	}
	line, rest := src[:end], src[end+2:]
	switch n *= sign; line[0] {
	case '+', '-', ':', '_', '#':
		return rest, !bytes.ContainsAny(line, "\r\n")
	case '$', '=':
		if n < 0 {
			return rest, true
		}
		if len(rest) < n+2 || string(rest[n:n+2]) != "\r\n" {
			return nil, false
		}
		return rest[n+2:], true
	case '*', '%':
		if line[0] == '%' {
			n *= 2
		}
		for ; n > 0; n-- {
			if rest, ok = skipReply(rest); !ok {
				return nil, false
			}
		}
		return rest, true
	}
	return nil, false
}

// TestReaderAgainstItsSource sends random commands of all sizes through the reader, in random pieces.
func TestReaderAgainstItsSource(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var want [][]string
	var data, lengths []byte
	for range 300 {
		args := make([]string, 1+random.IntN(6))
		for i := range args {
			arg := make([]byte, random.IntN(1<<random.IntN(14)))
			for j := range arg {
				arg[j] = byte(random.Uint32())
			}
			args[i] = string(arg)
		}
		want = append(want, args)
		data = append(data, array(args...)...)
	}
	for range 1000 {
		lengths = append(lengths, byte(random.Uint32()))
	}
	got, err := readAll(t, data, lengths, inputLimits{args: 6, bulk: 1 << 13, command: 1 << 16})
	if err != io.EOF || len(got) != len(want) {
		t.Fatalf("%d commands, %v; want %d and io.EOF", len(got), err, len(want))
	}
	for i := range want {
		for j := range want[i] {
			if string(got[i][j]) != want[i][j] {
				t.Fatalf("argument %d of command %d differs", j, i)
			}
		}
	}
}
