//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	diskBytes    = 768 << 20 // the file system that is filled; the node keeps some hundred MiB of it free
	diskBatch    = 200       // events in a request
	diskLeftover = 1 << 20   // what the filler leaves when it takes "everything"
	diskWait     = time.Minute
)

const diskSettings = `memory: 256MiB
streams:
  events: {partitions: 2, segment: data.user, ring: {bytes: 16MiB}}
counters:
  - {name: pair, stream: events, key: [data.user, data.ad], windows: [1m, 1h, 1d]}
`

// TestDiskFull fills the disk under a node. It must refuse events, lose none that it acknowledged, go on answering, and
// take events again when there is room; also when it was killed in between.
func TestDiskFull(t *testing.T) {
	mount := mountSmall(t)
	n := prepare(t, filepath.Join(mount, "data"), diskSettings)
	n.start()
	d := &diskful{t: t, node: n, filler: filepath.Join(mount, "filler"), mount: mount}
	d.send(5)

	t.Log("the reserve is used up: events are refused")
	d.fill()
	d.untilRefused()
	d.check("while full")

	t.Log("room again: events are taken without a restart")
	d.free()
	d.untilTaken()
	d.check("after there was room again")

	t.Log("killed while full")
	d.fill()
	d.untilRefused()
	n.kill()
	d.startWhileFull()
	d.free()
	if !n.running() {
		n.start()
	}
	n.waitReady()
	d.untilTaken()
	d.check("after a kill while full")
	n.crash()
	d.check("after another kill")
}

// diskful drives a node whose disk is filled.
type diskful struct {
	t      *testing.T
	node   *node
	mount  string
	filler string
	sent   int      // batches made
	acked  []string // ids
}

// batch posts a batch of new events; true: it was acknowledged.
func (d *diskful) batch() bool {
	d.t.Helper()
	var lines, ids []string
	for i := range diskBatch {
		id := fmt.Sprintf("b%di%d", d.sent, i)
		ids = append(ids, id)
		lines = append(lines, sample{id, fmt.Sprintf("u%d", i%20), "a1", killBase + int64(d.sent)}.line())
	}
	d.sent++
	status, body, err := d.node.try(http.MethodPost, "/v1/streams/events/events", ndjson, []byte(strings.Join(lines, "\n")))
	if err != nil {
		d.t.Fatalf("the node is gone: %v", err)
	}
	switch status {
	case http.StatusOK:
		d.acked = append(d.acked, ids...)
		return true
	case http.StatusTooManyRequests:
		if code := decode[struct{ Error refusal }](d.t, body).Error.Code; code != "disk_full" && code != "overloaded" {
			d.t.Errorf("429 with code %q", code)
		}
		return false
	}
	d.t.Fatalf("status %d: %s; want 200 or 429", status, body)
	return false
}

func (d *diskful) send(batches int) {
	d.t.Helper()
	for range batches {
		if !d.batch() {
			d.t.Fatal("refused on an empty disk")
		}
	}
}

func (d *diskful) untilRefused() {
	d.t.Helper()
	eventually(d.t, diskWait, "events are refused on a full disk", func() bool { return !d.batch() })
}

func (d *diskful) untilTaken() {
	d.t.Helper()
	eventually(d.t, diskWait, "events are taken again", d.batch)
}

// fill takes nearly all that is free.
func (d *diskful) fill() {
	d.t.Helper()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(d.mount, &stat); err != nil {
		d.t.Fatal(err)
	}
	f, err := os.Create(d.filler)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, int64(stat.Bavail)*stat.Bsize-diskLeftover); err != nil {
		d.t.Fatalf("cannot fill the disk: %v", err)
	}
}

func (d *diskful) free() {
	d.t.Helper()
	if err := os.Remove(d.filler); err != nil {
		d.t.Fatal(err)
	}
}

// startWhileFull runs the node on the full disk. It may serve what it has, or end and say why; it must do no harm.
func (d *diskful) startWhileFull() {
	d.t.Helper()
	n := d.node
	n.launch()
	eventually(d.t, diskWait, "the node serves or ends on a full disk", func() bool {
		if !n.running() {
			return true
		}
		status, _, err := n.try(http.MethodGet, "/readyz", "", nil)
		return err == nil && status == http.StatusOK
	})
	if n.running() {
		d.t.Log("started on a full disk: it serves")
		d.check("started while full")
		return
	}
	code := n.exitCode()
	d.t.Logf("started on a full disk: exit status %d", code)
	if code != 1 || !strings.Contains(strings.ToLower(n.log.String()), "space") {
		d.t.Errorf("exit status %d; want 1, and a log that speaks of space", code)
	}
}

// check says that everything acknowledged is in the log, once, and counted.
func (d *diskful) check(when string) {
	d.t.Helper()
	tr := newTruth(windowsOf("1m", "1h", "1d"), (24 * time.Hour).Milliseconds())
	found := map[string]bool{}
	for p := range 2 {
		for _, e := range d.node.partition(p) {
			if found[e.ID] {
				d.t.Errorf("%s: event %s is there twice", when, e.ID)
			}
			found[e.ID] = true
			user := decode[struct{ User string }](d.t, e.Data).User
			at, _ := time.Parse(time.RFC3339, e.Time)
			tr.add(p, user, user, e.ID, at.UnixMilli())
		}
	}
	for _, id := range d.acked {
		if !found[id] {
			d.t.Errorf("%s: event %s was acknowledged and is lost", when, id)
		}
	}
	for user := range tr.keys {
		a := d.node.count("pair", at(killBase+int64(d.sent)), user, "a1")
		if v := tr.judge(d.t, user, &a); v.exact != len(tr.windows) {
			d.t.Errorf("%s: user %s is not counted exactly: %+v", when, user, a)
		}
	}
}

// mountSmall mounts a small file system in memory. Without the right to, the test is skipped, or fails where everything
// is required.
func mountSmall(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", diskBytes)); err != nil {
		if os.Getenv("WEIR_REQUIRE_SERVICES") == "1" {
			t.Fatalf("cannot mount a small file system: %v", err)
		}
		t.Skipf("SKIPPED: a full disk is tested on a file system of its own, which cannot be mounted here: %v (run as root)", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("cannot unmount %s: %v", dir, err)
		}
	})
	return dir
}
