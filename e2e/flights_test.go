package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/flights"
)

const (
	flightBatch    = 10_000  // events in a request
	flightAskEvery = 100_000 // events between two rounds of questions
	flightAsks     = 20      // questions of a round, of each kind
	flightLastAsks = 1_000   // questions at the end, of each kind
	flightShuffle  = 7 * 24 * time.Hour
	// flightEndWithin is how long after the start of a request the node is ended, at most: about what a request takes.
	flightEndWithin = 50 * time.Millisecond
	// flightExactMin is the share of exact answers for instants within the newest hour.
	flightExactMin = 0.95
)

// flightCounter is a counter over flights.
type flightCounter struct {
	name     string
	local    bool // by route; false: by destination, merged on read
	lateness string
	dedupIDs int // 0: the default
	truth    *truth
}

// TestFlights loads three million flights, asks while they arrive and at the end, and kills and drains the node in
// between. Each answer is judged.
func TestFlights(t *testing.T) {
	table, err := flights.Load()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows: %s", len(table.Flights), table.Origin)
	const day = 24 * time.Hour
	for _, load := range []flightLoad{
		{name: "in order", every: 1, counters: []*flightCounter{
			{name: "route", local: true, lateness: "8d", truth: newTruth(windowsOf("1h", "6h", "1d", "7d"), (8 * day).Milliseconds())},
			{name: "airport", lateness: "400d", truth: newTruth(windowsOf("1h", "6h", "1d", "7d"), (400 * day).Milliseconds())},
			{name: "forgetful", lateness: "400d", dedupIDs: 1000, truth: newTruth(windowsOf("1h", "6h", "1d", "7d"), (400 * day).Milliseconds())},
		}},
		{name: "shuffled", every: 4, shuffle: true, counters: []*flightCounter{
			{name: "route", local: true, lateness: "400d", truth: newTruth(windowsOf("1h", "6h", "1d", "7d"), (400 * day).Milliseconds())},
			{name: "airport", lateness: "8d", truth: newTruth(windowsOf("1h", "6h", "1d", "7d"), (8 * day).Milliseconds())},
		}},
		{name: "a tenth twice", every: 4, twice: true, counters: []*flightCounter{
			{name: "route", local: true, lateness: "8d", truth: newTruth(windowsOf("1h", "6h", "1d", "7d"), (8 * day).Milliseconds())},
			{name: "airport", lateness: "8d", truth: newTruth(windowsOf("1h", "6h", "1d", "7d"), (8 * day).Milliseconds())},
		}},
	} {
		t.Run(load.name, func(t *testing.T) {
			load.t, load.table, load.random = t, table, randomFor(t)
			load.run()
		})
	}
}

// flightLoad is one way to load the flights.
type flightLoad struct {
	name     string
	every    int // rows taken: each one, or each n-th unless soaking
	shuffle  bool
	twice    bool
	counters []*flightCounter

	t      testing.TB
	table  *flights.Table
	random *rand.Rand
	node   *node
	order  []int32 // rows in the order in which they are sent
	known  []bool  // by row: the truth has it
	sent   []int32 // the rows that were acknowledged
	newest int64
	found  map[string]*verdict // by counter: what was asked of the newest hour
	asked  map[string]*verdict // by counter: everything
	copies int                 // events that the stream itself recognised as sent before
}

func (l *flightLoad) run() {
	l.prepare()
	l.node = Start(l.t, l.settings())
	batches := (len(l.order) + flightBatch - 1) / flightBatch
	killed, drained := batches/3+l.random.IntN(batches/10+1), 2*batches/3+l.random.IntN(batches/10+1)
	bodies := l.encode()
	for b := range batches {
		rows := l.order[b*flightBatch : min((b+1)*flightBatch, len(l.order))]
		body := <-bodies
		switch b {
		case killed:
			l.sendInto(body, l.node.kill)
		case drained:
			l.sendInto(body, func() {
				if code := l.node.terminate(); code != 0 {
					l.t.Errorf("exit status %d after SIGTERM; want 0", code)
				}
			})
		default:
			l.post(body)
		}
		l.learn(rows)
		if len(l.sent)/flightAskEvery != (len(l.sent)-len(rows))/flightAskEvery {
			l.ask(flightAsks, 24*time.Hour)
			l.askNewest(flightAsks)
		}
	}
	l.askNewest(flightLastAsks / 4)
	l.ask(flightLastAsks, time.Duration(l.newest-l.table.Flights[0].Millis)*time.Millisecond+2*flightShuffle)
	l.report()
}

