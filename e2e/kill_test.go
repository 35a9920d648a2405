package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	killRounds, killRoundsSoak = 20, 200
	killPartitions             = 3
	killUsers, killAds         = 300, 12
	killBase                   = 1_767_225_600_000 // 2026-01-01T00:00Z
	killSpread                 = 3 * time.Hour     // the events' times lie within it: none is late
	killAcksMax                = 300               // acknowledged requests until the kill, at most
	killHTTP, killRESP         = 4, 2              // producers
	killBatchMax               = 40                // events in a request
	killResent                 = 200               // acknowledged events that are sent again after each start
	killAsks                   = 60                // questions after each start
)

// killSettings give the node little memory, so that it writes its state out while it works.
const killSettings = `memory: 160MiB
limits: {body: 1MiB, event: 64KiB}
streams:
  events: {partitions: 3, segment: data.user, ring: {bytes: 4MiB}, dedup: {max_ids: 300000}}
counters:
  - {name: pair, stream: events, key: [data.user, data.ad], windows: [1m, 1h, 1d]}
  - {name: ad, stream: events, key: [data.ad], windows: [1s, 1m, 1h, 1d]}
  - {name: forgetful, stream: events, key: [data.ad], windows: [1s, 1m, 1h, 1d], dedup_ids: 100}
`

// sample is one event as it is sent.
type sample struct {
	id, user, ad string
	time         int64
}

func (e sample) data() string { return fmt.Sprintf(`{"user":%q,"ad":%q}`, e.user, e.ad) }

func (e sample) line() string {
	return fmt.Sprintf(`{"id":%q,"type":"impression","time":%d,"data":%s}`, e.id, e.time, e.data())
}

// outcome is what the producers of the test know of an event.
type outcome uint8

const (
	unknown outcome = iota // no answer came: it may be stored or not
	acked                  // it has to be there
	refused                // it must not be there
)

// trace is the append-only memory outside the node: every event that was sent, and what its producer was told.
type trace struct {
	mu     sync.Mutex
	events map[string]*traced // by id
	round  int                // how often expect was called
	acks   int                // requests acknowledged since the last start
	enough chan struct{}      // closed when acks reaches target
	target int
}

type traced struct {
	sample
	outcome outcome
	round   int
	place   string // XADD's answer: offset+1-partition; empty: not told
}

// note records the answer to one request. places may be nil.
func (tr *trace) note(sent []sample, o outcome, places []string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for i, e := range sent {
		known := &traced{sample: e, outcome: o, round: tr.round}
		if places != nil {
			known.place = places[i]
		}
		tr.events[e.id] = known
	}
	if o == acked {
		if tr.acks++; tr.acks == tr.target {
			close(tr.enough)
		}
	}
}

// expect prepares the trace for another round.
func (tr *trace) expect(acks int) {
	tr.round++
	tr.acks, tr.target, tr.enough = 0, acks, make(chan struct{})
}

// TestKillRounds kills the node at random moments while producers send with ack=disk over both protocols. After each
// start nothing acknowledged is missing, nothing is there twice or out of place, and the counts are those of the log.
func TestKillRounds(t *testing.T) {
	series := 1
	if soak() {
		series = killRoundsSoak / killRounds // each on a log of its own, or reading it all after each round would take hours
	}
	for i := range series {
		t.Run(fmt.Sprintf("series %d", i+1), killSeries)
	}
}

