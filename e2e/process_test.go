package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const pairSettings = `streams:
  events: {partitions: 2, segment: data.user}
counters:
  - {name: pair, stream: events, key: [data.user, data.ad], windows: [1m, 1h, 1d]}
`

// TestDrain sends SIGTERM while producers wait for acks over both protocols: whoever gets an answer can rely on it, and the
// process exits with 0.
func TestDrain(t *testing.T) {
	random := randomFor(t)
	n := Start(t, killSettings)
	tr := &trace{events: map[string]*traced{}}
	for round := range 3 {
		tr.expect(20 + random.IntN(100))
		var producers sync.WaitGroup
		for p := range 4 {
			own := rand.New(rand.NewPCG(random.Uint64(), 0))
			producers.Go(func() { sendWhileUp(n, own, fmt.Sprintf("d%dp%d", round, p), tr) })
		}
		<-tr.enough
		if code := n.terminate(); code != 0 {
			t.Errorf("exit status %d after SIGTERM; want 0", code)
		}
		producers.Wait()
		n.start()
		resend(t, n, tr, random)
		checkLog(t, n, tr, random)
	}
}

// sendWhileUp posts until the node refuses because it drains, or is gone.
func sendWhileUp(n *node, random *rand.Rand, prefix string, tr *trace) {
	for k := 0; ; k++ {
		events := killEvents(random, fmt.Sprintf("%sk%d", prefix, k))
		lines := make([]string, len(events))
		for i, e := range events {
			lines[i] = e.line()
		}
		status, body, err := n.try(http.MethodPost, "/v1/streams/events/events", ndjson, []byte(strings.Join(lines, "\n")))
		switch {
		case err != nil:
			tr.note(events, unknown, nil)
			return
		case status == http.StatusServiceUnavailable:
			tr.note(events, unknown, nil) // a part of the request may have been stored before the log closed
			return
		case status == http.StatusOK:
			tr.note(events, acked, nil)
		case status != http.StatusTooManyRequests:
			n.t.Errorf("status %d while draining: %s", status, body)
			return
		}
	}
}

// hung is a request whose body does not come to its end.
type hung struct {
	conn net.Conn
}

func hang(t *testing.T, n *node, body string) *hung {
	t.Helper()
	conn, err := net.Dial("tcp", n.http)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	const more = 1
	_, err = fmt.Fprintf(conn, "POST /v1/streams/events/events HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", n.http, ndjson, len(body)+more)
	if err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 64) // the node says 100 Continue once it reads the body: the request is in its hands
	if k, err := conn.Read(reply); err != nil || !bytes.Contains(reply[:k], []byte("100")) {
		t.Fatalf("no 100 Continue: %q, %v", reply[:k], err)
	}
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	return &hung{conn}
}

// finish sends the rest of the body and returns the reply.
func (h *hung) finish() (string, error) {
	if _, err := io.WriteString(h.conn, "\n"); err != nil {
		return "", err
	}
	reply := make([]byte, 4096)
	k, err := h.conn.Read(reply)
	return string(reply[:k]), err
}

// TestRequestInFlightIsFinished: a request whose body was on its way when SIGTERM came is answered, and meanwhile the node says
// that it drains.
func TestRequestInFlightIsFinished(t *testing.T) {
	n := Start(t, pairSettings)
	h := hang(t, n, `{"id":"late","type":"t","data":{"user":"u","ad":"a"}}`)
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, exitWait, "readyz says 503 draining", func() bool {
		if !n.running() {
			t.Fatal("the node left while a request was in flight, without having said that it drains")
		}
		status, body, err := n.try(http.MethodGet, "/readyz", "", nil)
		return err == nil && status == http.StatusServiceUnavailable && bytes.Contains(body, []byte("draining"))
	})
	reply, err := h.finish()
	if err != nil || !strings.Contains(reply, "200 OK") || !strings.Contains(reply, `"accepted":1`) {
		t.Errorf("the request in flight got %q, %v; want its ack", reply, err)
	}
	if code := n.exitCode(); code != 0 {
		t.Errorf("exit status %d; want 0", code)
	}
	n.start()
	if w := n.count("pair", nil, "u", "a").Windows["1h"]; w.Count != 1 || !w.Exact {
		t.Errorf("the event that was acknowledged while draining counts %+v", w)
	}
}

// TestSecondSignal ends the process though a request keeps it from draining, and what was acknowledged is still there.
func TestSecondSignal(t *testing.T) {
	n := Start(t, pairSettings)
	n.sendAll("events", `{"id":"a","type":"t","data":{"user":"u","ad":"a"}}`)
	hang(t, n, `{"id":"b"`)
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, exitWait, "the node drains", func() bool {
		status, _, err := n.try(http.MethodGet, "/readyz", "", nil)
		return err != nil || status != http.StatusOK
	})
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("it did not wait for the request in flight: %v", err)
	}
	if code := n.exitCode(); code == 0 {
		t.Error("exit status 0 after a second signal: it waited for the drain")
	}
	n.start()
	if w := n.count("pair", nil, "u", "a").Windows["1h"]; w.Count != 1 {
		t.Errorf("after a second signal: %+v", w)
	}
}