func (l *flightLoad) prepare() {
	every := l.every
	if soak() {
		every = 1
	}
	type sending struct {
		row int32
		due int64
	}
	var all []sending
	for row := 0; row < len(l.table.Flights); row += every {
		due := l.table.Flights[row].Millis
		if l.shuffle {
			due += l.random.Int64N(flightShuffle.Milliseconds())
		}
		all = append(all, sending{int32(row), due})
		if l.twice && l.random.IntN(10) == 0 {
			all = append(all, sending{int32(row), due + l.random.Int64N(flightShuffle.Milliseconds())})
		}
	}
	slices.SortStableFunc(all, func(a, b sending) int { return cmp.Compare(a.due, b.due) })
	l.order = make([]int32, len(all))
	for i, s := range all {
		l.order[i] = s.row
	}
	l.known = make([]bool, len(l.table.Flights))
	l.found, l.asked = map[string]*verdict{}, map[string]*verdict{}
	for _, c := range l.counters {
		c.truth.seen = nil // copies are left out by known
		l.found[c.name], l.asked[c.name] = &verdict{}, &verdict{}
	}
}

// settings lets the stream remember few ids where events come twice, so that some copies reach the counters.
func (l *flightLoad) settings() string {
	text := "streams:\n  events: {partitions: 4, segment: data.origin, retention: 500d"
	if l.twice {
		text += ", dedup: {window: 10m, max_ids: 4000}"
	}
	text += "}\ncounters:\n"
	for _, c := range l.counters {
		key := "[data.destination]"
		if c.local {
			key = "[data.origin, data.destination]"
		}
		text += fmt.Sprintf("  - {name: %s, stream: events, key: %s, windows: [1h, 6h, 1d, 7d], lateness: %s", c.name, key, c.lateness)
		if c.dedupIDs > 0 {
			text += fmt.Sprintf(", dedup_ids: %d", c.dedupIDs)
		}
		text += "}\n"
	}
	return text
}

// encode prepares bodies while others are being sent.
func (l *flightLoad) encode() <-chan []byte {
	bodies := make(chan []byte, 2)
	go func() {
		defer close(bodies)
		for rows := range slices.Chunk(l.order, flightBatch) {
			var body []byte
			for _, row := range rows {
				body = l.table.AppendEvent(body, int(row))
			}
			select {
			case bodies <- body:
			case <-l.t.Context().Done():
				return
			}
		}
	}()
	return bodies
}

// post sends a batch until it is taken: busy is no failure.
func (l *flightLoad) post(body []byte) {
	l.t.Helper()
	eventually(l.t, replyWait, "the batch is taken", func() bool {
		status, reply, err := l.node.try(http.MethodPost, "/v1/streams/events/events", ndjson, body)
		if err != nil || status != http.StatusOK && status != http.StatusTooManyRequests {
			l.t.Fatalf("cannot send a batch: status %d, %v\n%.500s", status, err, reply)
		}
		if status == http.StatusTooManyRequests {
			return false
		}
		r := decode[receipt](l.t, reply)
		if len(r.Rejected) > 0 {
			l.t.Fatalf("%d flights were rejected, the first: %+v", len(r.Rejected), r.Rejected[0])
		}
		l.copies += r.Duplicates
		return true
	})
}

// sendInto sends a batch while end ends the node, runs the node again, and sends the batch once more: what happened to the
// first copy is unknown.
func (l *flightLoad) sendInto(body []byte, end func()) {
	l.t.Helper()
	var sending sync.WaitGroup
	sending.Go(func() {
		_, _, _ = l.node.try(http.MethodPost, "/v1/streams/events/events", ndjson, body)
	})
	<-time.After(time.Duration(l.random.Int64N(int64(flightEndWithin)))) // a random moment of it, not a wait for something
	end()
	sending.Wait()
	l.node.start()
	l.post(body)
}

