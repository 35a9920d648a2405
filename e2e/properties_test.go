package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	propertyWindows = "[1s, 1m, 1h, 1d]"
	propertyEvents  = 6000 // distinct events of a random log
	propertyKeys    = 8
	propertySpread  = 6 * time.Hour
)

// randomLog returns distinct events on few keys, so that some become dense; times are drawn coarsely now and then, so
// that many share one.
func randomLog(random *rand.Rand) []sample {
	log := make([]sample, propertyEvents)
	for i := range log {
		ts := killBase + random.Int64N(propertySpread.Milliseconds())
		if random.IntN(3) == 0 {
			ts -= ts % time.Minute.Milliseconds()
		}
		key := min(random.IntN(propertyKeys), random.IntN(propertyKeys)) // skewed
		log[i] = sample{fmt.Sprintf("e%d", i), fmt.Sprintf("u%d", key), fmt.Sprintf("a%d", random.IntN(3)), ts}
	}
	return log
}

// sendInPieces sends events in requests of random sizes.
func sendInPieces(n *node, stream string, random *rand.Rand, events []sample) {
	for len(events) > 0 {
		size := min(1+random.IntN(700), len(events))
		lines := make([]string, size)
		for i, e := range events[:size] {
			lines[i] = e.line()
		}
		n.send(stream, lines...)
		events = events[size:]
	}
}

