package main

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// adWindows is the number of windows of the counter in adSettings.
const adWindows = 4

// adSettings is the node of most workloads: user x ad over four windows.
const adSettings = `memory: %s
streams:
  impressions: {partitions: 4, segment: data.user}
counters:
  - name: seen
    stream: impressions
    key: [data.user, data.ad]
    windows: [1m, 1h, 1d, 7d]
`

// runLookup lets redis-benchmark ask Weir and Redis in turn for four numbers of one key.
func runLookup(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("lookup", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "pairs of runs")
	requests := flags.Int("n", 400_000, "requests a run")
	keys := flags.Int("keys", 1, "keys that are asked for; more than one are drawn at random")
	connections := flags.Int("c", 50, "connections")
	memory := flags.String("memory", "1GiB", "the node's memory setting")
	if err := flags.Parse(args); err != nil {
		return err
	}
	binary, remove, err := buildWeir(ctx)
	if err != nil {
		return err
	}
	defer remove()
	weir, err := startWeir(ctx, binary, fmt.Sprintf(adSettings, *memory))
	if err != nil {
		return err
	}
	defer weir.stop()
	redis, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer redis.stop()
	if err := seedLookup(ctx, weir, redis, *keys); err != nil {
		return err
	}
	printMachine("ack disk; the node is idle but for the look-ups")
	fmt.Printf("keys:       %d, each with 3 events; %d connections, %d requests a run, %d pairs of runs\n", *keys, *connections, *requests, *rounds)
	fmt.Printf("%-10s %14s %14s %8s %8s %8s   (medians of requests/s; ratio of pairs: min, median, max)\n",
		"pipeline", "weir", "redis", "min", "ratio", "max")
	for _, pipeline := range []int{1, 100} {
		n := *requests
		if pipeline > 1 {
			n *= 10 // a run of similar length
		}
		var ours, theirs, ratios []float64
		for range *rounds {
			a, err := redisBenchmark(ctx, weir.resp, "seen:u%s:a1", *keys, n, *connections, pipeline)
			if err != nil {
				return err
			}
			b, err := redisBenchmark(ctx, redis.resp, "u%s", *keys, n, *connections, pipeline)
			if err != nil {
				return err
			}
			ours, theirs, ratios = append(ours, a), append(theirs, b), append(ratios, a/b)
		}
		_, a, _ := spread(ours)
		_, b, _ := spread(theirs)
		low, mid, high := spread(ratios)
		fmt.Printf("%-10d %14.0f %14.0f %8.2f %8.2f %8.2f\n", pipeline, a, b, low, mid, high)
	}
	return nil
}

// randPart is what redis-benchmark replaces by a number of this many digits.
const (
	randPart   = "__rand_int__"
	randDigits = 12
)

func keyPart(i, keys int) string {
	if keys == 1 {
		return "1"
	}
	return fmt.Sprintf("%0*d", randDigits, i)
}

// seedLookup gives every key three events in Weir and a hash of four fields in Redis.
func seedLookup(ctx context.Context, weir, redis *process, keys int) error {
	sender := newNDJSONSender(weir.http, "impressions")
	now := time.Now().UnixMilli()
	var body []byte
	events := 0
	for i := range keys {
		for e := range 3 {
			body = fmt.Appendf(body, `{"id":"s-%d-%d","type":"impression","time":%d,"data":{"user":"u%s","ad":"a1"}}`+"\n",
				i, e, now-int64(e)*1000, keyPart(i, keys))
			events++
		}
		if len(body) > 1<<20 || i == keys-1 {
			if err := sender.send(ctx, body, events); err != nil {
				return err
			}
			body, events = body[:0], 0
		}
	}
	conn, err := dialRESP(redis.resp)
	if err != nil {
		return err
	}
	defer conn.close()
	for i := range keys {
		if _, err := conn.do("HSET", "u"+keyPart(i, keys), "1m", "3", "1h", "3", "1d", "3", "7d", "3"); err != nil {
			return err
		}
	}
	return nil
}

// redisBenchmark runs HGETALL on keys of the given form and returns requests/s.
func redisBenchmark(ctx context.Context, addr, form string, keys, n, connections, pipeline int) (float64, error) {
	host, port, _ := strings.Cut(addr, ":")
	args := []string{"-h", host, "-p", port, "-n", strconv.Itoa(n), "-c", strconv.Itoa(connections), "-P", strconv.Itoa(pipeline), "--csv"}
	part := "1"
	if keys > 1 {
		args = append(args, "-r", strconv.Itoa(keys))
		part = randPart
	}
	args = append(args, "HGETALL", fmt.Sprintf(form, part))
	out, err := exec.CommandContext(ctx, "redis-benchmark", args...).Output()
	if err != nil {
		return 0, fmt.Errorf("cannot run redis-benchmark: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fields := strings.Split(lines[len(lines)-1], `","`)
	if len(fields) < 2 {
		return 0, fmt.Errorf("cannot read what redis-benchmark printed: %s", out)
	}
	return strconv.ParseFloat(strings.Trim(fields[1], `"`), 64)
}
