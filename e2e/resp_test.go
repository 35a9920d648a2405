package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/weirstream/weir/internal/services"
)

// TestRedisClients connects with what people use: two client libraries and redis-cli.
func TestRedisClients(t *testing.T) {
	n := Start(t, tableSettings)
	ctx := context.Background()
	t.Run("go-redis", func(t *testing.T) {
		for _, protocol := range []int{2, 3} {
			c := n.redis(protocol)
			if err := c.Ping(ctx).Err(); err != nil {
				t.Errorf("RESP%d: %v", protocol, err)
			}
			id, err := c.XAdd(ctx, &redis.XAddArgs{Stream: "events", Values: []string{"id", fmt.Sprintf("g%d", protocol), "type", "t", "data", `{"user":"go","ad":"a"}`}}).Result()
			if err != nil || !strings.Contains(id, "-") {
				t.Errorf("RESP%d: XADD answers %q, %v", protocol, id, err)
			}
			if h, err := c.HGetAll(ctx, "pair:go:a").Result(); err != nil || h["1h"] != strconv.Itoa(protocol-1) {
				t.Errorf("RESP%d: HGETALL answers %v, %v", protocol, h, err)
			}
		}
	})
	t.Run("rueidis", func(t *testing.T) {
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{n.resp}, DisableCache: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Do(ctx, c.B().Xadd().Key("events").Id("*").FieldValue().FieldValue("id", "r1").FieldValue("type", "t").
			FieldValue("data", `{"user":"ru","ad":"a"}`).Build()).Error(); err != nil {
			t.Errorf("XADD: %v", err)
		}
		if h, err := c.Do(ctx, c.B().Hgetall().Key("pair:ru:a").Build()).AsStrMap(); err != nil || h["1h"] != "1" || len(h) != 2 {
			t.Errorf("HGETALL answers %v, %v", h, err)
		}
	})
	t.Run("redis-cli", func(t *testing.T) {
		cli := services.RedisCLI(t)
		_, port, _ := net.SplitHostPort(n.resp)
		for _, flag := range []string{"-2", "-3"} {
			out, err := exec.CommandContext(t.Context(), cli, "-p", port, flag, "HGETALL", "pair:nobody:a").CombinedOutput()
			if text := string(out); err != nil || !strings.Contains(text, "1m") || !strings.Contains(text, "0") {
				t.Errorf("redis-cli %s: %v: %s", flag, err, out)
			}
		}
	})
}

