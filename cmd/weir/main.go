// Command weir is the whole of Weir: a node, and the tools that talk to one.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/weirstream/weir/internal/client"
)

// Exit codes: done, failed, and used wrongly.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-signals // the first asks for an orderly end
		cancel()
		<-signals // the second does not wait for it
		fmt.Fprintln(os.Stderr, "weir: second signal, leaving at once; everything acknowledged on disk is there")
		os.Exit(exitFailed)
	}()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var usage *usageError
	var refusal *client.APIError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errSilent):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "weir: %v\nTry 'weir --help'.\n", err)
		return exitUsage
	case errors.As(err, &refusal):
		fmt.Fprintf(os.Stderr, "weir: the node refused: %v\n", err)
		return exitFailed
	default:
		fmt.Fprintf(os.Stderr, "weir: %v\n", err)
		return exitFailed
	}
}
