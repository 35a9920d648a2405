package resp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds that Options can change, and their defaults.
const (
	DefaultConnectionsMax = 4096             // open connections; one more is told so and closed
	DefaultArgsMax        = 1024             // arguments of a command
	DefaultBulkBytesMax   = 1 << 20          // bytes of an argument
	DefaultBufferBytesMax = 64 << 20         // bytes of read buffers above 4 KiB a connection
	DefaultWriteTimeout   = 10 * time.Second // for a client to take its replies
	commandOverheadBytes  = 64 << 10         // bytes of a command beside its longest argument
)

// acceptRetryDelay is how long the server waits after a failed accept (too many open files, mostly).
const acceptRetryDelay = 50 * time.Millisecond

// ErrServerClosed is what Serve returns after Shutdown.
var ErrServerClosed = errors.New("resp server is closed")

// Options configures a Server. The zero value of every field but Backend works.
type Options struct {
	Backend Backend      // required
	Logger  *slog.Logger // default: none

	// Authenticate returns what the bearer of token may do. Default nil: everybody may do everything. It must take
	// the same time for every wrong token.
	Authenticate func(token []byte) (Allow, bool)

	Version        string        // of Weir, for HELLO and INFO
	ConnectionsMax int           // default DefaultConnectionsMax
	ArgsMax        int           // arguments of a command; default DefaultArgsMax
	BulkBytesMax   int           // bytes of an argument, so of an event's data; default DefaultBulkBytesMax
	BufferBytesMax int64         // bytes of all read buffers beyond 4 KiB each; default DefaultBufferBytesMax
	WriteTimeout   time.Duration // how long a client may refuse its replies before it is cut off; default DefaultWriteTimeout
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ConnectionsMax == 0 {
		o.ConnectionsMax = DefaultConnectionsMax
	}
	if o.ArgsMax == 0 {
		o.ArgsMax = DefaultArgsMax
	}
	if o.BulkBytesMax == 0 {
		o.BulkBytesMax = DefaultBulkBytesMax
	}
	if o.BufferBytesMax == 0 {
		o.BufferBytesMax = DefaultBufferBytesMax
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = DefaultWriteTimeout
	}
	return o
}

func (o *Options) validate() error {
	switch {
	case o.Backend == nil:
		return errors.New("cannot make a resp server: got no backend; want one")
	case o.ConnectionsMax < 0 || o.ArgsMax < 0 || o.BulkBytesMax < 0 || o.BufferBytesMax < 0 || o.WriteTimeout < 0:
		return fmt.Errorf("cannot make a resp server: got a negative bound in %d connections, %d arguments, %d bytes an "+
			"argument, %d bytes of buffers, write timeout %v; want none", o.ConnectionsMax, o.ArgsMax, o.BulkBytesMax,
			o.BufferBytesMax, o.WriteTimeout)
	case o.BufferBytesMax < int64(roundUp(o.BulkBytesMax+commandOverheadBytes)):
		return fmt.Errorf("cannot make a resp server: got %d bytes of buffers; want at least %d, which an argument of %d "+
			"bytes takes", o.BufferBytesMax, roundUp(o.BulkBytesMax+commandOverheadBytes), o.BulkBytesMax)
	}
	return nil
}

// Stats is what the server has done since it was made.
type Stats struct {
	Connections int   // open now
	Accepted    int64 // connections taken
	Refused     int64 // connections beyond ConnectionsMax
	Commands    int64 // commands run, refused ones too
	Errors      int64 // error replies
	Slow        int64 // connections cut off because they did not take their replies
	BufferBytes int64 // of read buffers beyond 4 KiB a connection
}

// Server serves connections from any number of listeners.
type Server struct {
	options  Options
	commands map[string]*command
	budget   budget

	// ctx ends when connections are closed by force: it ends waits in the backend.
	ctx    context.Context
	cancel context.CancelFunc

	draining atomic.Bool
	nextID   atomic.Int64
	commandN atomic.Int64
	errorN   atomic.Int64

	mu struct {
		sync.Mutex
		listeners map[net.Listener]struct{}
		conns     map[*conn]struct{}
		accepted  int64
		refused   int64
	}
	slow    atomic.Int64
	running sync.WaitGroup // goroutines of connections, and the loop's

	loop *loop // nil where there is none
}

// New returns a server that serves nothing yet.
func New(options Options) (*Server, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	s := &Server{options: options, commands: commandTable()}
	s.budget.bytesMax = options.BufferBytesMax
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mu.listeners = map[net.Listener]struct{}{}
	s.mu.conns = map[*conn]struct{}{}
	return s, nil
}

// Serve takes connections from l, which it closes, until Shutdown, and returns ErrServerClosed then. A connection's
// goroutine ends before Shutdown returns.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if err := s.track(l); err != nil {
		return err
	}
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			s.start(nc)
		case s.draining.Load():
			return ErrServerClosed
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("cannot accept RESP connections: %w", err)
		default:
			s.options.Logger.Warn("cannot accept a RESP connection", "err", err)
			s.wait(acceptRetryDelay)
		}
	}
}

func (s *Server) wait(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	}
}

// track starts what the first listener needs.
func (s *Server) track(l net.Listener) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		return ErrServerClosed
	}
	if s.loop == nil {
		if s.loop, err = newLoop(s); err != nil {
			return fmt.Errorf("cannot serve RESP: %w", err)
		}
		if s.loop != nil {
			s.running.Go(s.loop.run) // until Shutdown
		}
	}
	s.mu.listeners[l] = struct{}{}
	return nil
}

// start runs nc on a goroutine of its own, unless there are too many.
func (s *Server) start(nc net.Conn) {
	s.mu.Lock()
	if s.draining.Load() || len(s.mu.conns) >= s.options.ConnectionsMax {
		s.mu.refused++
		s.mu.Unlock()
		_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = nc.Write([]byte("-ERR max number of clients reached\r\n"))
		_ = nc.Close()
		return
	}
	c := newConn(s, nc, s.nextID.Add(1))
	s.mu.conns[c] = struct{}{}
	s.mu.accepted++
	s.running.Add(1)
	s.mu.Unlock()
	go s.own(c)
}

// own serves c on the calling goroutine, until the loop takes it over or it ends.
func (s *Server) own(c *conn) {
	defer s.running.Done()
	for c.serve() {
		if s.loop != nil && s.loop.adopt(c) {
			return
		}
	}
	c.finish()
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.conns, c)
}

// Shutdown stops accepting, lets every connection finish the commands that it has read and closes it. Where ctx ends
// first the rest is closed by force, and Shutdown returns ctx's error once all goroutines have ended.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.draining.Store(true)
	for l := range s.mu.listeners {
		_ = l.Close()
	}
	for c := range s.mu.conns {
		c.interrupt()
	}
	if s.loop != nil {
		s.loop.interrupt()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		s.cancel()
		return nil
	case <-ctx.Done():
	}
	s.cancel()
	s.mu.Lock()
	for c := range s.mu.conns {
		c.abort()
	}
	s.mu.Unlock()
	<-done
	return fmt.Errorf("cannot drain RESP connections in time: %w", ctx.Err())
}

// Stats returns what the server has done so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Connections: len(s.mu.conns),
		Accepted:    s.mu.accepted,
		Refused:     s.mu.refused,
		Commands:    s.commandN.Load(),
		Errors:      s.errorN.Load(),
		Slow:        s.slow.Load(),
		BufferBytes: s.budget.bytes.Load(),
	}
}

// connections calls f for every open connection, in no order.
func (s *Server) connections(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.mu.conns {
		f(c)
	}
}
