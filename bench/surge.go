package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"
)

// surgeClients send the load, in each phase others.
const surgeClients = 4

// runSurge watches the node's resident memory while ten times the usual load arrives, and after.
func runSurge(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("surge", flag.ContinueOnError)
	usual := flags.Float64("usual", 20_000, "events/s before and after")
	factor := flags.Float64("factor", 10, "the surge is this many times as much")
	calm := flags.Duration("calm", 20*time.Second, "time before and after")
	surge := flags.Duration("time", 60*time.Second, "time of the surge")
	memory := flags.Int64("memory", 1024, "the node's memory setting in MiB")
	if err := flags.Parse(args); err != nil {
		return err
	}
	binary, remove, err := buildWeir(ctx)
	if err != nil {
		return err
	}
	defer remove()
	node, err := startWeir(ctx, binary, fmt.Sprintf(adSettings, fmt.Sprintf("%dMiB", *memory)))
	if err != nil {
		return err
	}
	defer node.stop()
	printMachine("ack disk")
	fmt.Printf("node:       memory %d MiB; counter: user x ad over 1m, 1h, 1d, 7d; Zipf users\n", *memory)
	fmt.Printf("%-8s %12s %12s %12s %12s %12s %14s\n", "phase", "wanted/s", "events/s", "ack p50 ms", "ack p99 ms", "RSS MiB", "RSS max MiB")
	highest := int64(0)
	for i, phase := range []struct {
		name string
		rate float64
		time time.Duration
	}{{"before", *usual, *calm}, {"surge", *usual * *factor, *surge}, {"after", *usual, *calm}} {
		paced := &pacedLoad{rate: phase.rate, batch: 500, clients: surgeClients, first: i * surgeClients}
		phaseCtx, cancel := context.WithTimeout(ctx, phase.time)
		start := time.Now()
		err := paced.run(phaseCtx, node)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) { // the end of the phase
			return errors.Join(err, ctx.Err())
		}
		took := time.Since(start)
		acks := paced.reset()
		now, most, err := node.rssBytes()
		if err != nil {
			return err
		}
		highest = max(highest, most)
		fmt.Printf("%-8s %12.0f %12.0f %12.2f %12.2f %12d %14d\n", phase.name, phase.rate, float64(paced.events())/took.Seconds(),
			float64(acks.ValueAtQuantile(50))/1000, float64(acks.ValueAtQuantile(99))/1000, now>>20, most>>20)
	}
	fmt.Printf("resident memory at most %d MiB of the %d MiB that memory allows: ratio %.2f\n", highest>>20, *memory,
		float64(highest)/float64(*memory<<20))
	return nil
}