func shuffled[T any](random *rand.Rand, in []T) []T {
	out := slices.Clone(in)
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// TestOrderDoesNotMatter sends one log in four ways: sorted, in random order, with copies, and a live half before its
// backfill; with restarts and crashes in between. All four give the same answers, and the right ones.
func TestOrderDoesNotMatter(t *testing.T) {
	random := randomFor(t)
	log := randomLog(random)
	streams := []string{"sorted", "mixed", "copied", "live-first"}
	settings := "streams:\n"
	for _, s := range streams {
		settings += fmt.Sprintf("  %s: {partitions: 2, segment: data.user, dedup: {window: 0s}}\n", s)
	}
	settings += "counters:\n"
	for _, s := range streams {
		settings += fmt.Sprintf("  - {name: pair-%s, stream: %s, key: [data.user, data.ad], windows: %s}\n", s, s, propertyWindows)
		settings += fmt.Sprintf("  - {name: ad-%s, stream: %s, key: [data.ad], windows: %s}\n", s, s, propertyWindows)
	}
	n := Start(t, settings)

	byTime := slices.Clone(log)
	slices.SortFunc(byTime, func(a, b sample) int { return int(a.time - b.time) })
	half := len(byTime) / 2
	orders := map[string][]sample{
		"sorted":     byTime,
		"mixed":      shuffled(random, log),
		"copied":     shuffled(random, append(slices.Clone(log), shuffled(random, log)[:half]...)),
		"live-first": append(slices.Clone(byTime[half:]), byTime[:half+100]...),
	}
	const pieces = 4
	for piece := range pieces {
		for _, s := range streams {
			all := orders[s]
			sendInPieces(n, s, random, all[piece*len(all)/pieces:(piece+1)*len(all)/pieces])
		}
		if piece%2 == 0 {
			n.crash()
		} else {
			n.restart()
		}
	}

	pairs, ads := newTruth(windowsOf("1s", "1m", "1h", "1d"), (24*time.Hour).Milliseconds()), newTruth(windowsOf("1s", "1m", "1h", "1d"), (24*time.Hour).Milliseconds())
	for _, e := range log {
		pairs.add(0, e.user+" "+e.ad, e.user, e.id, e.time)
		ads.add(0, e.ad, e.user, e.id, e.time)
	}
	for range 150 {
		e := log[random.IntN(len(log))]
		asOf := e.time + []int64{-1, 0, 1, 999, 1000, 59_999, 60_000, 3_600_000, 86_399_999, 86_400_000}[random.IntN(10)]
		for _, s := range streams {
			pair, ad := n.count("pair-"+s, at(asOf), e.user, e.ad), n.count("ad-"+s, at(asOf), e.ad)
			if v := pairs.judge(t, e.user+" "+e.ad, &pair); v.exact != 4 {
				t.Errorf("%s is not exact: %+v", s, pair)
			}
			if v := ads.judge(t, e.ad, &ad); v.exact != 4 {
				t.Errorf("%s is not exact: %+v", s, ad)
			}
		}
	}
}

// TestCountOnlyFallsAtNextExpiry follows next_expiry from the newest event to the end: an exact count changes at each of
// these instants, and not in between.
func TestCountOnlyFallsAtNextExpiry(t *testing.T) {
	random := randomFor(t)
	n := Start(t, "streams:\n  events: {partitions: 2, segment: data.user}\ncounters:\n"+
		"  - {name: pair, stream: events, key: [data.user, data.ad], windows: "+propertyWindows+"}\n"+
		"  - {name: ad, stream: events, key: [data.ad], windows: "+propertyWindows+"}\n")
	log := randomLog(random)[:600]
	sendInPieces(n, "events", random, log)
	ads := newTruth(windowsOf("1s", "1m", "1h", "1d"), 0)
	for _, e := range log {
		ads.add(0, e.ad, e.user, e.id, e.time)
	}
	times := ads.of("a0")
	asOf := times[len(times)-1]
	const stepsMax = 5000
	for range stepsMax {
		now := n.count("ad", at(asOf), "a0")
		ads.judge(t, "a0", &now)
		if now.NextExpiry == nil {
			if now.Windows["1d"].Count != 0 {
				t.Errorf("nothing expires any more, but the day still counts %+v", now)
			}
			return
		}
		next := *now.NextExpiry
		before, after := n.count("ad", at(next-1), "a0"), n.count("ad", at(next), "a0")
		fell := false
		for name, w := range now.Windows {
			if before.Windows[name].Count != w.Count {
				t.Errorf("%s: %d at %d, %d at %d, before next_expiry %d", name, w.Count, asOf, before.Windows[name].Count, next-1, next)
			}
			if after.Windows[name].Count > w.Count {
				t.Errorf("%s rose from %d to %d at %d", name, w.Count, after.Windows[name].Count, next)
			}
			fell = fell || after.Windows[name].Count < w.Count
		}
		if !fell {
			t.Errorf("nothing changed at next_expiry %d", next)
		}
		asOf = next
	}
	t.Errorf("more than %d changes", stepsMax)
}

// TestWiderWindowsCountMore asks without pause while a shuffled log is being loaded: at every moment a window counts no
// less than a shorter one.
func TestWiderWindowsCountMore(t *testing.T) {
	random := randomFor(t)
	n := Start(t, "streams:\n  events: {partitions: 2, segment: data.user}\ncounters:\n"+
		"  - {name: ad, stream: events, key: [data.ad], windows: "+propertyWindows+"}\n")
	var loading sync.WaitGroup
	done := make(chan struct{})
	loader := rand.New(rand.NewPCG(random.Uint64(), 0))
	loading.Go(func() {
		defer close(done)
		sendInPieces(n, "events", loader, randomLog(loader))
	})
	defer loading.Wait()
	for asked := 0; ; asked++ {
		select {
		case <-done:
			t.Logf("asked %d times", asked)
			return
		default:
		}
		a := n.count("ad", at(killBase+random.Int64N(propertySpread.Milliseconds())), "a0")
		last := int64(0)
		for _, name := range []string{"1s", "1m", "1h", "1d"} {
			if c := a.Windows[name].Count; c < last {
				t.Fatalf("%s counts less than a shorter window: %+v", name, a)
			}
			last = a.Windows[name].Count
		}
	}
}

// TestProtocolsAgree asks the same over HTTP and in the three ways of RESP, in both versions.
func TestProtocolsAgree(t *testing.T) {
	random := randomFor(t)
	n := Start(t, `streams:
  events: {partitions: 3, segment: data.user}
counters:
  - {name: pair, stream: events, key: [data.user, data.ad], windows: [1h, 1d]}
  - {name: ad, stream: events, key: [data.ad], windows: [1d, 1h]}
`)
	// Keys with bytes that protocols trip over. Only the last part may hold a colon in HGETALL.
	users := []string{"u1", "ü 2", "", "3", "true", `q"uote\`, "new\nline", "a&b=c%", "ASOF"}
	ads := []string{"a1", "a:9", "::", "1.5", "false", "ASOF", "\t"}
	recent := time.Now().Add(-10 * time.Minute).UnixMilli() // inside every window for as long as the test runs
	var lines []string
	for i := range 500 {
		user, ad := strconv.Quote(users[random.IntN(len(users))]), strconv.Quote(ads[random.IntN(len(ads))])
		lines = append(lines, fmt.Sprintf(`{"id":"e%d","type":"t","time":%d,"data":{"user":%s,"ad":%s}}`, i, recent+int64(i), user, ad))
	}
	n.sendAll("events", lines...)
	for _, protocol := range []int{2, 3} {
		c := n.redis(protocol)
		for _, user := range append(users, "nobody") {
			for _, ad := range ads {
				agree(t, n, c, "pair", user, ad)
				agree(t, n, c, "ad", ad)
			}
		}
	}
}

func agree(t *testing.T, n *node, c *redis.Client, counter string, key ...string) {
	t.Helper()
	ctx := context.Background()
	now := time.Now().UnixMilli()
	want := n.count(counter, at(now), key...)
	windows, next := weirCount(t, c, counter, at(now), key...)
	if show(next) != show(want.NextExpiry) || len(windows) != len(want.Windows) {
		t.Errorf("%s %q: next expiry %s by WEIR.COUNT, %s by HTTP", counter, key, show(next), show(want.NextExpiry))
	}
	name := counter + ":" + strings.Join(key, ":")
	hash, err := c.HGetAll(ctx, name).Result()
	if err != nil || len(hash) != len(want.Windows) {
		t.Errorf("HGETALL %q: %v, %v", name, hash, err)
	}
	for _, w := range windows {
		h := want.Windows[w.name]
		decimal := strconv.FormatInt(h.Count, 10)
		if w.count != h.Count || show(w.max) != show(h.Max) || w.exact != h.Exact || hash[w.name] != decimal {
			t.Errorf("%s %q %s: HTTP %+v, WEIR.COUNT %+v, HGETALL %q", counter, key, w.name, h, w, hash[w.name])
		}
		if one, err := c.HGet(ctx, name, w.name).Result(); err != nil || one != decimal {
			t.Errorf("HGET %q %s: %q, %v; want %s", name, w.name, one, err, decimal)
		}
	}
	some, err := c.HMGet(ctx, name, "1h", "no such window", "1d").Result()
	if err != nil || len(some) != 3 || some[0] != hash["1h"] || some[1] != nil || some[2] != hash["1d"] {
		t.Errorf("HMGET %q: %v, %v; want what HGETALL says and one null", name, some, err)
	}
}

// TestReadYourWrites looks each event up as soon as it is acknowledged, through either protocol. A look-up that could not
// wait says how far it is behind.
func TestReadYourWrites(t *testing.T) {
	n := Start(t, `streams:
  events: {partitions: 2, segment: data.user}
counters:
  - {name: pair, stream: events, key: [data.user, data.ad], windows: [1h, 1d]}
  - {name: ad, stream: events, key: [data.ad], windows: [1h, 1d]}
`)
	c := n.redis(3)
	recent := time.Now().Add(-time.Minute).UnixMilli()
	behind, users := 0, map[string]int64{}
	const rounds = 2000
	for i := range rounds {
		user := fmt.Sprintf("u%d", i%7)
		users[user]++
		e := sample{fmt.Sprintf("e%d", i), user, "a", recent + int64(i)}
		if i%2 == 0 {
			n.sendAll("events", e.line())
		} else if _, err := xadd(c, "id", e.id, "type", "t", "time", strconv.FormatInt(e.time, 10), "data", e.data()); err != nil {
			t.Fatal(err)
		}
		asOf := recent + rounds
		pair := n.count("pair", at(asOf), user, "a")
		for name, w := range pair.Windows {
			if w.Count > users[user] || *w.Max < users[user] || pair.Behind == 0 && w.Count != users[user] {
				t.Fatalf("%s after %d acknowledged events of %s: %+v", name, users[user], user, pair)
			}
		}
		windows, _ := weirCount(t, c, "ad", at(asOf), "a")
		for _, w := range windows {
			if w.count > int64(i+1) || *w.max < int64(i+1) || w.exact != (w.count == *w.max) {
				t.Fatalf("%s after %d acknowledged events: %+v", w.name, i+1, w)
			}
			if !w.exact {
				behind++
			}
		}
	}
	t.Logf("%d of %d look-ups over RESP did not wait long enough and said so", behind, rounds)
}

// TestKeyParts: how values become key parts, and what cannot be one.
func TestKeyParts(t *testing.T) {
	n := Start(t, `streams:
  events: {partitions: 1}
counters:
  - {name: seen, stream: events, key: [data.k], windows: [1d]}
  - {name: typed, stream: events, key: [type, subject], windows: [1d]}
`)
	n.sendAll("events",
		`{"id":"1","type":"t","data":{"k":1}}`, `{"id":"2","type":"t","data":{"k":1.0}}`, `{"id":"3","type":"t","data":{"k":"1"}}`,
		`{"id":"4","type":"t","data":{"k":100}}`, `{"id":"5","type":"t","data":{"k":1e2}}`,
		`{"id":"6","type":"t","data":{"k":true}}`, `{"id":"7","type":"t","data":{"k":"A\u00e9\n"}}`,
		`{"id":"8","type":"t","data":{"k":null}}`, `{"id":"9","type":"t","data":{"k":[1]}}`, `{"id":"10","type":"t","data":{"k":{}}}`,
		`{"id":"11","type":"t","data":{}}`, `{"id":"12","type":"t"}`, `{"id":"13","type":"t","data":{"k":-0.0}}`,
		`{"id":"14","type":"t","data":{"k":""}}`, `{"id":"15","type":"click","subject":"s"}`,
		`{"id":"16","type":"t","data":{"k":9007199254740993}}`)
	for key, want := range map[string]int64{"1": 3, "100": 2, "true": 1, "Aé\n": 1, "": 1, "0": 1, "null": 0, "[1]": 0, "{}": 0,
		"9007199254740993": 1, "9007199254740992": 0} {
		if got := n.count("seen", nil, key).Windows["1d"]; got.Count != want || !got.Exact {
			t.Errorf("key %q: %+v; want %d", key, got, want)
		}
	}
	if got := n.count("typed", nil, "click", "s").Windows["1d"].Count; got != 1 {
		t.Errorf("a key of attributes counts %d; want 1", got)
	}
	_, metrics, err := n.try("GET", "/metrics", "", nil)
	if err != nil || !strings.Contains(string(metrics), "weir_") {
		t.Errorf("no metrics: %v", err)
	}
	if status, body, _ := n.try("GET", "/v1/counters/seen?"+url.Values{"key": {"a", "b"}}.Encode(), "", nil); status != 400 {
		t.Errorf("two key parts for a key of one: status %d: %s", status, body)
	}
}
