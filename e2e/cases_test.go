package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// semanticCase is one line of the table: what is sent to a counter of its own, and what it must answer.
//
// Events are [key/]id@ts[!kind], in order of arrival. Questions are [key:]as_of=count; a question mark behind the count
// says that the window reaches before complete_since. One batch per event.
type semanticCase struct {
	name, window, lateness, events, questions string
}

// semanticCases are the cases of sliding counters. Each counter is asked on the wire of a running node, after a restart
// and after a crash. Times are small, so the stream's unit check is off; and the stream remembers no ids, so that copies
// reach the counters.
func semanticCases() []semanticCase {
	return []semanticCase{
		{"boundary", "1m", "24h", "e@0", "59999=1 60000=0"},
		{"at the query", "1m", "24h", "e@1000", "999=0 1000=1"},
		{"same ts", "1m", "24h", "a@5 b@5 c@5", "4=0 5=3 60004=3 60005=0"},
		{"same id twice", "1m", "24h", "x@5 x@5", "5=1"},
		{"same id other ts", "1m", "24h", "x@5 x@9", "8=0 9=1 60008=1 60009=0"},
		{"same id older ts", "1m", "24h", "x@9 x@5", "8=0 9=1 60008=1 60009=0"},
		{"same id on two keys", "1m", "24h", "k1/x@5 k2/x@5", "k1:5=1 k2:5=1 k3:5=0"},
		{"out of order", "1m", "24h", "a@50000 b@10000 c@30000", "60000=3 70000=2 90000=1 110000=0"},
		{"late", "1m", "40s", "n@200000 a@100000 b@100001", "150000=1? 160000=1 160001=0 200000=1"},
		{"late does not move the horizon back", "1m", "40s", "n@200000 a@1 b@100001", "160000=1"},
		{"zero and negative ts", "1m", "24h", "a@0 b@-1 c@-60000", "0=2"},
		{"negative boundary", "1m", "24h", "a@-60000", "-1=1 0=0"},
		{"steady trickle", "5s", "24h", trickle(2000, 60_000), "4000=3 4999=3 5000=2 6000=3 59999=2 60000=3 64999=1 65000=0"},
		{"idle", "1m", "24h", "a@1000 b@2000", "121999=0 182000=0"},
		{"wrong type", "1m", "24h", "a@5 b@5!click", "5=1"},
		{"sparse becomes dense", "1h", "24h", trickle(1000, 300_000), "300000=301 3600000=300 3900000=0"},
		{"whole seconds and beside them", "1m", "24h", trickle(333, 90_000), "59999=181 60000=180"},
	}
}

// trickle is an event every step ms from 0 to last.
func trickle(step, last int) string {
	var b strings.Builder
	for ts := 0; ts <= last; ts += step {
		fmt.Fprintf(&b, "t%d@%d ", ts, ts)
	}
	return b.String()
}

var (
	eventForm    = regexp.MustCompile(`^(?:(\w+)/)?(\w+)@(-?\d+)(?:!(\w+))?$`)
	questionForm = regexp.MustCompile(`^(?:(\w+):)?(-?\d+)=(\d+)(\?)?$`)
)

func counterOf(i int) string { return "case-" + strconv.Itoa(i) }

func TestSemanticCases(t *testing.T) {
	cases := semanticCases()
	settings := "streams:\n  events: {partitions: 2, segment: data.user, dedup: {window: 0s}, time: {unit_check: false}}\ncounters:\n"
	for i, c := range cases {
		settings += fmt.Sprintf("  - {name: %s, stream: events, where: 'type == %q && data.kind == \"view\"', key: [data.key], windows: [%s], lateness: %s}\n",
			counterOf(i), counterOf(i), c.window, c.lateness)
	}
	n := Start(t, settings)
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) { sendCase(t, n, i, c) })
	}
	askCases(t, n, "live")
	n.restart()
	askCases(t, n, "after a restart")
	n.crash()
	askCases(t, n, "after a crash")
}

// sendCase sends the events of a case: the short ones one by one.
func sendCase(t *testing.T, n *node, i int, c semanticCase) {
	const shortMax = 10
	var lines []string
	for _, word := range strings.Fields(c.events) {
		m := eventForm.FindStringSubmatch(word)
		if m == nil {
			t.Fatalf("cannot read the event %q", word)
		}
		key, kind := orElse(m[1], "k"), orElse(m[4], "view")
		lines = append(lines, fmt.Sprintf(`{"id":%q,"type":%q,"time":%s,"data":{"user":"u","key":%q,"kind":%q}}`, m[2], counterOf(i), m[3], key, kind))
	}
	if len(lines) > shortMax {
		n.sendAll("events", lines...)
		return
	}
	for _, line := range lines {
		n.sendAll("events", line)
	}
}

