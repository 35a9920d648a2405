package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// readyWait is how long a start may take, replay included, before a test gives up: generous, since machines are shared.
	readyWait = 2 * time.Minute
	// exitWait is how long a process may take to end after it was told to.
	exitWait = time.Minute
	// replyWait bounds one request.
	replyWait = 30 * time.Second
	// pollEvery is the pause between two looks at a condition.
	pollEvery = 5 * time.Millisecond
	// logShownMax is how many bytes of a node's log a failed test prints, from the end.
	logShownMax = 16 << 10
)

// binary is the path of the weir under test, built by TestMain.
var binary string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "weir-e2e-bin-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	redis.SetLogger(silent{}) // nodes are killed under its connections all the time
	binary = filepath.Join(dir, "weir")
	args := []string{"build", "-o", binary}
	if os.Getenv("WEIR_RACE") == "1" {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "github.com/weirstream/weir/cmd/weir")...).CombinedOutput()
	if err != nil {
		return 1, fmt.Errorf("cannot build weir: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// silent is a logger for the Redis client.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// node is one weir: a folder, two addresses and, while it runs, a process.
type node struct {
	t      testing.TB
	folder string // the data folder
	file   string // the configuration
	http   string // host:port, the same over restarts
	resp   string

	client *http.Client
	log    *logBuffer
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
}

// Start runs a node with settings (YAML after data: and listen:) on a folder of its own and waits until it is ready. It is
// killed when the test ends; the end of its log is printed when the test failed.
func Start(t testing.TB, settings string) *node {
	t.Helper()
	n := prepare(t, filepath.Join(t.TempDir(), "data"), settings)
	n.start()
	return n
}

// prepare writes the configuration of a node and does not run it.
func prepare(t testing.TB, folder, settings string) *node {
	t.Helper()
	n := &node{t: t, folder: folder, log: &logBuffer{}, http: freeAddress(t), resp: freeAddress(t),
		file:   filepath.Join(t.TempDir(), "weir.yaml"),
		client: &http.Client{Timeout: replyWait, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	n.configure(settings)
	t.Cleanup(func() {
		n.kill()
		n.client.CloseIdleConnections()
		for _, sign := range []string{"DATA RACE", "panic"} {
			if strings.Contains(n.log.String(), sign) {
				t.Errorf("the node's log speaks of a %s", sign)
			}
		}
		if t.Failed() {
			t.Logf("the node's log ends with:\n%s", n.log.tail())
		}
	})
	return n
}

// configure replaces the settings; a running node does not notice.
func (n *node) configure(settings string) {
	n.t.Helper()
	text := fmt.Sprintf("data: %s\nlisten: {http: %q, resp: %q}\n%s", n.folder, n.http, n.resp, settings)
	if err := os.WriteFile(n.file, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// launch runs the process and does not wait for it to be ready.
func (n *node) launch() {
	n.t.Helper()
	cmd := exec.Command(binary, "run", "-c", n.file)
	cmd.Stdout, cmd.Stderr = n.log, n.log
	if err := cmd.Start(); err != nil {
		n.t.Fatalf("cannot start weir: %v", err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the state is read from cmd.ProcessState
		close(exited)
	}()
	n.cmd, n.exited = cmd, exited
}

// start runs the process and waits until it is ready.
func (n *node) start() {
	n.t.Helper()
	n.launch()
	n.waitReady()
}

func (n *node) waitReady() {
	n.t.Helper()
	eventually(n.t, readyWait, "the node is ready", func() bool {
		if !n.running() {
			n.t.Fatalf("the node ended while starting: %v", n.cmd.ProcessState)
		}
		status, _, err := n.try(http.MethodGet, "/readyz", "", nil)
		return err == nil && status == http.StatusOK
	})
}

// running says that the process has not ended.
func (n *node) running() bool {
	select {
	case <-n.exited:
		return false
	default:
		return true
	}
}

// kill ends the process as a crash of the machine's software does, and waits until it is gone.
func (n *node) kill() {
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill() // it may have ended already
	<-n.exited
	n.client.CloseIdleConnections()
}

// terminate asks the process to drain and returns its exit status.
func (n *node) terminate() int {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatalf("cannot signal the node: %v", err)
	}
	return n.exitCode()
}

// exitCode waits for the process to end by itself.
func (n *node) exitCode() int {
	n.t.Helper()
	select {
	case <-n.exited:
	case <-time.After(exitWait):
		n.t.Fatalf("the node did not end within %v", exitWait)
	}
	n.client.CloseIdleConnections()
	return n.cmd.ProcessState.ExitCode()
}

// restart ends the process with SIGTERM and runs it again.
func (n *node) restart() {
	n.t.Helper()
	if code := n.terminate(); code != 0 {
		n.t.Fatalf("exit status %d after SIGTERM; want 0", code)
	}
	n.start()
}

// crash kills the process and runs it again.
func (n *node) crash() {
	n.t.Helper()
	n.kill()
	n.start()
}

func (n *node) url(path string) string { return "http://" + n.http + path }

// try sends one request. headers are pairs of name and value.
func (n *node) try(method, path, contentType string, body []byte, headers ...string) (status int, reply []byte, err error) {
	req, err := http.NewRequestWithContext(context.Background(), method, n.url(path), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := n.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	reply, err = io.ReadAll(resp.Body)
	return resp.StatusCode, reply, err
}

// redis returns a client that speaks the given version of RESP; it is closed when the test ends.
func (n *node) redis(protocol int) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: n.resp, Protocol: protocol, MaxRetries: -1,
		ReadTimeout: replyWait, WriteTimeout: replyWait, DisableIdentity: false})
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// eventually waits for condition. bound is generous: it ends a test that hangs, it judges no speed.
func eventually(t testing.TB, bound time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(bound)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited %v in vain: %s", bound, what)
		}
	}
}

// reserved keeps freeAddress from giving one port to two nodes of this process.
var reserved struct {
	sync.Mutex
	ports map[string]bool
}

func freeAddress(t testing.TB) string {
	t.Helper()
	reserved.Lock()
	defer reserved.Unlock()
	if reserved.ports == nil {
		reserved.ports = map[string]bool{}
	}
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		l.Close()
		if !reserved.ports[address] {
			reserved.ports[address] = true
			return address
		}
	}
}

// logBuffer gathers what a process prints.
type logBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	return len(p), nil
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

func (b *logBuffer) tail() string {
	text := b.String()
	return text[max(0, len(text)-logShownMax):]
}

// gone says that err is what a client sees of a node that was killed or is not up: nothing is known about its request.
func gone(err error) bool {
	var netErr *net.OpError
	return errors.As(err, &netErr) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, redis.ErrClosed) ||
		strings.Contains(err.Error(), "server closed idle connection")
}
