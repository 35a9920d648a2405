package api

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestGuard(t *testing.T) {
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7330}
	outside := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 7330}
	g := newGuard([]string{"weir.example.com"})
	for _, c := range []struct {
		name, method, host, site, origin string
		local                            net.Addr
		want                             string
	}{
		{"curl", "POST", "127.0.0.1:7330", "", "", loopback, ""},
		{"localhost", "POST", "localhost:7330", "", "", loopback, ""},
		{"IPv6", "GET", "[::1]:7330", "", "", loopback, ""},
		{"under localhost", "GET", "weir.localhost:7330", "", "", loopback, ""},
		{"the machine's name", "GET", "build7:7330", "", "", loopback, ""},
		{"a configured name", "GET", "Weir.Example.com", "", "", loopback, ""},
		{"the node's page", "POST", "127.0.0.1:7330", "same-origin", "http://127.0.0.1:7330", loopback, ""},
		{"another page posts", "POST", "127.0.0.1:7330", "cross-site", "https://evil.example", loopback, codeCrossOrigin},
		{"an old browser posts", "POST", "127.0.0.1:7330", "", "https://evil.example", loopback, codeCrossOrigin},
		{"another page reads", "GET", "127.0.0.1:7330", "cross-site", "", loopback, ""}, // the browser keeps the reply from it
		{"a name made to point here", "GET", "evil.example:7330", "same-origin", "", loopback, codeForeignHost},
		{"with a dot at its end", "GET", "evil.example.:7330", "", "", loopback, codeForeignHost},
		{"a name, from outside", "GET", "weir.example:7330", "", "", outside, ""},
	} {
		r := httptest.NewRequest(c.method, "/v1/info", nil)
		r = r.WithContext(contextWithLocal(c.local))
		r.Host = c.host
		setIf(r.Header, "Sec-Fetch-Site", c.site)
		setIf(r.Header, "Origin", c.origin)
		if got := codeOf(g.check(r)); got != c.want {
			t.Errorf("%s: got %q; want %q", c.name, got, c.want)
		}
	}
}

func setIf(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

func TestLimitListener(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	limited := LimitListener(inner, 1, func() { refused.Add(1) })
	server := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "served") }), slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- server.Serve(limited) }()
	defer func() {
		server.Close()
		<-done
	}()

	first := dial(t, inner.Addr())
	if got := exchange(t, first, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(got, "served") {
		t.Fatalf("the first connection: got %q", got)
	}
	second := dial(t, inner.Addr())
	reply, err := io.ReadAll(second)
	if err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 429 ") || !strings.Contains(string(reply), codeConnections) {
		t.Fatalf("the second connection: got %q, %v; want 429", reply, err)
	}
	if refused.Load() != 1 {
		t.Fatalf("%d connections were refused; want 1", refused.Load())
	}
	first.Close()
	// The slot comes free when the server notices; until then one more is refused, as it may.
	for {
		again := dial(t, inner.Addr())
		if got := exchange(t, again, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); strings.Contains(got, "served") {
			return
		}
	}
}

func dial(t *testing.T, addr net.Addr) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// exchange sends text and returns what the first read brings; "" when the other side is gone.
func exchange(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		return ""
	}
	buffer := make([]byte, 4096)
	n, _ := conn.Read(buffer)
	return string(buffer[:n])
}

func TestAdmin(t *testing.T) {
	admin := NewAdmin()
	for path, want := range map[string]int{"/debug/pprof/": 200, "/debug/pprof/goroutine?debug=1": 200, "/debug/pprof/cmdline": 200, "/": 404, "/v1/info": 404} {
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: got %d; want %d", path, w.Code, want)
		}
	}
}