// TestReadiness: the node says that it recovers and refuses with 503 until it has caught up. It may be ready too soon to be
// caught recovering; then only the end is seen.
func TestReadiness(t *testing.T) {
	n := Start(t, pairSettings)
	var lines []string
	for i := range 50_000 {
		lines = append(lines, sample{fmt.Sprintf("e%d", i), fmt.Sprintf("u%d", i%1000), "a", killBase + int64(i)}.line())
	}
	for i := 0; i < len(lines); i += 10_000 {
		n.sendAll("events", lines[i:i+10_000]...)
	}
	n.kill()
	n.launch()
	seen := map[string]int{}
	eventually(t, readyWait, "ready", func() bool {
		status, body, err := n.try(http.MethodGet, "/readyz", "", nil)
		if err != nil {
			return false
		}
		seen[string(bytes.TrimSpace(body))]++
		if status == http.StatusServiceUnavailable {
			if s := decode[struct{ Status string }](t, body).Status; s != "recovering" {
				t.Errorf("503 with status %q; want recovering", s)
			}
			if live, _, err := n.try(http.MethodGet, "/healthz", "", nil); err == nil && live != http.StatusOK {
				t.Errorf("healthz is %d while recovering", live)
			}
		}
		return status == http.StatusOK
	})
	t.Logf("readyz answered %v", seen)
	// Ready means: both protocols answer, and the counters have caught up.
	if w := n.count("pair", at(killBase+50_000), "u7", "a").Windows["1h"]; w.Count != 50 || !w.Exact {
		t.Errorf("ready, but a counter is behind: %+v", w)
	}
	if windows, _ := weirCount(t, n.redis(3), "pair", at(killBase+50_000), "u7", "a"); windows[1].count != 50 {
		t.Errorf("ready, but over RESP: %+v", windows)
	}
}

// TestAckMemory: an ack from memory is counted and readable, and survives a drain.
func TestAckMemory(t *testing.T) {
	n := Start(t, pairSettings)
	for i := range 200 {
		reply := n.posted("/v1/streams/events/events?ack=memory", sample{fmt.Sprintf("m%d", i), "u", "a", killBase}.line())
		if r := decode[receipt](t, []byte(reply)); r.Accepted != 1 {
			t.Fatalf("got %s", reply)
		}
	}
	eventually(t, exitWait, "all are counted", func() bool {
		w := n.count("pair", at(killBase), "u", "a").Windows["1m"]
		if w.Count > 200 || *w.Max < 200 {
			t.Fatalf("200 acknowledged events: %+v", w)
		}
		return w.Count == 200
	})
	n.restart()
	if w := n.count("pair", at(killBase), "u", "a").Windows["1m"]; w.Count != 200 {
		t.Errorf("after a drain: %+v", w)
	}
}

// TestRefusesToStart is a table of starts that fail: exit status 1, and the log names what is in the way.
func TestRefusesToStart(t *testing.T) {
	n := Start(t, pairSettings)
	for _, c := range []struct {
		name  string
		spoil func(other *node)
		says  func(other *node) string
	}{
		{"the HTTP port is in use", func(o *node) { o.http = n.http }, func(*node) string { return n.http }},
		{"the RESP port is in use", func(o *node) { o.resp = n.resp }, func(*node) string { return n.resp }},
		{"the data folder is in use", func(o *node) { o.folder = n.folder }, func(*node) string { return n.folder }},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := prepare(t, filepath.Join(t.TempDir(), "data"), pairSettings)
			c.spoil(other)
			other.configure(pairSettings)
			other.refuses(c.says(other))
		})
	}
	if code := n.terminate(); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	for name, settings := range map[string]string{
		"partitions":    strings.Replace(pairSettings, "partitions: 2", "partitions: 3", 1),
		"segment":       strings.Replace(pairSettings, "segment: data.user", "segment: data.ad", 1),
		"unknown_field": pairSettings + "unknown_field: 1\n",
		"weir.yaml:4":   strings.Replace(pairSettings, "segment: data.user", "segment: [data.ad]", 1),
	} {
		t.Run(name, func(t *testing.T) {
			n.configure(settings)
			n.refuses(name)
		})
	}
	n.configure(pairSettings)
	n.start()
}

// refuses runs the node, which has to end by itself.
func (n *node) refuses(says string) {
	n.t.Helper()
	before := len(n.log.String())
	n.launch()
	code := n.exitCode()
	if said := n.log.String()[before:]; code != 1 || !strings.Contains(said, says) {
		n.t.Errorf("exit status %d, and it says %q; want 1, and %q named", code, said, says)
	}
}

