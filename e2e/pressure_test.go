package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestOverload sends large requests from many clients at once to a node with little memory. Each is taken whole, or refused
// with 429 and nothing of it is stored; the node never answers with a 5xx.
func TestOverload(t *testing.T) {
	const clients, rounds, perRequest = 16, 6, 12
	n := Start(t, `memory: 160MiB
limits: {body: 4MiB, event: 256KiB}
streams:
  events: {partitions: 2, segment: data.user, ring: {bytes: 4MiB}, dedup: {max_ids: 100000}}
`)
	padding := strings.Repeat("x", 200<<10)
	var (
		mu             sync.Mutex
		taken, refused = map[string]bool{}, map[string]bool{}
		all            sync.WaitGroup
	)
	for c := range clients {
		all.Go(func() {
			for r := range rounds {
				var body strings.Builder
				var ids []string
				for i := range perRequest {
					id := fmt.Sprintf("c%dr%di%d", c, r, i)
					ids = append(ids, id)
					fmt.Fprintf(&body, `{"id":%q,"type":"t","data":{"user":"u%d","padding":%q}}`+"\n", id, i, padding)
				}
				status, reply, err := n.try(http.MethodPost, "/v1/streams/events/events", ndjson, []byte(body.String()))
				mu.Lock()
				for _, id := range ids {
					taken[id], refused[id] = status == http.StatusOK, status == http.StatusTooManyRequests
				}
				mu.Unlock()
				if err != nil || status != http.StatusOK && status != http.StatusTooManyRequests {
					t.Errorf("status %d, %v: %.300s; want 200 or 429", status, err, reply)
				}
			}
		})
	}
	all.Wait()
	found := map[string]bool{}
	for p := range 2 {
		for _, e := range n.partition(p) {
			if found[e.ID] {
				t.Errorf("%s is there twice", e.ID)
			}
			found[e.ID] = true
			if len(e.Data) < len(padding) {
				t.Errorf("%s comes back with %d bytes of data", e.ID, len(e.Data))
			}
		}
	}
	accepted := 0
	for id := range taken {
		if taken[id] {
			accepted++
		}
		if taken[id] && !found[id] || refused[id] && found[id] {
			t.Errorf("%s: taken %v, refused %v, in the log %v", id, taken[id], refused[id], found[id])
		}
	}
	t.Logf("%d of %d events were taken, the rest was refused", accepted, len(taken))
	if accepted == 0 {
		t.Error("nothing was taken")
	}
}

// TestPipelinedReadYourWrites appends and looks up in one pipeline: each look-up sees every append before it.
func TestPipelinedReadYourWrites(t *testing.T) {
	n := Start(t, pairSettings)
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		pipe := n.redis(protocol).Pipeline()
		user := fmt.Sprintf("u%d", protocol)
		const pairs = 200
		var counts [pairs]*redis.Cmd
		for i := range pairs {
			e := sample{fmt.Sprintf("e%d", i), user, "a", killBase + int64(i)}
			pipe.Do(ctx, "XADD", "events", "*", "id", e.id, "type", "t", "time", e.time, "data", e.data())
			counts[i] = pipe.Do(ctx, "WEIR.COUNT", "pair", user, "a", "ASOF", killBase+pairs)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		for i, cmd := range counts {
			reply, err := cmd.Slice()
			if err != nil || len(reply) != 4 {
				t.Fatalf("got %v, %v", reply, err)
			}
			first, _ := reply[0].([]any)
			count, most := optional(first[1]), optional(first[2])
			if *count > int64(i+1) || *most < int64(i+1) {
				t.Errorf("RESP%d: after %d appends in one pipeline: %v", protocol, i+1, first)
			}
		}
	}
}

// TestTerminatedWhileStarting sends SIGTERM at random moments of a start. The process ends with 0 and the next start finds
// everything.
func TestTerminatedWhileStarting(t *testing.T) {
	random := randomFor(t)
	n := Start(t, killSettings)
	tr := &trace{events: map[string]*traced{}}
	for k := range 200 {
		n.sendHTTP(killEvents(random, fmt.Sprintf("k%d", k)), tr)
	}
	n.kill()
	for range 8 {
		n.launch()
		// Not before the process can have taken the signal over: until then it ends as any process does.
		eventually(t, readyWait, "the node listens", func() bool {
			_, _, err := n.try(http.MethodGet, "/readyz", "", nil)
			return err == nil
		})
		<-time.After(time.Duration(random.Int64N(int64(30 * time.Millisecond)))) // a random moment, not a wait for something
		if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := n.exitCode(); code != 0 {
			t.Errorf("exit status %d after SIGTERM during a start; want 0", code)
		}
	}
	n.start()
	checkLog(t, n, tr, random)
}

// TestRetention: what is older than retention, counted from its arrival, leaves the log; a counter keeps what it has counted, and
// one that is built later says from when on it is complete.
func TestRetention(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	settings := func(counters string) string {
		return "streams:\n  events: {partitions: 1, segment: data.user, retention: 1s}\ncounters:\n" + counters
	}
	const early = "  - {name: early, stream: events, key: [data.ad], windows: [1m, 1h, 1d]}\n"
	n := Start(t, settings(early))
	tr := newTruth(windowsOf("1m", "1h", "1d"), (24 * time.Hour).Milliseconds())
	sent := 0
	more := func(events int) {
		var lines []string
		for range events {
			e := sample{fmt.Sprintf("e%d", sent), "u", "a", killBase + int64(sent)*100 + random.Int64N(50)}
			lines = append(lines, e.line())
			tr.add(0, "a", "u", e.id, e.time)
			sent++
		}
		n.sendAll("events", lines...)
	}
	more(500)
	n.restart() // writes the state out: before that the log keeps what a crash would need
	eventually(t, readyWait, "the first events have left the log", func() bool {
		more(1)
		first := n.events("partition=0&offset=0&limit=1")
		return len(first) == 1 && first[0].Offset > 0
	})
	n.terminate()
	n.configure(settings(early + "  - {name: later, stream: events, key: [data.ad], windows: [1m, 1h, 1d]}\n"))
	n.start()
	n.waitBuilt("later", "a")
	for range 30 {
		asOf := killBase + random.Int64N(int64(sent)*100)
		a, b := n.count("early", at(asOf), "a"), n.count("later", at(asOf), "a")
		if v := tr.judge(t, "a", &a); v.exact != 3 {
			t.Errorf("the counter that saw everything: %+v", a)
		}
		if b.CompleteSince == nil {
			t.Fatalf("a counter built from a part of the log: %+v; want complete_since", b)
		}
		if w := b.Windows["1d"]; w.Max != nil || w.Exact || w.Count > a.Windows["1d"].Count {
			t.Errorf("a window that reaches before the log: %+v; the truth is %d", w, a.Windows["1d"].Count)
		}
	}
}
