package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A drain waits for the request that had begun, answers those that come meanwhile, and does not wait for them.
func TestDrainWaitsForWhatHadBegun(t *testing.T) {
	var f inFlight
	began, finish := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(f.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(began)
			<-finish
		}
	})))
	defer server.Close()
	get := func(path string) {
		resp, err := http.Get(server.URL + path)
		if err != nil {
			t.Error(err)
			return
		}
		_ = resp.Body.Close()
	}
	answered, drained := make(chan struct{}), make(chan struct{})
	go func() {
		get("/slow")
		close(answered)
	}()
	<-began
	go func() {
		f.drain(context.Background())
		close(drained)
	}()
	for f.enter() { // until the drain has begun
		f.leave()
	}
	get("/quick")
	select {
	case <-drained:
		t.Error("drained while a request was in flight")
	default:
	}
	close(finish)
	<-answered
	<-drained
}

func TestDrainEndsWithItsContext(t *testing.T) {
	var f inFlight
	f.enter()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.drain(ctx)
	f.leave()
}

func TestNothingInFlight(t *testing.T) {
	var f inFlight
	f.drain(context.Background())
}
