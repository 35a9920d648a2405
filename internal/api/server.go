package api

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"
)

const (
	headerTimeout  = 10 * time.Second // from the first byte of a request to the end of its header
	idleTimeout    = 2 * time.Minute  // a kept connection without a request
	headerBytesMax = 64 << 10         // also bounds the query, and with it the key parts and `next`
	// requestTimeout is how long a request's bytes may take where its endpoint does not say otherwise: receiving events
	// extends it as the body progresses, following events lifts it.
	requestTimeout = time.Minute
	refuseTimeout  = time.Second // to tell a connection too many that it is one
)

// NewServer returns a server for handler with the time-outs that slow and silent clients run into. Replies have no time-out
// of their own: the endpoints that stream set a deadline for every write.
func NewServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // clients' mistakes, mostly
	}
}

// LimitListener returns l with at most connectionsMax connections open. One more is answered 429 and closed at once,
// instead of waiting unseen in the kernel's queue; refused, if not nil, is told.
func LimitListener(l net.Listener, connectionsMax int, refused func()) net.Listener {
	return &limitListener{Listener: l, slots: make(chan struct{}, connectionsMax), refused: refused, reply: tooManyConnections()}
}

// tooManyConnections is the reply to a connection too many, written before its request is read.
func tooManyConnections() []byte {
	f := failure{code: codeConnections, message: "the node has as many connections as it takes",
		hint: "use one connection for many requests, or raise limits.connections"}
	head := "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
	return append([]byte(head), f.appendJSON(nil)...)
}

type limitListener struct {
	net.Listener
	slots   chan struct{}
	refused func()
	reply   []byte
}

func (l *limitListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &limitedConn{Conn: conn, release: func() { <-l.slots }}, nil
		default:
			if l.refused != nil {
				l.refused()
			}
			l.refuse(conn)
		}
	}
}

// refuse answers on conn, as far as its send buffer takes that, and closes it.
func (l *limitListener) refuse(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(refuseTimeout))
	_, _ = conn.Write(l.reply)
	_ = conn.Close()
}

type limitedConn struct {
	net.Conn
	once    sync.Once
	release func()
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.release)
	return err
}

// CloseWrite lets net/http end a reply that it sends before it has read the whole request, so that the client sees the reply
// and not a reset.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NewAdmin returns the handler of listen.admin: Go's profiles, which are for whoever runs the node and nobody else.
func NewAdmin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	guard := newGuard(nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := guard.check(r); f != nil {
			f.write(w)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
