package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// ndjsonSender posts bodies and checks that the node took every event of them.
type ndjsonSender struct {
	client *http.Client
	url    string
	reply  []byte
}

func newNDJSONSender(addr, stream string) *ndjsonSender {
	return &ndjsonSender{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, WriteBufferSize: 256 << 10}},
		url: "http://" + addr + "/v1/streams/" + stream + "/events", reply: make([]byte, 0, 4096)}
}

// errBusy is a 429: the node asks its producers to slow down.
var errBusy = errors.New("the node is overloaded")

// send posts body, which holds that many events.
func (s *ndjsonSender) send(ctx context.Context, body []byte, events int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests {
		_, _ = io.Copy(io.Discard, resp.Body)
		return errBusy
	}
	reply := bytes.NewBuffer(s.reply[:0])
	if _, err := reply.ReadFrom(resp.Body); err != nil {
		return err
	}
	if want := fmt.Sprintf(`{"accepted":%d,`, events); resp.StatusCode != http.StatusOK || !bytes.HasPrefix(reply.Bytes(), []byte(want)) {
		return fmt.Errorf("sent %d events; got %s: %.300s", events, resp.Status, reply)
	}
	return nil
}

// respConn is a Redis connection that costs the client as little as possible: commands are written as bytes and
// replies only counted.
type respConn struct {
	conn net.Conn
	r    *bufio.Reader
}

func dialRESP(addr string) (*respConn, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &respConn{conn: conn, r: bufio.NewReaderSize(conn, 256<<10)}, nil
}

func (c *respConn) close() { _ = c.conn.Close() }

// do sends one command and returns the first line of its reply.
func (c *respConn) do(args ...string) (string, error) {
	if _, err := c.conn.Write(appendCommand(nil, args...)); err != nil {
		return "", err
	}
	return c.reply()
}

// reply reads one reply and returns its first line, without the line end.
func (c *respConn) reply() (string, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	head := string(bytes.TrimRight(line, "\r\n"))
	if head == "" {
		return "", errors.New("empty reply")
	}
	n, _ := strconv.Atoi(head[1:])
	switch head[0] {
	case '-':
		return "", errors.New(head[1:])
	case '$':
		if n >= 0 {
			_, err = c.r.Discard(n + 2)
		}
	case '*', '~':
		err = c.skip(n)
	case '%':
		err = c.skip(2 * n)
	}
	return head, err
}

func (c *respConn) skip(replies int) error {
	for range replies {
		if _, err := c.reply(); err != nil {
			return err
		}
	}
	return nil
}

// appendCommand encodes a command as an array of bulk strings.
func appendCommand(dst []byte, args ...string) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(args))
	for _, arg := range args {
		dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return dst
}