// TestCommands is a table of commands on one connection that stays open whatever it is sent. Errors begin with -.
func TestCommands(t *testing.T) {
	n := Start(t, tableSettings)
	conn, err := net.Dial("tcp", n.resp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(replyWait))
	replies := bufio.NewReader(conn)
	for _, c := range []struct{ command, begins string }{
		{"PING", "+PONG"},
		{"PING hello", "$5"},
		{"ECHO hello", "$5"},
		{"SELECT 0", "+OK"},
		{"SELECT 1", "-ERR"},
		{"CLIENT SETNAME test", "+OK"},
		{"CLIENT SETINFO LIB-NAME test", "+OK"},
		{"FLUSHALL", "-ERR unknown command"},
		{"GET x", "-ERR unknown command"},
		{"XADD events * id r1 type t data {\"user\":\"u\",\"ad\":\"a:b\"}", "$"},
		{"XADD events * id r2 type t segment s time 2026-01-01T00:00:00Z source /app region eu", "$"},
		{"XADD events 1-1 id r3 type t", "-ERR"},
		{"XADD events MAXLEN 10 * id r3 type t", "-ERR"},
		{"XADD nope * id r3 type t", "-ERR"},
		{"XADD events * id r3", "-ERR"},
		{"XADD events * type t", "-ERR"},
		{"XADD events * id r3 type t data {", "-ERR"},
		{"XADD events * id r3 type t time 1767225600", "-ERR"},
		{"XADD events * id r3 type t odd", "-ERR"},
		{"XLEN events", ":2"},
		{"XLEN nope", "-ERR"},
		{"XLEN events:7", "-ERR"},
		{"HGET pair:u:a:b 1h", "$1"},
		{"HGET pair:u:a:b 2h", "$-1"},
		{"HGETALL pair:u", "-ERR"},
		{"HGETALL pair", "-ERR"},
		{"HGETALL nope:u:a", "-ERR"},
		{"HGETALL pair:nobody:a", "*4"},
		{"HMGET pair:u:a:b 1h 1m 9d", "*3"},
		{"WEIR.COUNT pair u a:b", "*3"},
		{"WEIR.COUNT pair u a:b ASOF 0", "*3"},
		{"WEIR.COUNT pair u a:b ASOF -1", "*3"},
		{"WEIR.COUNT pair u", "-ERR"},
		{"WEIR.COUNT pair u a ASOF soon", "-ERR"},
		{"WEIR.COUNT nope u a", "-ERR"},
		{"INFO", "$"},
		{"COMMAND COUNT", ":"},
		{"HELLO 9", "-NOPROTO"},
		{"HELLO 3", "%"},
		{"HGETALL pair:u:a:b", "%2"},
		{"RESET", "+RESET"},
		{"QUIT", "+OK"},
	} {
		if _, err := conn.Write(encodeCommand(c.command)); err != nil {
			t.Fatalf("%s: %v", c.command, err)
		}
		line, err := replies.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, c.begins) {
			t.Fatalf("%s answers %q, %v; want %s…", c.command, line, err, c.begins)
		}
		if err := skipReply(replies, line); err != nil {
			t.Fatalf("%s: %v", c.command, err)
		}
	}
	if _, err := replies.ReadByte(); err == nil {
		t.Error("the connection is open after QUIT")
	}
}

func encodeCommand(command string) []byte {
	words := strings.Fields(command)
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(w), w)
	}
	return out
}

// skipReply reads what belongs to a reply behind its first line.
func skipReply(r *bufio.Reader, line string) error {
	count, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '$', '=':
		if count < 0 {
			return nil
		}
		_, err := r.Discard(count + 2)
		return err
	case '%':
		count *= 2
	case '*', '~':
	default:
		return nil
	}
	for range count {
		next, err := r.ReadString('\n')
		if err == nil {
			err = skipReply(r, next)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestXADDPlaces: the answer of XADD is where the log has the event, also for the second copy in one pipeline.
func TestXADDPlaces(t *testing.T) {
	n := Start(t, tableSettings)
	c := n.redis(3)
	ctx := context.Background()
	pipe := c.Pipeline()
	places := map[string]*redis.Cmd{}
	for i := range 300 {
		id := fmt.Sprintf("p%d", i)
		places[id] = pipe.Do(ctx, "XADD", "events", "*", "id", id, "type", "t", "segment", fmt.Sprintf("s%d", i%9), "time", killBase+i)
	}
	copied := pipe.Do(ctx, "XADD", "events", "*", "id", "p7", "type", "t", "segment", "s7", "time", killBase)
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	if first, _ := places["p7"].Text(); copied.Val() != first {
		t.Errorf("a copy in one pipeline answers %v; want the first one's %s", copied.Val(), first)
	}
	total := 0
	for p := range 2 {
		for _, e := range n.partition(p) {
			total++
			if want, _ := places[e.ID].Text(); want != fmt.Sprintf("%d-%d", e.Offset+1, p) {
				t.Errorf("%s is at offset %d of partition %d; XADD answered %s", e.ID, e.Offset, p, want)
			}
			if e.Segment != "" && !strings.HasPrefix(e.Segment, "s") {
				t.Errorf("%s has partitionkey %q", e.ID, e.Segment)
			}
		}
	}
	if total != 300 {
		t.Errorf("the log holds %d events; want 300", total)
	}
	if length, err := c.XLen(ctx, "events").Result(); err != nil || length != 300 {
		t.Errorf("XLEN answers %d, %v", length, err)
	}
}