func killSeries(t *testing.T) {
	random := randomFor(t)
	n := Start(t, killSettings)
	tr := &trace{events: map[string]*traced{}}
	for round := range killRounds {
		tr.expect(1 + random.IntN(killAcksMax))
		produceUntilKilled(t, n, tr, random, round)
		switch random.IntN(4) {
		case 0:
			killWhileStarting(n, random)
		case 1: // the next kill finds everything written out, and new events beside it
			n.start()
			n.terminate()
		}
		n.start()
		resend(t, n, tr, random)
		checkLog(t, n, tr, random)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	n.restart()
	checkLog(t, n, tr, random)
	t.Logf("%d rounds, %d events", killRounds, len(tr.events))
}

func produceUntilKilled(t *testing.T, n *node, tr *trace, random *rand.Rand, round int) {
	t.Helper()
	var producers sync.WaitGroup
	stop := make(chan struct{})
	for p := range killHTTP + killRESP {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		send := n.sendHTTP
		if p >= killHTTP {
			client := n.redis(2 + p%2)
			defer client.Close()
			send = func(events []sample, tr *trace) bool { return sendRESP(t, client, events, tr) }
		}
		producers.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				if !send(killEvents(own, fmt.Sprintf("r%dp%dk%d", round, p, k)), tr) {
					return
				}
			}
		})
	}
	select {
	case <-tr.enough:
	case <-n.exited:
		t.Errorf("the node ended by itself: %v", n.cmd.ProcessState)
	case <-time.After(replyWait):
		t.Errorf("%d requests were not acknowledged within %v", tr.target, replyWait)
	}
	n.kill()
	close(stop)
	producers.Wait()
}

func killEvents(random *rand.Rand, prefix string) []sample {
	events := make([]sample, 1+random.IntN(killBatchMax))
	for i := range events {
		events[i] = sample{
			id:   fmt.Sprintf("%si%d", prefix, i),
			user: fmt.Sprintf("u%d", random.IntN(killUsers)),
			ad:   fmt.Sprintf("a%d", random.IntN(killAds)),
			time: killBase + random.Int64N(killSpread.Milliseconds()),
		}
	}
	return events
}

// sendHTTP sends events as one request and notes the answer. False: the node is gone.
func (n *node) sendHTTP(events []sample, tr *trace) bool {
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = e.line()
	}
	status, body, err := n.try(http.MethodPost, "/v1/streams/events/events?ack=disk", ndjson, []byte(strings.Join(lines, "\n")))
	var r receipt
	switch {
	case err != nil:
		tr.note(events, unknown, nil)
		return false
	case status == http.StatusTooManyRequests:
		tr.note(events, refused, nil)
	case status != http.StatusOK || json.Unmarshal(body, &r) != nil || r.Accepted != len(events):
		tr.note(events, unknown, nil)
		n.t.Errorf("status %d for %d new events: %s", status, len(events), body)
	default:
		tr.note(events, acked, nil)
	}
	return true
}

// sendRESP sends events as one pipeline of XADD and notes each answer. False: the node is gone.
func sendRESP(t *testing.T, c *redis.Client, events []sample, tr *trace) bool {
	commands := make([]*redis.Cmd, len(events))
	pipe := c.Pipeline()
	for i, e := range events {
		commands[i] = pipe.Do(context.Background(), "XADD", "events", "*", "id", e.id, "type", "impression",
			"time", e.time, "data", e.data())
	}
	_, _ = pipe.Exec(context.Background()) // each command has its own error
	up, places := true, []string(nil)
	for i, cmd := range commands {
		place, err := cmd.Text()
		switch {
		case err == nil && len(places) == i:
			places = append(places, place)
		case err == nil:
			tr.note(events[i:i+1], acked, []string{place})
		case strings.HasPrefix(err.Error(), "BUSY"):
			tr.note(events[i:i+1], refused, nil)
		default:
			tr.note(events[i:i+1], unknown, nil)
			if up = false; !gone(err) {
				t.Errorf("XADD: %v", err)
			}
		}
	}
	if len(places) > 0 {
		tr.note(events[:len(places)], acked, places)
	}
	return up
}

// killWhileStarting kills the node somewhere in its recovery.
func killWhileStarting(n *node, random *rand.Rand) {
	n.launch()
	select {
	case <-time.After(time.Duration(random.Int64N(int64(200 * time.Millisecond)))): // a random moment, not a wait for something
	case <-n.exited:
		n.t.Errorf("the node ended while starting: %v", n.cmd.ProcessState)
	}
	n.kill()
}

