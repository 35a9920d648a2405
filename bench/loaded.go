package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weirstream/weir/internal/traffic"
)

// Bounds of the latency histograms, in microseconds, and their precision in digits.
const (
	latencyMicrosMax = 60_000_000
	latencyDigits    = 3
)

// runLoaded asks for counts on a schedule while events arrive on a schedule. Latency counts from the instant at which a
// look-up was due, so that a stall shows in every look-up that it delayed.
func runLoaded(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("loaded", flag.ContinueOnError)
	rate := flags.Float64("events", 100_000, "events/s")
	lookups := flags.Float64("lookups", 2_000, "look-ups/s over all connections")
	connections := flags.Int("c", 4, "connections that look up")
	warm := flags.Duration("warm", 10*time.Second, "time before the measurement")
	window := flags.Duration("time", 60*time.Second, "time of the measurement")
	memory := flags.String("memory", "2GiB", "the node's memory setting")
	if err := flags.Parse(args); err != nil {
		return err
	}
	binary, remove, err := buildWeir(ctx)
	if err != nil {
		return err
	}
	defer remove()
	node, err := startWeir(ctx, binary, fmt.Sprintf(adSettings, *memory))
	if err != nil {
		return err
	}
	defer node.stop()
	printMachine("ack disk")
	fmt.Printf("load:       %.0f events/s (HTTP, batches of 500, Zipf users); %.0f look-ups/s of four windows (HGETALL, unpipelined, Zipf users) from a process of its own over %d connections; open loop\n",
		*rate, *lookups, *connections)
	loadCtx, stopLoad := context.WithCancel(ctx)
	defer stopLoad()
	paced := &pacedLoad{rate: *rate, batch: 500, clients: 2}
	done := make(chan error, 1)
	go func() { done <- paced.run(loadCtx, node) }()
	if err := pause(ctx, *warm, done); err != nil {
		return err
	}
	paced.reset()
	before := paced.events()
	start := time.Now()
	latency, err := askApart(ctx, node.resp, *lookups, *connections, *window)
	if err != nil {
		return err
	}
	took := time.Since(start)
	acks := paced.reset()
	sent := paced.events() - before
	stopLoad()
	if err := <-done; err != nil {
		return err
	}
	fmt.Printf("%-10s %12s %10s %10s %10s %10s\n", "", "per second", "p50 ms", "p99 ms", "p99.9 ms", "max ms")
	printLatency("look-ups", float64(latency.TotalCount())/took.Seconds(), latency)
	printLatency("acks", float64(sent)/took.Seconds(), acks)
	return nil
}

func printLatency(name string, rate float64, h *hdrhistogram.Histogram) {
	ms := func(micros int64) float64 { return float64(micros) / 1000 }
	fmt.Printf("%-10s %12.0f %10.3f %10.3f %10.3f %10.3f\n", name, rate, ms(h.ValueAtQuantile(50)), ms(h.ValueAtQuantile(99)),
		ms(h.ValueAtQuantile(99.9)), ms(h.Max()))
}

func newLatency() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, latencyMicrosMax, latencyDigits)
}

// record notes the time since due.
func record(h *hdrhistogram.Histogram, due time.Time) {
	_ = h.RecordValue(min(max(time.Since(due).Microseconds(), 1), latencyMicrosMax))
}

// pacedLoad sends batches on a schedule and notes how late each was acknowledged.
type pacedLoad struct {
	rate    float64 // events/s
	batch   int
	clients int
	first   int // number of the first client; loads of one node need clients of their own, or they send the same ids

	mu struct {
		sync.Mutex
		latency *hdrhistogram.Histogram
		events  int64
	}
}

// reset returns what was measured so far and starts anew.
func (l *pacedLoad) reset() *hdrhistogram.Histogram {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.mu.latency
	l.mu.latency = newLatency()
	return h
}

func (l *pacedLoad) events() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.events
}

func (l *pacedLoad) run(ctx context.Context, node *process) error {
	l.reset()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var clients sync.WaitGroup
	for i := range l.clients {
		clients.Go(func() {
			if err := l.send(ctx, node, l.first+i); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	clients.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (l *pacedLoad) send(ctx context.Context, node *process, client int) error {
	events := traffic.NewBench(traffic.BenchOptions{Seed: uint64(client), Zipf: benchZipf, FirstID: uint64(client) * idsPerClient})
	sender := newNDJSONSender(node.http, "impressions")
	interval := time.Duration(float64(time.Second) * float64(l.batch*l.clients) / l.rate)
	var body []byte
	for due := time.Now().Add(interval * time.Duration(client-l.first) / time.Duration(l.clients)); ctx.Err() == nil; due = due.Add(interval) {
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		body = body[:0]
		now := time.Now().UnixMilli()
		for range l.batch {
			body = events.AppendNDJSON(body, now)
		}
		err := sender.send(ctx, body, l.batch)
		for errors.Is(err, errBusy) {
			time.Sleep(busyWait)
			err = sender.send(ctx, body, l.batch)
		}
		if err != nil {
			return err
		}
		l.mu.Lock()
		record(l.mu.latency, due)
		l.mu.events += int64(l.batch)
		l.mu.Unlock()
	}
	return nil
}
