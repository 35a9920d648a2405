package resp

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// TestGoRedis uses the server through go-redis in both protocols, as it comes out of the box.
func TestGoRedis(t *testing.T) {
	for _, proto := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", proto), func(t *testing.T) {
			m := newMemory()
			s := serve(t, Options{Backend: m, Authenticate: onlyToken})
			client := goredis.NewClient(&goredis.Options{
				Addr: s.address, Protocol: proto, ClientName: "test", Password: "token", MaxRetries: -1,
			})
			defer client.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if got, err := client.Ping(ctx).Result(); err != nil || got != "PONG" {
				t.Fatalf("PING: %q, %v", got, err)
			}
			id, err := client.XAdd(ctx, &goredis.XAddArgs{Stream: "s", Values: []string{"id", "e1", "type", "view"}}).Result()
			if err != nil || id != "1-0" {
				t.Errorf("XADD: %q, %v", id, err)
			}
			counts, err := client.HGetAll(ctx, "seen:u1:a9").Result()
			if err != nil || fmt.Sprint(counts) != "map[1d:333 1h:22 1m:1 7d:4444]" {
				t.Errorf("HGETALL: %v, %v", counts, err)
			}
			if _, err := client.HGet(ctx, "seen:u1:a9", "2h").Result(); !errors.Is(err, goredis.Nil) {
				t.Errorf("HGET of an unknown window: %v; want nil", err)
			}
			some, err := client.HMGet(ctx, "seen:u1:a9", "1h", "2h").Result()
			if err != nil || fmt.Sprint(some) != "[22 <nil>]" {
				t.Errorf("HMGET: %v, %v", some, err)
			}
			if n, err := client.XLen(ctx, "s").Result(); err != nil || n != 1 {
				t.Errorf("XLEN: %d, %v", n, err)
			}
			reply, err := client.Do(ctx, "WEIR.COUNT", "clicks", "u1", "ASOF", 5).Slice()
			want := "[[1h 0 0 1] <nil>]"
			if proto == 3 {
				want = "[[1h 0 0 true] <nil>]"
			}
			if err != nil || fmt.Sprint(reply) != want {
				t.Errorf("WEIR.COUNT: %v, %v; want %s", reply, err, want)
			}
			if info, err := client.Info(ctx).Result(); err != nil || !strings.HasPrefix(info, "# Server\r\n") {
				t.Errorf("INFO: %q, %v", info, err)
			}
			if commands, err := client.Command(ctx).Result(); err != nil || commands["hgetall"] == nil {
				t.Errorf("COMMAND: %v, %v", commands, err)
			}
			if list, err := client.ClientList(ctx).Result(); err != nil || !strings.Contains(list, "name=test ") {
				t.Errorf("CLIENT LIST: %q, %v", list, err)
			}
			if _, err := client.Get(ctx, "x").Result(); err == nil || !strings.HasPrefix(err.Error(), "ERR unknown command") {
				t.Errorf("GET: %v", err)
			}
			pipe := client.Pipeline()
			for i := range 100 {
				pipe.XAdd(ctx, &goredis.XAddArgs{Stream: "s", Values: []string{"id", fmt.Sprint("p", i), "type", "view"}})
			}
			replies, err := pipe.Exec(ctx)
			if err != nil || replies[99].(*goredis.StringCmd).Val() != "101-0" {
				t.Errorf("pipeline: %v, %v", replies[len(replies)-1], err)
			}
		})
	}
}

func onlyToken(token []byte) (Allow, bool) {
	return AllowRead | AllowWrite, string(token) == "token"
}

// TestRueidis uses the server through rueidis in both protocols. It cannot cache on the client's side, because counts
// change with time and nobody would tell it; rueidis says so when it connects.
func TestRueidis(t *testing.T) {
	for _, two := range []bool{true, false} {
		s := serve(t, Options{Backend: newMemory(), Authenticate: onlyToken})
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{s.address}, Password: "token", ClientName: "test", DisableCache: true, AlwaysRESP2: two,
			ForceSingleClient: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		id, err := client.Do(ctx, client.B().Xadd().Key("s").Id("*").FieldValue().FieldValue("id", "e1").
			FieldValue("type", "view").Build()).ToString()
		if err != nil || id != "1-0" {
			t.Errorf("XADD: %q, %v", id, err)
		}
		counts, err := client.Do(ctx, client.B().Hgetall().Key("seen:u1:a9").Build()).AsIntMap()
		if err != nil || fmt.Sprint(counts) != "map[1d:333 1h:22 1m:1 7d:4444]" {
			t.Errorf("HGETALL: %v, %v", counts, err)
		}
		reply, err := client.Do(ctx, client.B().Arbitrary("WEIR.COUNT").Args("seen", "u1", "a9").Build()).ToArray()
		if err != nil || len(reply) != 5 {
			t.Errorf("WEIR.COUNT: %v, %v", reply, err)
		}
	}
	s := serve(t, Options{Backend: newMemory()})
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.address}, ForceSingleClient: true})
	if !errors.Is(err, rueidis.ErrNoCache) {
		t.Errorf("rueidis with its cache: %v; want ErrNoCache", err)
	}
	if err == nil {
		client.Close()
	}
}

// run runs a Redis tool against s.
func (s *serving) run(t *testing.T, input, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	_, port, _ := strings.Cut(s.address, ":")
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, path, append([]string{"-p", port}, args...)...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestRedisCLI(t *testing.T) {
	for _, flag := range []string{"-2", "-3"} {
		s := serve(t, Options{Backend: newMemory()})
		if got := s.run(t, "", "redis-cli", flag, "XADD", "s", "*", "id", "e1", "type", "view", "data", `{"a": 1}`); got != "1-0\n" {
			t.Errorf("XADD: %q", got)
		}
		script := "HGETALL seen:u1:a9\nHGET seen:u1:a9 2h\nCOMMAND DOCS echo\nWEIR.COUNT clicks u1\nNOPE\nCLIENT INFO\nPING\n"
		got := s.run(t, script, "redis-cli", flag)
		for _, want := range []string{"1m\n1\n1h\n22\n", "4444\n", "ERR unknown command 'NOPE'", "Returns its argument.", "PONG\n"} {
			if flag == "-3" {
				want = strings.ReplaceAll(want, "1m\n1\n1h\n22\n", "1m 1\n1h 22\n")
			}
			if !strings.Contains(got, want) {
				t.Errorf("redis-cli %s lacks %q:\n%s", flag, want, got)
			}
		}
	}
}

func TestRedisBenchmark(t *testing.T) {
	m := newMemory()
	m.counter.record = false
	s := serve(t, Options{Backend: m})
	for _, depth := range []string{"1", "100"} {
		out := s.run(t, "", "redis-benchmark", "-n", "5000", "-c", "20", "-P", depth, "-e", "--csv", "HGETALL", "seen:u1:a9")
		if !strings.Contains(out, `"HGETALL seen:u1:a9"`) || strings.Contains(out, "Error from server") {
			t.Errorf("redis-benchmark -P %s: %s", depth, out)
		}
	}
	out := s.run(t, "", "redis-benchmark", "-n", "5000", "-P", "100", "-e", "--csv", "XADD", "s", "*", "id", "e__rand_int__",
		"type", "view")
	if !strings.Contains(out, `"XADD s`) || m.streams["s"].Len(0) == 0 {
		t.Errorf("redis-benchmark XADD: %s", out)
	}
	if got := s.Stats().Commands; got < 15_000 {
		t.Errorf("%d commands; want at least 15000", got)
	}
}
