package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirstream/weir/internal/traffic"
)

const (
	benchZipf = 1.1
	// idsPerClient keeps the ids of clients apart.
	idsPerClient = 10_000_000_000
	// busyWait is how long a client that was refused waits: the least that the node asks for.
	busyWait = 50 * time.Millisecond
)

// load is a number of clients that send events as fast as they are acknowledged.
type load struct {
	proto   string // http or resp
	clients int
	batch   int // events of a request or a pipeline
	zipf    float64
	seed    uint64

	acked atomic.Int64 // events
	busy  atomic.Int64 // refused requests, which are sent again
}

// run sends until ctx ends, or until a client fails.
func (l *load) run(ctx context.Context, node *process) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var clients sync.WaitGroup
	for i := range l.clients {
		events := traffic.NewBench(traffic.BenchOptions{Seed: l.seed + uint64(i), Zipf: l.zipf, Stream: "impressions",
			FirstID: uint64(i) * idsPerClient})
		clients.Go(func() {
			var err error
			if l.proto == "resp" {
				err = l.pipeline(ctx, node, events)
			} else {
				err = l.post(ctx, node, events)
			}
			if err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	clients.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func (l *load) post(ctx context.Context, node *process, events *traffic.Bench) error {
	sender := newNDJSONSender(node.http, "impressions")
	var body []byte
	for ctx.Err() == nil {
		body = body[:0]
		now := time.Now().UnixMilli()
		for range l.batch {
			body = events.AppendNDJSON(body, now)
		}
		err := sender.send(ctx, body, l.batch)
		for errors.Is(err, errBusy) {
			l.busy.Add(1)
			time.Sleep(busyWait)
			err = sender.send(ctx, body, l.batch)
		}
		if err != nil {
			return err
		}
		l.acked.Add(int64(l.batch))
	}
	return nil
}

func (l *load) pipeline(ctx context.Context, node *process, events *traffic.Bench) error {
	conn, err := dialRESP(node.resp)
	if err != nil {
		return err
	}
	defer conn.close()
	var commands []byte
	for ctx.Err() == nil {
		commands = commands[:0]
		now := time.Now().UnixMilli()
		for range l.batch {
			commands = events.AppendXADD(commands, now)
		}
		if _, err := conn.conn.Write(commands); err != nil {
			return err
		}
		for range l.batch {
			if _, err := conn.reply(); err != nil {
				return err
			}
		}
		l.acked.Add(int64(l.batch))
	}
	return nil
}

// runIngest measures how many events a second a node takes, syncs and counts.
func runIngest(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("ingest", flag.ContinueOnError)
	proto := flags.String("proto", "http", "http (NDJSON) or resp (pipelined XADD)")
	users := flags.String("users", "zipf", "zipf (1.1) or uniform, of 10,000,000")
	clients := flags.Int("clients", 8, "clients that send at the same time")
	batch := flags.Int("batch", 500, "events of a request or a pipeline")
	warm := flags.Duration("warm", 5*time.Second, "time before the measurement")
	window := flags.Duration("time", 20*time.Second, "time of one measurement")
	rounds := flags.Int("rounds", 3, "measurements of the same node, one after the other")
	memory := flags.String("memory", "2GiB", "the node's memory setting")
	if err := flags.Parse(args); err != nil {
		return err
	}
	l := &load{proto: *proto, clients: *clients, batch: *batch, seed: 1}
	if *users == "zipf" {
		l.zipf = benchZipf
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
	printMachine("ack disk: every reply after fsync; group commit")
	fmt.Printf("events:     about 200 B, %s users of 10,000,000, 1,000 ads; %d clients, %d events a %s\n",
		*users, *clients, *batch, map[string]string{"http": "request", "resp": "pipeline"}[*proto])
	fmt.Printf("node:       memory %s; counter: user x ad over 1m, 1h, 1d, 7d\n", *memory)
	return measureIngest(ctx, node, l, *warm, *window, *rounds)
}

func measureIngest(ctx context.Context, node *process, l *load, warm, window time.Duration, rounds int) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- l.run(ctx, node) }()
	defer func() { cancel() }()
	if err := pause(ctx, warm, done); err != nil {
		return err
	}
	fmt.Printf("%-6s %12s %16s %16s %8s\n", "round", "events/s", "node us/event", "client us/event", "refused")
	var rates []float64
	for round := range rounds {
		start, before, busy, own := time.Now(), l.acked.Load(), l.busy.Load(), ownCPUSeconds()
		cpu, err := node.cpuSeconds()
		if err != nil {
			return err
		}
		if err := pause(ctx, window, done); err != nil {
			return err
		}
		events := float64(l.acked.Load() - before)
		after, err := node.cpuSeconds()
		if err != nil {
			return err
		}
		rate := events / time.Since(start).Seconds()
		rates = append(rates, rate)
		fmt.Printf("%-6d %12.0f %16.2f %16.2f %8d\n", round+1, rate, (after-cpu)/events*1e6, (ownCPUSeconds()-own)/events*1e6, l.busy.Load()-busy)
	}
	cancel()
	if err := <-done; err != nil {
		return err
	}
	low, mid, high := spread(rates)
	_, highest, err := node.rssBytes()
	fmt.Printf("events/s:   median %.0f, min %.0f, max %.0f; resident memory at most %d MiB\n", mid, low, high, highest>>20)
	return err
}

// pause waits for d, or returns why the load ended before.
func pause(ctx context.Context, d time.Duration, ended <-chan error) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-ended:
		return errors.Join(errors.New("the load ended early"), err)
	case <-ctx.Done():
		return ctx.Err()
	}
}
