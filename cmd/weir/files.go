package main

import (
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"

	"github.com/weirstream/weir/internal/config"
)

// connectionFilesShare is the part of the files that the process may open which the connections of one port may use: two
// ports have half, and the stores the rest. A store that cannot open its next write-ahead log ends the process, so
// clients must not be able to use up what it needs.
const connectionFilesShare = 4

// boundConnections lowers limits.connections to what the process may open.
func boundConnections(cfg *config.Config, logger *slog.Logger) error {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("cannot read how many files may be open: %w", err)
	}
	most := connectionsFor(files.Cur)
	if most >= cfg.Limits.Connections {
		return nil
	}
	logger.Warn("limits.connections is lowered: the process may not open enough files; raise ulimit -n",
		"configured", cfg.Limits.Connections, "used", most, "open_files", files.Cur)
	cfg.Limits.Connections = most
	return nil
}

// connectionsFor returns how many connections each port may have where the process may open that many files.
func connectionsFor(files uint64) int {
	return int(min(max(files/connectionFilesShare, 1), 1<<30))
}
