package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// askApart asks from another process, so that what this one does for the load does not delay the questions: it returns how
// long each reply took from when it was due.
func askApart(ctx context.Context, addr string, rate float64, connections int, d time.Duration) (*hdrhistogram.Histogram, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "ask", "-addr", addr, "-lookups", strconv.FormatFloat(rate, 'f', -1, 64),
		"-c", strconv.Itoa(connections), "-time", d.String())
	cmd.Stderr = os.Stderr
	// Every connection has a goroutine that may want to run at the same time as the others.
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(2*connections))
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot ask from another process: %w", err)
	}
	var snapshot hdrhistogram.Snapshot
	if err := json.Unmarshal(out, &snapshot); err != nil {
		return nil, fmt.Errorf("cannot read what the other process measured: %w", err)
	}
	return hdrhistogram.Import(&snapshot), nil
}

// runAsk is that other process.
func runAsk(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("ask", flag.ContinueOnError)
	addr := flags.String("addr", "", "where the node speaks RESP")
	rate := flags.Float64("lookups", 2_000, "look-ups/s over all connections")
	connections := flags.Int("c", 4, "connections")
	window := flags.Duration("time", 60*time.Second, "time to ask for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	debug.SetGCPercent(-1) // see sleepThread
	h, err := askOnSchedule(ctx, *addr, *rate, *connections, *window)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(h.Export())
}

// askOnSchedule looks keys up at the given rate for d and returns how long each took from when it was due.
func askOnSchedule(ctx context.Context, addr string, rate float64, connections int, d time.Duration) (*hdrhistogram.Histogram, error) {
	var mu sync.Mutex
	var errs []error
	all := newLatency()
	var askers sync.WaitGroup
	interval := time.Duration(float64(time.Second) * float64(connections) / rate)
	start := time.Now()
	for i := range connections {
		askers.Go(func() {
			h, err := askOne(ctx, addr, uint64(i), start.Add(interval*time.Duration(i)/time.Duration(connections)), interval, d)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			if h != nil {
				all.Merge(h)
			}
		})
	}
	askers.Wait()
	return all, errors.Join(errs...)
}

// askOne is one connection's questions.
func askOne(ctx context.Context, addr string, seed uint64, first time.Time, interval, d time.Duration) (*hdrhistogram.Histogram, error) {
	asker, err := newAsker(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer asker.close()
	h := newLatency()
	random := rand.New(rand.NewPCG(seed, 1))
	users := rand.NewZipf(random, benchZipf, 1, 10_000_000-1)
	var command []byte
	for due := first; due.Sub(first) < d && ctx.Err() == nil; due = due.Add(interval) {
		key := fmt.Sprintf("seen:u%08d:a%04d", users.Uint64(), random.IntN(1000))
		command = appendCommand(command[:0], "HGETALL", key)
		sleepUntil(due)
		if err := asker.ask(command, 2*adWindows); err != nil {
			return h, err
		}
		record(h, due)
	}
	return h, ctx.Err()
}