// TestCommandLine runs the other commands against a node, as a user does.
func TestCommandLine(t *testing.T) {
	n := Start(t, pairSettings)
	events := sample{"c1", "u", "a", time.Now().UnixMilli()}.line() + "\n" + sample{"c2", "u", "a", time.Now().UnixMilli()}.line() + "\n"
	server := "--server=" + n.url("")
	for _, c := range []struct {
		args  []string
		input string
		code  int
		says  string
	}{
		{[]string{"version"}, "", 0, "weir"},
		{[]string{"--version"}, "", 0, "weir"},
		{[]string{"version", "-o", "json"}, "", 0, "{"},
		{[]string{"check", "-c", n.file}, "", 0, ""},
		{[]string{"send", "events", server}, events, 0, ""},
		{[]string{"count", "pair", "u", "a", server}, "", 0, "2"},
		{[]string{"count", "pair", "u", "a", "-o", "json", server}, "", 0, `"count"`},
		{[]string{"tail", "events", server, "--follow=false"}, "", 0, "c1"},
		{[]string{"info", server}, "", 0, "events"},
		{[]string{"info", "-o", "json", server}, "", 0, `"version"`},
		{[]string{"count", "nope", "u", server}, "", 1, "unknown_counter"},
		{[]string{"nonsense"}, "", 2, "nonsense"},
		{[]string{"run", "--nonsense"}, "", 2, "nonsense"},
		{[]string{"check"}, "", 2, ""},
		{[]string{"run", "-c", filepath.Join(t.TempDir(), "absent.yaml")}, "", 1, "absent.yaml"},
	} {
		t.Run(strings.Join(c.args[:min(2, len(c.args))], " "), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), binary, c.args...)
			cmd.Stdin = strings.NewReader(c.input)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.says) {
				t.Errorf("weir %q: exit status %d; want %d, and %q in\n%s", c.args, code, c.code, c.says, out)
			}
		})
	}
}

// TestRunWithoutConfiguration keeps the stream events with four partitions.
func TestRunWithoutConfiguration(t *testing.T) {
	n := prepare(t, filepath.Join(t.TempDir(), "data"), "")
	n.cmd = exec.Command(binary, "run", "--data", n.folder, "--http", n.http, "--resp", n.resp)
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.exited = make(chan struct{})
	go func() {
		_ = n.cmd.Wait()
		close(n.exited)
	}()
	n.waitReady()
	n.sendAll("events", `{"id":"a","type":"t"}`)
	total := 0
	for p := range 4 {
		total += len(n.partition(p))
	}
	if status, _, _ := n.try(http.MethodGet, "/v1/streams/events/events?partition=4", "", nil); total != 1 || status != http.StatusBadRequest {
		t.Errorf("%d events in four partitions, and a fifth one answers %d", total, status)
	}
	if code := n.terminate(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if entries, err := os.ReadDir(n.folder); err != nil || len(entries) == 0 {
		t.Errorf("nothing in the data folder: %v", err)
	}
}

// TestRebuild adds a counter and changes another one: both are rebuilt from the log, and say so meanwhile.
func TestRebuild(t *testing.T) {
	random := randomFor(t)
	n := Start(t, pairSettings)
	log := randomLog(random)
	sendInPieces(n, "events", random, log)
	n.terminate()
	n.configure(`streams:
  events: {partitions: 2, segment: data.user}
counters:
  - {name: pair, stream: events, key: [data.user, data.ad], windows: [1m, 1h, 1d, 7d], where: 'data.ad == "a1"'}
  - {name: ad, stream: events, key: [data.ad], windows: [1m, 1h, 1d, 7d]}
`)
	n.start()
	windows := windowsOf("1m", "1h", "1d", "7d")
	pairs, ads := newTruth(windows, (24*time.Hour).Milliseconds()), newTruth(windows, (24*time.Hour).Milliseconds())
	for _, e := range log {
		if e.ad == "a1" {
			pairs.add(0, e.user+" "+e.ad, e.user, e.id, e.time)
		}
		ads.add(0, e.ad, e.user, e.id, e.time)
	}
	n.waitBuilt("pair", "u0", "a1")
	n.waitBuilt("ad", "a1")
	for range 100 {
		e := log[random.IntN(len(log))]
		asOf := e.time + random.Int64N(time.Hour.Milliseconds())
		pair, ad := n.count("pair", at(asOf), e.user, e.ad), n.count("ad", at(asOf), e.ad)
		if v := pairs.judge(t, e.user+" "+e.ad, &pair); v.exact != 4 {
			t.Errorf("rebuilt and not exact: %+v", pair)
		}
		if v := ads.judge(t, e.ad, &ad); v.exact != 4 {
			t.Errorf("rebuilt and not exact: %+v", ad)
		}
	}
}

// waitBuilt waits until a counter is built from the log; until then it has to say that it is not.
func (n *node) waitBuilt(counter string, key ...string) {
	n.t.Helper()
	path := "/v1/counters/" + counter + "?" + url.Values{"key": key}.Encode()
	eventually(n.t, readyWait, counter+" is built", func() bool {
		status, body, err := n.try(http.MethodGet, path, "", nil)
		if err != nil || status != http.StatusOK && (status != http.StatusServiceUnavailable || !strings.Contains(string(body), "counter_building")) {
			n.t.Fatalf("%s: status %d, %v: %s; want 200, or 503 counter_building", counter, status, err, body)
		}
		return status == http.StatusOK
	})
}