func askCases(t *testing.T, n *node, when string) {
	for i, c := range semanticCases() {
		t.Run(when+"/"+c.name, func(t *testing.T) {
			for _, word := range strings.Fields(c.questions) {
				m := questionForm.FindStringSubmatch(word)
				if m == nil {
					t.Fatalf("cannot read the question %q", word)
				}
				asOf, _ := strconv.ParseInt(m[2], 10, 64)
				want, _ := strconv.ParseInt(m[3], 10, 64)
				got := n.count(counterOf(i), at(asOf), orElse(m[1], "k"))
				w := got.Windows[c.window]
				complete := m[4] == ""
				if w.Count != want || complete && (!w.Exact || show(w.Max) != m[3]) || !complete && (w.Exact || w.Max != nil) {
					t.Errorf("%s: got %d..%s, exact %v, complete_since %s", word, w.Count, show(w.Max), w.Exact, show(got.CompleteSince))
				}
			}
		})
	}
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// TestQuietStreamExpires asks at the wall clock, which moves without events.
func TestQuietStreamExpires(t *testing.T) {
	n := Start(t, `streams:
  events: {partitions: 1}
counters:
  - {name: seen, stream: events, key: [data.key], windows: [1s, 1d]}
`)
	n.sendAll("events", `{"id":"a","type":"t","data":{"key":"k"}}`)
	eventually(t, time.Minute, "the event has left the window of a second", func() bool {
		a := n.count("seen", nil, "k")
		return a.Windows["1s"].Count == 0 && a.Windows["1d"].Count == 1
	})
}

// TestFuture: an event from beyond the skew is refused and does not move the horizon; one within it counts from its own time on.
func TestFuture(t *testing.T) {
	n := Start(t, `streams:
  events: {partitions: 1, time: {skew: 5m}}
  clamped: {partitions: 1, time: {skew: 5m, future: clamp}}
  open: {partitions: 1, time: {skew: 5m, future: accept}}
counters:
  - {name: seen, stream: events, key: [data.key], windows: [1m], lateness: 0s}
  - {name: clamped, stream: clamped, key: [data.key], windows: [1h], lateness: 0s}
  - {name: open, stream: open, key: [data.key], windows: [1h], lateness: 0s}
`)
	now := time.Now().UnixMilli()
	line := func(id string, ts int64) string {
		return fmt.Sprintf(`{"id":%q,"type":"t","time":%d,"data":{"key":"k"}}`, id, ts)
	}
	far := now + (6 * time.Minute).Milliseconds()
	if r := n.send("events", line("far", far)); len(r.Rejected) != 1 || r.Rejected[0].Field != "time" {
		t.Errorf("six minutes ahead: %+v; want it rejected", r)
	}
	for i := range 100 {
		n.sendAll("events", line(fmt.Sprintf("honest%d", i), now))
	}
	if w := n.count("seen", at(now), "k").Windows["1m"]; w.Count != 100 || !w.Exact {
		t.Errorf("100 honest events count %+v", w)
	}
	n.sendAll("events", line("near", now+1000))
	for asOf, want := range map[int64]int64{now: 100, now + 999: 100, now + 1000: 101} {
		if w := n.count("seen", at(asOf), "k").Windows["1m"]; w.Count != want {
			t.Errorf("one event within the skew, asked %d ms from now: %+v; want %d", asOf-now, w, want)
		}
	}
	n.sendAll("clamped", line("far", far))
	if w := n.count("clamped", at(far-1), "k").Windows["1h"]; w.Count != 1 {
		t.Errorf("clamped to its arrival and the skew, it counts before its own time: got %+v", w)
	}
	n.sendAll("open", line("far", far))
	if a, b := n.count("open", at(far-1), "k"), n.count("open", at(far), "k"); a.Windows["1h"].Count != 0 || b.Windows["1h"].Count != 1 {
		t.Errorf("accepted as it is: %+v before, %+v at its time", a, b)
	}
}

// TestHotKey counts many events on one key exactly, over all partitions.
func TestHotKey(t *testing.T) {
	total, batch := 200_000, 20_000
	if soak() {
		total = 1_000_000
	}
	n := Start(t, `streams:
  events: {partitions: 4, segment: data.user}
counters:
  - {name: ad, stream: events, key: [data.ad], windows: [1m, 1h, 1d]}
`)
	random := randomFor(t)
	tr := newTruth(windowsOf("1m", "1h", "1d"), (24 * time.Hour).Milliseconds())
	tr.seen = nil
	for first := 0; first < total; first += batch {
		lines := make([]string, batch)
		for i := range lines {
			ts := killBase + random.Int64N((2 * time.Hour).Milliseconds())
			lines[i] = fmt.Sprintf(`{"id":"h%d","type":"t","time":%d,"data":{"user":"u%d","ad":"hot"}}`, first+i, ts, random.IntN(1000))
			tr.add(0, "hot", "", "", ts)
		}
		n.sendAll("events", lines...)
		for range 5 {
			a := n.count("ad", at(killBase+random.Int64N((3*time.Hour).Milliseconds())), "hot")
			tr.judge(t, "hot", &a)
		}
	}
	n.crash()
	for range 50 {
		a := n.count("ad", at(killBase+random.Int64N((3*time.Hour).Milliseconds())), "hot")
		if v := tr.judge(t, "hot", &a); v.exact != len(tr.windows) {
			t.Errorf("not exact: %+v", a)
		}
	}
}
