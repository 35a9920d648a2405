package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/client"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/traffic"
	"github.com/weirstream/weir/server"
)

//go:embed demo.yaml
var demoConfig []byte

const (
	demoStream = "impressions"
	// demoTick is how often the demo sends what has happened since.
	demoTick = 100 * time.Millisecond
	// demoHistory is how far back the demo's past reaches: the longest window.
	demoHistory = 7 * 24 * time.Hour
	// demoRateMax bounds --rate: beyond it, the generator would need batches larger than a node's default limit.
	demoRateMax = 500_000
	// demoBatch is the number of events of one request of the history.
	demoBatch = 1000
)

func newDemo() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a node with generated ad traffic, and print what to try",
		Long: "Runs a node on a temporary folder, which is removed at the end unless --data names one, loads a week of generated ad\n" +
			"traffic and goes on in real time: users in sessions, a few of them busy, some events late and some sent twice.",
		Args: wrongUse(cobra.NoArgs),
		RunE: runDemo,
	}
	addNodeFlags(cmd)
	_ = cmd.Flags().Set("log-level", "warn")
	cmd.Flags().Lookup("log-level").DefValue = "warn"
	cmd.Flags().Float64("rate", 500, "events a second")
	cmd.Flags().Int64("history", 300_000, "events of the past week, loaded first")
	return cmd
}

func runDemo(cmd *cobra.Command, _ []string) error {
	rate, _ := cmd.Flags().GetFloat64("rate")
	history, _ := cmd.Flags().GetInt64("history")
	if rate <= 0 || rate > demoRateMax || history < 0 {
		return &usageError{fmt.Errorf("cannot generate %v events/s after %d: want a rate in (0, %d] and a history of 0 or more", rate, history, demoRateMax)}
	}
	logger, err := loggerOf(cmd)
	if err != nil {
		return err
	}
	cfg, remove, err := demoNode(cmd)
	if err != nil {
		return err
	}
	defer remove()
	if err := boundConnections(cfg, logger); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	ended := make(chan struct{})
	shareCores()
	err = server.Run(ctx, server.Options{Config: cfg, Version: version(), Logger: logger, Fatal: leave(logger), Ready: func(a server.Addresses) {
		demo := &demo{out: cmd.OutOrStdout(), rate: rate, history: history, addresses: a}
		go func() {
			defer close(ended)
			if err := demo.run(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("the demo's traffic ended: %w", err))
			}
		}()
	}})
	if err != nil {
		return err
	}
	<-ended
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// demoNode returns the demo's configuration, on a folder of its own unless one was named, and what removes that folder.
func demoNode(cmd *cobra.Command) (cfg *config.Config, remove func(), err error) {
	remove = func() {}
	if !cmd.Flags().Changed("data") {
		folder, err := os.MkdirTemp("", "weir-demo-")
		if err != nil {
			return nil, nil, fmt.Errorf("cannot make a folder for the demo: %w", err)
		}
		remove = func() { _ = os.RemoveAll(folder) }
		if err := cmd.Flags().Set("data", filepath.Join(folder, "data")); err != nil {
			return nil, nil, err
		}
	}
	cfg, _, err = config.Parse("demo.yaml", demoConfig, os.LookupEnv, nodeFlagsOf(cmd)...)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return cfg, remove, nil
}

// demo is the traffic of a demo and what it prints.
type demo struct {
	out       io.Writer
	rate      float64
	history   int64
	addresses server.Addresses

	client *client.Client
	events *traffic.Generator
	body   []byte
}

func (d *demo) run(ctx context.Context) (err error) {
	if d.client, err = client.New("http://" + d.addresses.HTTP); err != nil {
		return err
	}
	start := time.Now()
	// Ids carry the start, so that a demo on a folder of an earlier one adds to it.
	d.events = traffic.New(traffic.Options{Seed: uint64(start.UnixNano()), Rate: d.rate, IDPrefix: fmt.Sprintf("d%d", start.Unix())})
	fmt.Fprintf(d.out, "weir %s demo: loading a week of ad traffic, %d events ...\n", version(), d.history)
	if err := d.past(ctx, start); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "done in %.1f s; going on live with %.0f events a second\n", time.Since(start).Seconds(), d.rate)
	if err := d.explain(ctx); err != nil {
		return err
	}
	return d.live(ctx)
}

// past sends the events of the week before now.
func (d *demo) past(ctx context.Context, now time.Time) error {
	from, to := now.Add(-demoHistory).UnixMilli(), now.UnixMilli()
	for i := int64(0); i < d.history; {
		d.body = d.body[:0]
		for n := 0; n < demoBatch && i < d.history; n++ {
			d.body = d.events.AppendNDJSON(d.body, traffic.HistoryTime(from, to, i, d.history))
			i++
		}
		if err := d.send(ctx); err != nil {
			return err
		}
	}
	return nil
}

// live sends what happened since the last tick until ctx ends.
func (d *demo) live(ctx context.Context) error {
	ticker := time.NewTicker(demoTick)
	defer ticker.Stop()
	start := time.Now()
	for sent := 0.0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		due := time.Since(start).Seconds() * d.rate
		d.body = d.body[:0]
		now := time.Now().UnixMilli()
		for n := 0.0; sent < due && n <= d.rate; n++ { // after a pause (a laptop that slept) at most a second is made up
			d.body = d.events.AppendNDJSON(d.body, now)
			sent++
		}
		if sent = max(sent, due-d.rate); len(d.body) == 0 {
			continue
		}
		if err := d.send(ctx); err != nil {
			return err
		}
	}
}

func (d *demo) send(ctx context.Context) error {
	result, err := d.client.SendNDJSON(ctx, demoStream, "", d.body)
	if err == nil && len(result.Rejected) > 0 {
		err = fmt.Errorf("the node rejected a generated event: %s", result.Rejected[0].Error)
	}
	return err
}

// explain sends events up to an impression and prints what to try with its keys.
func (d *demo) explain(ctx context.Context) error {
	d.body = d.body[:0]
	event := d.events.Next(time.Now().UnixMilli())
	for ; event.Kind != traffic.Impression; event = d.events.Next(time.Now().UnixMilli()) {
		d.body = append(d.events.AppendJSON(d.body, event), '\n')
	}
	d.body = append(d.events.AppendJSON(d.body, event), '\n')
	if err := d.send(ctx); err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(d.addresses.RESP)
	server := ""
	if base := "http://" + d.addresses.HTTP; base != defaultServer {
		server = " --server " + base
	}
	weir := os.Args[0] // as it was called: there need not be a weir on the PATH
	_, err := fmt.Fprintf(d.out, `
Look:      http://%[1]s
Try:       %[6]s count seen u%[2]d a%[3]d%[5]s
           %[6]s count ad a%[3]d%[5]s
           %[6]s tail impressions --segment u%[2]d%[5]s
           curl 'http://%[1]s/v1/counters/seen?key=u%[2]d&key=a%[3]d'
           redis-cli -p %[4]s HGETALL seen:u%[2]d:a%[3]d
Stop:      Ctrl-C
`, d.addresses.HTTP, event.User, event.Ad, port, server, weir)
	return err
}
