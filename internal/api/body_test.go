package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func contextWithLocal(addr net.Addr) context.Context {
	return context.WithValue(context.Background(), http.LocalAddrContextKey, addr)
}

// purse admits bodies up to its size and remembers the most that it had given out.
type purse struct {
	Backend
	size, out, most int64
}

func (p *purse) AdmitBody(bytes int64) bool {
	if p.out+bytes > p.size {
		return false
	}
	p.out += bytes
	p.most = max(p.most, p.out)
	return true
}

func (p *purse) ReleaseBody(bytes int64) { p.out -= bytes }

func TestReadBody(t *testing.T) {
	const bound = 200 << 10
	text := func(n int) []byte { return bytes.Repeat([]byte("event "), n/6+1)[:n] }
	for _, c := range []struct {
		name     string
		sent     []byte
		encoding string
		length   int64 // -1: chunked
		purse    int64
		want     string // the error's code
		body     []byte
	}{
		{"empty", nil, "", 0, bound, "", nil},
		{"small", text(100), "", 100, bound, "", text(100)},
		{"as long as allowed", text(bound), "", bound, 1 << 20, "", text(bound)},
		{"one too long", text(bound + 1), "", bound + 1, 1 << 20, codeBodyTooLarge, nil},
		{"chunked", text(150 << 10), "", -1, 1 << 20, "", text(150 << 10)},
		{"chunked, as long as allowed", text(bound), "", -1, 1 << 20, "", text(bound)},
		{"chunked, one too long", text(bound + 1), "", -1, 1 << 20, codeBodyTooLarge, nil},
		{"gzip", zip(t, text(100<<10)), "gzip", -1, 1 << 20, "", text(100 << 10)},
		{"gzip of known length", zip(t, text(100<<10)), "GZIP", 0, 1 << 20, "", text(100 << 10)},
		{"gzip that expands too far", zip(t, text(bound+1)), "gzip", 0, 1 << 20, codeBodyTooLarge, nil},
		{"gzip that is none", text(100), "gzip", 0, bound, codeBadEncoding, nil},
		{"gzip cut short", zip(t, text(1000))[:30], "gzip", 0, bound, codeBadEncoding, nil},
		{"zstd", zst(t, text(100<<10)), "zstd", 0, 1 << 20, "", text(100 << 10)},
		{"zstd that expands too far", zst(t, text(bound+1)), "zstd", 0, 1 << 20, codeBodyTooLarge, nil},
		{"zstd that is none", text(100), "zstd", 0, bound, codeBadEncoding, nil},
		{"brotli", text(100), "br", 0, bound, codeUnsupportedCode, nil},
		{"no memory left", text(100), "", 100, 50, codeOverloaded, nil},
		{"memory runs out on the way", text(150 << 10), "", -1, 100 << 10, codeOverloaded, nil},
	} {
		p := &purse{size: c.purse}
		b := &bodies{backend: p, bytesMax: bound}
		for range 2 { // the second time in used buffers
			r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(bytes.NewReader(c.sent)))
			r.Header.Set("Content-Encoding", c.encoding)
			if r.ContentLength = c.length; c.length == 0 {
				r.ContentLength = int64(len(c.sent))
			}
			w := httptest.NewRecorder()
			held, f := b.read(&call{w: &reply{ResponseWriter: w, control: http.NewResponseController(w)}, r: r})
			if codeOf(f) != c.want {
				t.Errorf("%s: got %q; want %q", c.name, codeOf(f), c.want)
			}
			if f == nil {
				if !bytes.Equal(held.bytes, c.body) {
					t.Errorf("%s: got %d bytes that differ from the %d sent", c.name, len(held.bytes), len(c.body))
				}
				b.release(held)
			}
			if p.out != 0 || p.most > bound+1 {
				t.Errorf("%s: %d bytes are still admitted, %d were at most; want 0 and at most %d", c.name, p.out, p.most, bound+1)
			}
		}
	}
}

func zip(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zst(t *testing.T, text []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(text, nil)
}

// FuzzExpand sends any bytes as an encoded body: an error or bytes within the bound, never a panic or more.
func FuzzExpand(f *testing.F) {
	f.Add("gzip", []byte("\x1f\x8b"))
	f.Add("zstd", []byte("\x28\xb5\x2f\xfd\x00\x58"))
	f.Add("", []byte("plain"))
	f.Fuzz(func(t *testing.T, encoding string, sent []byte) {
		if strings.ContainsAny(encoding, "\r\n") {
			return
		}
		p := &purse{size: 1 << 20}
		b := &bodies{backend: p, bytesMax: 64 << 10}
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(sent))
		r.Header.Set("Content-Encoding", encoding)
		w := httptest.NewRecorder()
		held, fail := b.read(&call{w: &reply{ResponseWriter: w, control: http.NewResponseController(w)}, r: r})
		if fail == nil {
			if len(held.bytes) > 64<<10 {
				t.Fatalf("%d bytes came out", len(held.bytes))
			}
			b.release(held)
		}
		if p.out != 0 {
			t.Fatalf("%d bytes are still admitted", p.out)
		}
	})
}
