// Package server is a whole node as a value: a configuration goes in, Run serves it until its context ends.
//
// Run reads as the boot order. Listeners open first, so that a port in use is found before anything is touched and so that
// /readyz can say "recovering" meanwhile; then the folder is locked, the logs and the counters are opened, and once the counters
// have caught up the node is ready. At the end the order is turned round: nothing new is taken, what was taken
// is finished, and the counters close before the logs that they read.
package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/weirstream/weir/internal/api"
	"github.com/weirstream/weir/internal/clock"
	"github.com/weirstream/weir/internal/config"
	"github.com/weirstream/weir/internal/dash"
	"github.com/weirstream/weir/internal/metrics"
	"github.com/weirstream/weir/internal/resp"
)

// The end of a node takes stopWait at most, and of that the requests in flight drainWait: whoever started the node, such
// as systemd or Kubernetes, is told 10 s. What the requests leave of it is the logs', to make durable what is queued.
const (
	stopWait  = 9500 * time.Millisecond
	drainWait = 6 * time.Second
)

// Options configures a node. Config and Fatal are required; zero fields take the defaults behind them.
type Options struct {
	Config  *config.Config
	Version string       // shown in /v1/info and metrics
	Logger  *slog.Logger // default: none
	Clock   clock.Clock  // default: the machine's

	// Fatal is called when storage failed so that nothing more can be promised (a write-ahead log could not be written). It must
	// end the process and not return: what was acknowledged is on disk, and a new process opens it.
	Fatal func(error)

	// Ready is called once, when the node takes events and look-ups, with the addresses that it listens on.
	Ready func(Addresses)
}

// Addresses are what a node listens on, each host:port. They differ from the configured ones where those said port 0.
type Addresses struct{ HTTP, RESP, Admin string }

// Run serves until ctx ends, drains, and returns nil; or returns why it could not serve.
func Run(ctx context.Context, opts Options) error {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	budget, err := opts.Config.Divide()
	if err != nil {
		return fmt.Errorf("cannot divide memory: %w", err)
	}
	n := newNode(opts, budget)
	s := &servers{node: n, logger: opts.Logger, failed: make(chan error, listenersMax)}
	if s.resp, err = newRESP(n, opts); err != nil {
		return err
	}
	if err := s.listen(opts.Config); err != nil {
		s.close()
		return err
	}
	unlock, err := takeFolder(opts.Config.Data)
	if err != nil {
		s.close()
		return err
	}
	defer unlock()
	s.serve(opts)

	err = n.open(ctx)
	if err == nil {
		n.ready.Store(true)
		if opts.Ready != nil {
			opts.Ready(s.addresses())
		}
		err = s.wait(ctx)
	}
	n.ready.Store(false)
	n.draining.Store(true)
	close(n.drain)
	stop, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	s.shutdown(stop)
	return errors.Join(ignoreCanceled(ctx, err), n.close(stop))
}

// ignoreCanceled drops the error of a start that was interrupted by the order to stop.
func ignoreCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// listenersMax is the number of listeners that a node can have.
const listenersMax = 3

// servers are the node's listeners and what serves them.
type servers struct {
	node   *node
	logger *slog.Logger
	failed chan error // a listener that ended by itself

	httpListener, respListener, adminListener net.Listener
	http, admin                               *http.Server
	resp                                      *resp.Server
	inFlight                                  inFlight // of http
}

// listen opens every address, or says which one cannot be had.
func (s *servers) listen(cfg *config.Config) error {
	for _, l := range []struct {
		setting, addr string
		into          *net.Listener
	}{
		{"listen.http", cfg.Listen.HTTP, &s.httpListener},
		{"listen.resp", cfg.Listen.RESP, &s.respListener},
		{"listen.admin", cfg.Listen.Admin, &s.adminListener},
	} {
		if l.addr == "" {
			continue
		}
		listener, err := net.Listen("tcp", l.addr)
		if err != nil {
			return fmt.Errorf("cannot listen on %s (%s): %w; %s", l.addr, l.setting, err, listenCure(err))
		}
		*l.into = listener
	}
	return nil
}

// listenCure says what helps against err, the failure to listen on an address.
func listenCure(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "is another node running there? stop it, or choose another port"
	case errors.Is(err, fs.ErrPermission):
		return "ports below 1024 are for root: choose a higher one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine has no such address"
	}
	return "choose another address"
}

// serve starts a goroutine for every listener; shutdown ends them.
func (s *servers) serve(opts Options) {
	n := s.node
	handler := api.New(api.Options{
		Backend: httpBackend{n}, Clock: opts.Clock, Logger: opts.Logger, Page: dash.New(), Metrics: n.metrics.Handler(),
		Limits: api.Limits{BodyBytesMax: opts.Config.Limits.BodyBytes, KeyPartBytesMax: opts.Config.Limits.KeyPartBytes},
		Events: api.Events{Request: n.metrics.Request, Overloaded: n.metrics.Overloaded, LookedUp: n.metrics.LookedUp},
		Drain:  n.drain,
	})
	s.http = api.NewServer(s.inFlight.wrap(handler), opts.Logger)
	limited := api.LimitListener(s.httpListener, opts.Config.Limits.Connections, func() { n.metrics.ConnectionRefused("http") })
	go s.run("http", func() error { return s.http.Serve(limited) })
	go s.run("resp", func() error { return s.resp.Serve(s.respListener) })
	if s.adminListener != nil {
		s.admin = api.NewServer(api.NewAdmin(), opts.Logger)
		go s.run("admin", func() error { return s.admin.Serve(s.adminListener) })
	}
}

func (s *servers) run(name string, serve func() error) {
	err := serve()
	if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, resp.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		s.failed <- fmt.Errorf("%s listener failed: %w", name, err)
	}
}

// wait returns when ctx ends (nil) or a listener or a log fails.
func (s *servers) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return err
	case err := <-s.node.failed:
		return err
	}
}

func (s *servers) addresses() Addresses {
	a := Addresses{HTTP: s.httpListener.Addr().String(), RESP: s.respListener.Addr().String()}
	if s.adminListener != nil {
		a.Admin = s.adminListener.Addr().String()
	}
	return a
}

// shutdown lets requests in flight finish, for a while.
func (s *servers) shutdown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainWait)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.resp.Shutdown(ctx); err != nil {
			s.logger.Warn("some RESP commands were cut off by the end of the drain", "err", err)
		}
	}()
	s.inFlight.drain(ctx)
	if err := s.http.Shutdown(ctx); err != nil {
		s.logger.Warn("some HTTP requests were cut off by the end of the drain", "err", err)
		_ = s.http.Close()
	}
	if s.admin != nil {
		_ = s.admin.Close()
	}
	<-done
}

// close closes listeners that nothing serves yet.
func (s *servers) close() {
	for _, l := range []net.Listener{s.httpListener, s.respListener, s.adminListener} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// metricsOf returns a node's own registry.
func metricsOf(n *node, version string, logger *slog.Logger) *metrics.Metrics {
	return metrics.New(metrics.Options{Version: version, Logger: logger, Sources: metrics.Sources{
		Streams:           n.metricStreams,
		Counters:          httpBackend{n}.Counters,
		CounterPartitions: n.metricCounterPartitions,
		Node:              n.metricNode,
	}})
}
