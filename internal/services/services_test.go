package services

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a test that notes how it was ended instead of ending.
type recorder struct {
	*testing.T
	skipped, failed string
}

func (r *recorder) Skipf(format string, args ...any)  { r.skipped = fmt.Sprintf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }

func TestRedisAnswers(t *testing.T) {
	conn, err := net.Dial("tcp", Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "+PONG\r\n" {
		t.Errorf("got %q, %v; want +PONG", line, err)
	}
}

func TestChromiumIsThere(t *testing.T) {
	if path := Chromium(t); !filepath.IsAbs(path) {
		t.Errorf("got %q; want an absolute path", path)
	}
}

func TestMissingIsSkippedLoudly(t *testing.T) {
	nothingInstalled(t)
	for name, find := range map[string]func(TB) string{"redis-server": Redis, "redis-benchmark": RedisBenchmark, "chromium": Chromium} {
		r := &recorder{T: t}
		find(r)
		if !strings.Contains(r.skipped, "NOT TESTED") || !strings.Contains(r.skipped, name) || r.failed != "" {
			t.Errorf("%s: got skip %q, failure %q; want a loud skip", name, r.skipped, r.failed)
		}
	}
}

func TestMissingFailsWhereRequired(t *testing.T) {
	nothingInstalled(t)
	t.Setenv(EnvRequire, "1")
	for name, find := range map[string]func(TB) string{"redis-server": Redis, "redis-benchmark": RedisBenchmark, "chromium": Chromium} {
		r := &recorder{T: t}
		find(r)
		if !strings.Contains(r.failed, name) || r.skipped != "" {
			t.Errorf("%s: got skip %q, failure %q; want a failure", name, r.skipped, r.failed)
		}
	}
}

func TestWrongVariableFails(t *testing.T) {
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvRedis, address)
	t.Setenv(EnvChromium, filepath.Join(t.TempDir(), "chromium"))
	for name, find := range map[string]func(TB) string{EnvRedis: Redis, EnvChromium: Chromium} {
		r := &recorder{T: t}
		find(r)
		if !strings.Contains(r.failed, name) {
			t.Errorf("got failure %q; want one that names %s", r.failed, name)
		}
	}
}

func nothingInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(EnvRedis, "")
	t.Setenv(EnvChromium, "")
	t.Setenv(EnvRequire, "")
}
