package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/shard"
)

// outEvent is an event as it is read back.
type outEvent struct {
	ID, Type, Source, Time string
	PartitionKey           string
	Data                   struct{ User string }
	WeirPartition          int64
	WeirArrival            string
	WeirOffset             int64
}

func parseEvents(t testing.TB, body string) []outEvent {
	t.Helper()
	var out []outEvent
	for line := range strings.Lines(body) {
		var e outEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("line %q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}

func ids(events []outEvent) string {
	var out []string
	for _, e := range events {
		out = append(out, e.ID)
	}
	return strings.Join(out, " ")
}

// eventOf is event i of user u, i seconds before the test's now.
func eventOf(i int, user string) string {
	return fmt.Sprintf(`{"id":"%d","type":"click","source":"/app","time":%d,"data":{"user":%q}}`, i, testNow-i*1000, user)
}

func TestGetEvents(t *testing.T) {
	n := newTestNode(t, nil)
	var lines []string
	byPartition := make([][]string, testPartitions) // ids in offset order
	users := []string{"u0", "u1", "u2", "u3", "u4"}
	for i := range 60 {
		user := users[i%len(users)]
		lines = append(lines, eventOf(i, user))
		p := shard.Of([]byte(user), testPartitions)
		byPartition[p] = append(byPartition[p], fmt.Sprint(i))
	}
	n.post(lines...)
	everything := strings.Join(slices.Concat(byPartition...), " ")
	u3 := shard.Of([]byte("u3"), testPartitions)
	pick := func(keep func(i int) bool) string {
		var out []string
		for _, id := range slices.Concat(byPartition...) {
			var i int
			fmt.Sscan(id, &i)
			if keep(i) {
				out = append(out, id)
			}
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct{ query, want string }{
		{"", everything},
		{"limit=100", everything},
		{"partition=1", strings.Join(byPartition[1], " ")},
		{"partition=1&offset=3", strings.Join(byPartition[1][3:], " ")},
		{"partition=1&offset=3&limit=2", strings.Join(byPartition[1][3:5], " ")},
		{"partition=1&offset=100000", ""},
		{"partition=1&offset=end", ""},
		{"segment=u3", pick(func(i int) bool { return i%5 == 3 })},
		{"segment=u3&limit=2", "3 8"},
		{"segment=nobody", ""},
		{"from=" + fmt.Sprint(testNow-9000), pick(func(i int) bool { return i <= 9 })},
		{"to=" + fmt.Sprint(testNow-9000), pick(func(i int) bool { return i > 9 })},
		{"from=2026-11-30T23:59:51Z&to=2026-11-30T23:59:53.000Z", pick(func(i int) bool { return i == 8 || i == 9 })},
		{"segment=u3&from=2026-11-30T23:59:51Z", "3 8"},
		{"next=0.1,1.1,2.1", strings.Join(slices.Concat(from(byPartition[0], 1), from(byPartition[1], 1), from(byPartition[2], 1)), " ")},
		{fmt.Sprintf("segment=u3&next=%d.0", u3), pick(func(i int) bool { return i%5 == 3 })},
	} {
		a := n.get(eventsPath + "?" + c.query)
		if got := ids(parseEvents(t, a.body)); a.status != 200 || got != c.want {
			t.Errorf("%s: got %d %q\nwant %q", c.query, a.status, got, c.want)
		}
		if a.header.Get("Content-Type") != "application/x-ndjson" || a.trailer.Get("Weir-Next") == "" {
			t.Errorf("%s: headers %v, trailers %v", c.query, a.header, a.trailer)
		}
	}
	e := parseEvents(t, n.get(eventsPath+"?segment=u3&limit=1").body)[0]
	want := outEvent{ID: "3", Type: "click", Source: "/app", Time: "2026-11-30T23:59:57.000Z", WeirPartition: int64(u3), WeirArrival: "2026-12-01T00:00:00.000Z", WeirOffset: e.WeirOffset}
	want.Data.User = "u3"
	if e.PartitionKey = ""; e != want || byPartition[u3][e.WeirOffset] != "3" {
		t.Errorf("an event: got %+v; want %+v", e, want)
	}
}

func from(ids []string, i int) []string { return ids[min(i, len(ids)):] }

// TestResume reads a stream in pieces, with events arriving in between: what all pieces hold together is the stream.
func TestResume(t *testing.T) {
	n := newTestNode(t, nil)
	for _, place := range []string{"", "partition=1", "segment=u2"} {
		seen := map[string]int{}
		next := ""
		for round := range 40 {
			if round < 20 {
				for i := range 7 {
					n.post(eventOf(len(place)*10000+round*10+i, fmt.Sprintf("u%d", i)))
				}
			}
			query := fmt.Sprintf("?limit=%d&%s", 1+round%5, place)
			if round >= 20 {
				query = "?limit=1000&" + place
			}
			if next != "" {
				query += "&next=" + url.QueryEscape(next)
			}
			a := n.get(eventsPath + query)
			for _, e := range parseEvents(t, a.body) {
				seen[fmt.Sprint(e.WeirPartition, ".", e.WeirOffset)]++
			}
			next = a.trailer.Get("Weir-Next")
		}
		all := parseEvents(t, n.get(eventsPath+"?limit=100000&"+place).body)
		if len(all) != len(seen) || len(all) == 0 {
			t.Errorf("%q: the pieces hold %d events; want %d", place, len(seen), len(all))
		}
		for _, e := range all {
			if got := seen[fmt.Sprint(e.WeirPartition, ".", e.WeirOffset)]; got != 1 {
				t.Errorf("%q: event %s was read %d times", place, e.ID, got)
			}
		}
	}
}

func TestGetEventsRefused(t *testing.T) {
	n := newTestNode(t, nil)
	for _, c := range []struct{ query, code, field string }{
		{"partition=3", codeBadArgument, "partition"},
		{"partition=-1", codeBadArgument, "partition"},
		{"partition=x", codeBadArgument, "partition"},
		{"partition=1&segment=u1", codeBadArgument, "partition"},
		{"offset=3", codeBadArgument, "offset"},
		{"partition=1&offset=-3", codeBadArgument, "offset"},
		{"partition=1&offset=begin", codeBadArgument, "offset"},
		{"partition=1&offset=3&next=1.3", codeBadArgument, "next"},
		{"partition=1&next=2.3", codeBadArgument, "next"},
		{"next=3.3", codeBadArgument, "next"},
		{"next=1.3,1.4", codeBadArgument, "next"},
		{"next=1.-3", codeBadArgument, "next"},
		{"next=", codeBadArgument, "next"},
		{"limit=0", codeBadArgument, "limit"},
		{"limit=many", codeBadArgument, "limit"},
		{"from=2026", "", ""},
		{"from=today", codeBadArgument, "from"},
		{"from=5&to=4", codeBadArgument, "to"},
		{"follow=perhaps", codeBadArgument, "follow"},
		{"folow=true", codeUnknownParameter, "folow"},
	} {
		a := n.get(eventsPath + "?" + c.query)
		if c.code == "" {
			if a.status != 200 {
				t.Errorf("%s: got %d %s", c.query, a.status, a.body)
			}
			continue
		}
		if e := n.errorOf(a); a.status != 400 || e["code"] != c.code || e["field"] != c.field {
			t.Errorf("%s: got %d %s; want %s of %s", c.query, a.status, a.body, c.code, c.field)
		}
	}
}

// follower reads a reply that stays open.
type follower struct {
	t     *testing.T
	reply *http.Response
	lines *bufio.Scanner
}

func (n *testNode) follow(t *testing.T, ctx context.Context, query string) *follower {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.server.URL+eventsPath+"?follow=true&"+query, nil)
	n.must(err)
	reply, err := n.server.Client().Do(r)
	n.must(err)
	t.Cleanup(func() { reply.Body.Close() })
	if reply.StatusCode != 200 {
		t.Fatalf("following %s: got %d", query, reply.StatusCode)
	}
	return &follower{t, reply, bufio.NewScanner(reply.Body)}
}

func (f *follower) next() outEvent {
	f.t.Helper()
	if !f.lines.Scan() {
		f.t.Fatalf("the reply ended: %v", f.lines.Err())
	}
	return parseEvents(f.t, f.lines.Text()+"\n")[0]
}

func TestFollow(t *testing.T) {
	n := newTestNode(t, nil)
	n.post(eventOf(1, "u1"), eventOf(2, "u2"))
	all := n.follow(t, t.Context(), "")
	ends := n.follow(t, t.Context(), "offset=end")
	one := n.follow(t, t.Context(), "segment=u2")
	limited := n.follow(t, t.Context(), "segment=u2&limit=2")
	got := []string{all.next().ID, all.next().ID}
	if slices.Sort(got); !slices.Equal(got, []string{"1", "2"}) {
		t.Fatalf("what was stored: got %v", got)
	}
	for i := 3; i < 40; i++ {
		n.post(eventOf(i, fmt.Sprintf("u%d", i%3)))
		want := fmt.Sprint(i)
		if got := all.next().ID; got != want {
			t.Fatalf("following all: got %s; want %s", got, want)
		}
		if got := ends.next().ID; got != want {
			t.Fatalf("following from the end: got %s; want %s", got, want)
		}
	}
	for want := 2; want < 40; want += 3 {
		if got := one.next().ID; got != fmt.Sprint(want) {
			t.Fatalf("following a segment: got %s; want %d", got, want)
		}
	}
	limited.next()
	limited.next()
	if limited.lines.Scan() || limited.lines.Err() != nil || limited.reply.Trailer.Get("Weir-Next") == "" {
		t.Fatalf("after its limit a reply goes on or has no trailer: %q, %v", limited.lines.Text(), limited.lines.Err())
	}
	close(n.drain)
	for _, f := range []*follower{all, ends, one} {
		if f.lines.Scan() || f.lines.Err() != nil {
			t.Fatalf("after the drain a reply goes on or breaks: %q, %v", f.lines.Text(), f.lines.Err())
		}
		if f.reply.Trailer.Get("Weir-Next") == "" {
			t.Fatal("a drained reply does not say where to go on")
		}
	}
}

// TestFollowLeaves closes replies from the client's side: their handlers must end, or the server's own Close, in the
// cleanup, would wait for ever.
func TestFollowLeaves(t *testing.T) {
	n := newTestNode(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	for range 5 {
		n.follow(t, ctx, "")
		n.follow(t, ctx, "partition=1&offset=end")
	}
	cancel()
}
