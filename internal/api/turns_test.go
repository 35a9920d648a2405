package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestReadingNeedsATurn reads while all turns are taken: nothing is read before one is given back, and then everything,
// though the frames need several turns.
func TestReadingNeedsATurn(t *testing.T) {
	n := newTestNode(t, nil)
	const events = 2*framesPerTurn + 1
	for i := range events {
		n.post(eventOf(i, "u1")) // a request, so a frame, of its own
	}
	read := func(ctx context.Context, given turns) string {
		t.Helper()
		s, f := parseSelection("segment=u1", n.stream.Log)
		if f != nil {
			t.Fatal(f.message)
		}
		recorder := httptest.NewRecorder()
		h := n.server.Config.Handler.(*Handler)
		out := &output{
			w: &reply{ResponseWriter: recorder, control: http.NewResponseController(recorder)}, selection: s, log: n.stream.Log, turns: given, buffers: &h.buffers, left: s.limit}
		n.must(out.run(ctx))
		return recorder.Body.String()
	}
	given := make(turns, 1)
	if !given.take(t.Context()) {
		t.Fatal("a free turn was refused")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := read(ended, given); got != "" {
		t.Fatalf("without a turn: got %q; want nothing", got)
	}
	given.give()
	if got := parseEvents(t, read(t.Context(), given)); len(got) != events {
		t.Fatalf("with turns: got %d events; want %d", len(got), events)
	}
	if len(given) != 0 {
		t.Errorf("after the reply %d turns are taken; want none", len(given))
	}
}

// TestIdleFollowersHoldNoTurn: a reply that waits for events must not keep others from reading.
func TestIdleFollowersHoldNoTurn(t *testing.T) {
	n := newTestNode(t, nil)
	n.post(eventOf(1, "u1"))
	for range 3 {
		n.follow(t, t.Context(), "").next()
	}
	// The event was received, so it was flushed, which happens after the turn.
	if taken := len(n.server.Config.Handler.(*Handler).turns); taken != 0 {
		t.Errorf("got %d turns taken by idle followers; want none", taken)
	}
}
