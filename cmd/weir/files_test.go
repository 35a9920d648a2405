package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirstream/weir/internal/config"
)

func TestConnectionsFor(t *testing.T) {
	for _, c := range []struct {
		files uint64
		want  int
	}{{0, 1}, {64, 16}, {1024, 256}, {16384, 4096}, {unix.RLIM_INFINITY, 1 << 30}} {
		if got := connectionsFor(c.files); got != c.want {
			t.Errorf("%d files: got %d connections; want %d", c.files, got, c.want)
		}
	}
}

func TestBoundConnections(t *testing.T) {
	for _, c := range []struct {
		configured int
		lowered    bool
	}{{1, false}, {1 << 31, true}} {
		var out bytes.Buffer
		cfg := &config.Config{}
		cfg.Limits.Connections = c.configured
		if err := boundConnections(cfg, slog.New(slog.NewTextHandler(&out, nil))); err != nil {
			t.Fatal(err)
		}
		if lowered := cfg.Limits.Connections < c.configured; lowered != c.lowered || strings.Contains(out.String(), "limits.connections") != c.lowered {
			t.Errorf("%d connections: got %d, log %q", c.configured, cfg.Limits.Connections, out.String())
		}
	}
}
