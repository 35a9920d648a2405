// Command bench measures Weir: each workload starts its own node in a process of its own, drives it over the network
// stack of this machine, and prints figures with everything that is needed to judge them.
//
//	go run ./bench ingest -proto http -users zipf
//
// Machines are shared and noisy: comparisons are ratios of sides that alternate in one run, with the spread beside them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"syscall"
)

// workload is one named measurement. Its flags are parsed before it runs.
type workload struct {
	about string
	run   func(ctx context.Context, args []string) error
}

func workloads() map[string]workload {
	return map[string]workload{
		"ingest": {"events/s that a node takes, counts and fsyncs, over HTTP NDJSON or RESP XADD", runIngest},
		"lookup": {"four-window look-ups by redis-benchmark, alternating with Redis's HGETALL of four fields", runLookup},
		"loaded": {"latency of look-ups, open loop, while events arrive", runLoaded},
		"ask":    {"the look-ups of loaded alone, at a node that runs: prints a histogram as JSON", runAsk},
		"disk":   {"bytes on disk per event for sparse counters", runDisk},
		"surge":  {"resident memory while ten times the usual load arrives", runSurge},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 {
		usage()
		os.Exit(2)
	}
	chosen, ok := workloads()[os.Args[1]]
	if !ok {
		usage()
		os.Exit(2)
	}
	err := chosen.run(ctx, os.Args[2:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: go run ./bench WORKLOAD [flags]")
	all := workloads()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(os.Stderr, "  %-8s %s\n", name, all[name].about)
	}
}