// resend sends what is not known to be stored, which makes it known, and again some of what is: these are duplicates, since
// the newest ids are remembered over a crash.
func resend(t *testing.T, n *node, tr *trace, random *rand.Rand) {
	t.Helper()
	var open, again []string
	for _, e := range tr.events {
		switch {
		case e.outcome == unknown:
			open = append(open, e.line())
			e.outcome = acked
		case e.outcome == acked && e.round >= tr.round-1 && len(again) < killResent && random.IntN(8) == 0:
			again = append(again, e.line())
		}
	}
	if r := n.send("events", open...); r.Accepted+r.Duplicates != len(open) {
		t.Errorf("sent %d events of unknown fate again: %+v", len(open), r)
	}
	if r := n.send("events", again...); r.Duplicates != len(again) {
		t.Errorf("sent %d acknowledged events again: %d accepted, %d duplicates", len(again), r.Accepted, r.Duplicates)
	}
}

// checkLog reads the whole log and holds it against the trace, and the counters against the log.
func checkLog(t *testing.T, n *node, tr *trace, random *rand.Rand) {
	t.Helper()
	pairs := newTruth(windowsOf("1m", "1h", "1d"), (24 * time.Hour).Milliseconds())
	ads := newTruth(windowsOf("1s", "1m", "1h", "1d"), (24 * time.Hour).Milliseconds())
	found := map[string]string{}
	for p := range killPartitions {
		for _, e := range n.partition(p) {
			data := decode[struct{ User, Ad string }](t, e.Data)
			when, err := time.Parse(time.RFC3339, e.Time)
			if err != nil {
				t.Fatalf("event %s has time %q", e.ID, e.Time)
			}
			place := fmt.Sprintf("%d-%d", e.Offset+1, p)
			if other, twice := found[e.ID]; twice {
				t.Errorf("event %s is at %s and at %s", e.ID, other, place)
			}
			found[e.ID] = place
			if sent := tr.events[e.ID]; sent == nil || (sample{e.ID, data.User, data.Ad, when.UnixMilli()}) != sent.sample {
				t.Errorf("event %s at %s is %+v; was sent as %+v", e.ID, place, e, sent)
			}
			pairs.add(p, data.User+" "+data.Ad, data.User, e.ID, when.UnixMilli())
			ads.add(p, data.Ad, data.User, e.ID, when.UnixMilli())
		}
	}
	for id, e := range tr.events {
		place, there := found[id]
		switch {
		case e.outcome == acked && !there:
			t.Errorf("event %s of user %s was acknowledged (%q) and is lost", id, e.user, e.place)
		case e.outcome == refused && there:
			t.Errorf("event %s was refused and is at %s", id, place)
		case there && e.place != "" && e.place != place:
			t.Errorf("event %s is at %s; XADD answered %s", id, place, e.place)
		}
	}
	askKilled(t, n, pairs, ads, random)
}

// askKilled asks both counters at random instants.
func askKilled(t *testing.T, n *node, pairs, ads *truth, random *rand.Rand) {
	t.Helper()
	for range killAsks {
		asOf := killBase + random.Int64N(2*killSpread.Milliseconds())
		user, ad := fmt.Sprintf("u%d", random.IntN(killUsers)), fmt.Sprintf("a%d", random.IntN(killAds))
		pair := n.count("pair", at(asOf), user, ad)
		total := n.count("ad", at(asOf), ad)
		if v := pairs.judge(t, user+" "+ad, &pair); v.exact != len(pairs.windows) {
			t.Errorf("pair %s %s at %d is not exact: %+v", user, ad, asOf, pair)
		}
		if v := ads.judge(t, ad, &total); v.exact != len(ads.windows) {
			t.Errorf("ad %s at %d is not exact: %+v", ad, asOf, total)
		}
		bracket := n.count("forgetful", at(asOf), ad)
		ads.loose = true
		ads.judge(t, ad, &bracket)
		ads.loose = false
	}
}
