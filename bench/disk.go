package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// runDisk fills sparse counters and measures the counters' folder after the node has ended in order.
func runDisk(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("disk", flag.ContinueOnError)
	keys := flags.Int("keys", 1_000_000, "keys")
	perKey := flags.Int("events", 3, "events a key, spread over seven days")
	if err := flags.Parse(args); err != nil {
		return err
	}
	binary, remove, err := buildWeir(ctx)
	if err != nil {
		return err
	}
	defer remove()
	node, err := startWeir(ctx, binary, fmt.Sprintf(adSettings, "1GiB"))
	if err != nil {
		return err
	}
	err = sendSparse(ctx, node, *keys, *perKey)
	if err == nil {
		err = waitCompacted(ctx, node)
	}
	defer os.RemoveAll(node.dir)
	if err = errors.Join(err, node.end()); err != nil {
		return err
	}
	state, log := folderBytes(filepath.Join(node.dir, "data", "counters")), folderBytes(filepath.Join(node.dir, "data", "streams"))
	events := float64(*keys * *perKey)
	printMachine("ack disk; measured after an orderly end")
	fmt.Printf("keys:       %d of an 8-byte user and a 4-byte ad, %d events each over 7 d, in random order\n", *keys, *perKey)
	fmt.Printf("counters:   %d bytes, %.2f bytes an event, all files of the folder\n", state, float64(state)/events)
	fmt.Printf("event log:  %d bytes, %.2f bytes an event\n", log, float64(log)/events)
	return nil
}

// sendSparse sends every key's events, the keys in another random order each time round.
func sendSparse(ctx context.Context, node *process, keys, perKey int) error {
	const batch = 2000
	random := rand.New(rand.NewPCG(1, 2))
	users := make([]uint32, keys)
	for i := range users {
		users[i] = random.Uint32()
	}
	sender := newNDJSONSender(node.http, "impressions")
	end := time.Now().UnixMilli()
	var body []byte
	events := 0
	for round := range perKey {
		for n, i := range random.Perm(keys) {
			var user [4]byte
			binary.BigEndian.PutUint32(user[:], users[i])
			at := end - random.Int64N(7*24*3600*1000)
			body = fmt.Appendf(body, `{"id":"%d-%d","type":"impression","time":%d,"data":{"user":"%s","ad":"a%03d"}}`+"\n",
				i, round, at, hex.EncodeToString(user[:]), i%1000)
			if events++; events == batch || n == keys-1 {
				if err := sender.send(ctx, body, events); err != nil {
					return err
				}
				body, events = body[:0], 0
			}
		}
	}
	return nil
}

// settleTime is how long the counters' folder must not change, but for settledShare, to be called settled, and settleWait
// how long that may take.
const (
	settledShare = 0.001
	settleTime   = 65 * time.Second // longer than the node waits before it writes a quiet buffer out, and again before it merges
	settleWait   = 5 * time.Minute
)

// waitCompacted waits until the counters' files have settled.
func waitCompacted(ctx context.Context, node *process) error {
	folder := filepath.Join(node.dir, "data", "counters")
	last, since := int64(-1), time.Now()
	for start := time.Now(); time.Since(start) < settleWait; {
		if bytes := folderBytes(folder); math.Abs(float64(bytes-last)) > settledShare*float64(bytes) {
			last, since = bytes, time.Now()
		}
		if time.Since(since) > settleTime {
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("the counters' files did not settle within %v", settleWait)
}

func folderBytes(folder string) int64 {
	var total int64
	_ = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, "LOCK") {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total
}