// learn tells the truth about rows that were acknowledged.
func (l *flightLoad) learn(rows []int32) {
	for _, row := range rows {
		l.sent = append(l.sent, row)
		if l.known[row] {
			continue
		}
		l.known[row] = true
		f := &l.table.Flights[row]
		l.newest = max(l.newest, f.Millis)
		for _, c := range l.counters {
			c.truth.add(0, c.key(l.table, f)[0], "", "", f.Millis)
		}
	}
}

// key returns the name by which the truth knows the key of f, and its parts.
func (c *flightCounter) key(table *flights.Table, f *flights.Flight) []string {
	destination := table.Airports[f.Destination]
	if !c.local {
		return []string{destination, destination}
	}
	origin := table.Airports[f.Source]
	return []string{origin + destination, origin, destination}
}

// ask asks every counter count times at random instants up to back before the newest event, and a little beyond it.
func (l *flightLoad) ask(count int, back time.Duration) {
	l.t.Helper()
	for range count {
		for _, c := range l.counters {
			l.askOne(c, l.newest+time.Minute.Milliseconds()-l.random.Int64N(back.Milliseconds()))
		}
	}
}

// askNewest asks for instants within the newest hour, and notes how many answers are exact.
func (l *flightLoad) askNewest(count int) {
	l.t.Helper()
	for range count {
		for _, c := range l.counters {
			l.found[c.name].add(l.askOne(c, l.newest-l.random.Int64N(time.Hour.Milliseconds())))
		}
	}
}

func (l *flightLoad) askOne(c *flightCounter, asOf int64) verdict {
	l.t.Helper()
	f := l.table.Flights[l.sent[l.random.IntN(len(l.sent))]]
	if l.random.IntN(4) == 0 { // any pair, also one that nobody flies
		f.Source, f.Destination = uint16(l.random.IntN(len(l.table.Airports))), uint16(l.random.IntN(len(l.table.Airports)))
	}
	key := c.key(l.table, &f)
	got := l.node.count(c.name, at(asOf), key[1:]...)
	if got.AsOf != asOf {
		l.t.Errorf("asked at %d, answered at %d", asOf, got.AsOf)
	}
	v := c.truth.judge(l.t, key[0], &got)
	l.asked[c.name].add(v)
	if v.bracket > 0 && v.incomplete == 0 && got.Behind == 0 {
		l.holdsUntilExpiry(c, &got, key[1:])
	}
	return v
}

// holdsUntilExpiry asks again just before next_expiry, or long after where nothing expires: the answer is still the same.
// Unless the counter has folded in between, which may widen a bracket at any moment: the first question, asked once more,
// then has another answer too.
func (l *flightLoad) holdsUntilExpiry(c *flightCounter, a *answer, key []string) {
	l.t.Helper()
	until := a.AsOf + 2*flightShuffle.Milliseconds()
	if a.NextExpiry != nil {
		until = *a.NextExpiry - 1
	}
	later := l.node.count(c.name, at(until), key...)
	again := l.node.count(c.name, at(a.AsOf), key...)
	if sameWindows(a, &again) && !sameWindows(a, &later) {
		l.t.Errorf("%s %q: %+v, and before next_expiry %s: %+v", c.name, key, *a, show(a.NextExpiry), later)
	}
}

func sameWindows(a, b *answer) bool {
	for name, w := range a.Windows {
		if other := b.Windows[name]; other.Count != w.Count || show(other.Max) != show(w.Max) || other.Exact != w.Exact {
			return false
		}
	}
	return true
}

func (l *flightLoad) report() {
	l.t.Logf("%d events sent, %d of them recognised as copies by the stream", len(l.order), l.copies)
	for _, c := range l.counters {
		v := l.found[c.name]
		share := float64(v.exact) / float64(v.exact+v.bracket+v.incomplete)
		l.t.Logf("%s: %d of %d windows exact within the newest hour (%.2f %%)", c.name, v.exact, v.exact+v.bracket+v.incomplete, 100*share)
		l.t.Logf("%s, all questions: %+v", c.name, *l.asked[c.name])
		if c.dedupIDs == 0 && share < flightExactMin {
			l.t.Errorf("%s: want at least %.0f %% exact within the newest hour", c.name, 100*flightExactMin)
		}
	}
}
