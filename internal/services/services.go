// Package services finds the programs that tests compare Weir with or drive it by: Redis and Chromium.
//
// A program comes from the environment, as scripts/services prints it, or from the search path. Where it is missing the
// test is skipped, loudly; with WEIR_REQUIRE_SERVICES=1 it fails instead, so that a build server never passes by
// skipping.
package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The variables that tests obey.
const (
	EnvRedis    = "WEIR_TEST_REDIS"       // host:port of a Redis server that tests may write to
	EnvChromium = "WEIR_TEST_CHROMIUM"    // path of a Chromium or Chrome binary
	EnvRequire  = "WEIR_REQUIRE_SERVICES" // 1: a missing program fails the test
)

const (
	startWait  = 10 * time.Second
	dialWait   = time.Second
	startTries = 5
)

// TB is what this package needs of a *testing.T, *testing.B or *testing.F.
type TB interface {
	Helper()
	Name() string
	TempDir() string
	Cleanup(func())
	Context() context.Context
	Logf(format string, args ...any)
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Redis returns the address of a Redis server: the one of EnvRedis, or one that is started for this test and ends with
// it. The server of EnvRedis is shared: use keys of your own.
func Redis(t TB) string {
	t.Helper()
	if address := os.Getenv(EnvRedis); address != "" {
		conn, err := net.DialTimeout("tcp", address, dialWait)
		if err != nil {
			t.Fatalf("%s=%s: nothing listens there: %v", EnvRedis, address, err)
			return ""
		}
		conn.Close()
		return address
	}
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		missing(t, "redis-server", EnvRedis)
		return ""
	}
	return startRedis(t, binary)
}

// RedisBenchmark returns the path of redis-benchmark.
func RedisBenchmark(t TB) string {
	t.Helper()
	return find(t, "", "redis-benchmark")
}

// RedisCLI returns the path of redis-cli.
func RedisCLI(t TB) string {
	t.Helper()
	return find(t, "", "redis-cli")
}

// Chromium returns the path of a Chromium or Chrome binary.
func Chromium(t TB) string {
	t.Helper()
	return find(t, EnvChromium, "chromium", "chromium-browser", "google-chrome")
}

// find returns the binary that the variable names, or the first of names on the search path.
func find(t TB, env string, names ...string) string {
	t.Helper()
	if env != "" && os.Getenv(env) != "" {
		path, err := exec.LookPath(os.Getenv(env))
		if err != nil {
			t.Fatalf("%s: %v", env, err)
		}
		return path
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, names[0], env)
	return ""
}

// missing ends the test as EnvRequire wants it.
func missing(t TB, what, env string) {
	t.Helper()
	cure := `install it, or run: eval "$(scripts/services up)"`
	if env != "" {
		cure += ", or set " + env
	}
	if os.Getenv(EnvRequire) == "1" {
		t.Fatalf("%s needs %s, which is missing, and %s=1: %s", t.Name(), what, EnvRequire, cure)
		return
	}
	t.Skipf("*** NOT TESTED: %s needs %s, which is missing: %s ***", t.Name(), what, cure)
}

// startRedis starts a server without persistence on a free port. Another process can take the port before Redis does;
// then it ends at once and another port is tried.
func startRedis(t TB, binary string) string {
	t.Helper()
	var err error
	for range startTries {
		var address string
		if address, err = tryRedis(t, binary); err == nil {
			return address
		}
	}
	t.Fatalf("cannot start %s: %v", binary, err)
	return ""
}

func tryRedis(t TB, binary string) (string, error) {
	address, err := freeAddress()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	log := filepath.Join(t.TempDir(), "redis.log")
	cmd := exec.Command(binary, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", filepath.Dir(log), "--logfile", log)
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop := func() {
		if cmd.Process.Kill() == nil {
			<-ended
		}
	}
	if err := awaitRedis(t.Context(), address, log, ended); err != nil {
		stop()
		return "", err
	}
	t.Cleanup(stop)
	return address, nil
}

// awaitRedis returns nil once the server says in its own log that it accepts connections: whoever answers on the port
// might be another program.
func awaitRedis(ctx context.Context, address, log string, ended chan error) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(log)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if strings.Contains(string(text), "Ready to accept connections") {
			return nil
		}
		select {
		case err := <-ended:
			ended <- err
			return fmt.Errorf("it ended (%v) and logged: %s", err, text)
		case <-ctx.Done():
			return fmt.Errorf("it does not accept connections on %s: %w; it logged: %s", address, ctx.Err(), text)
		case <-tick.C:
		}
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
