package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	bodyBytesFirst  = 64 << 10 // a buffer's size where the request does not say how long its body is
	bodyBytesPooled = 4 << 20  // larger buffers are not kept for the next request
	// bodyBytesPerSecondMin is the pace below which a body is given up, beyond the first bodyPatience.
	bodyBytesPerSecondMin = 4 << 10
	bodyPatience          = 30 * time.Second
	zstdWindowBytesMax    = 8 << 20 // what a zstd body may ask of the decoder's memory; encoders at usual levels ask for less
)

// bodies reads request bodies into buffers that are used again, under the node's bound for bytes in flight.
type bodies struct {
	backend  Backend
	bytesMax int64
	buffers  sync.Pool // *body
	gzips    sync.Pool // *gzip.Reader
	zstds    sync.Pool // *zstd.Decoder
}

// body is one request's bytes. release must be called once nothing refers to them.
type body struct {
	bytes    []byte
	admitted int64 // how many bytes of it may be used
}

func (b *bodies) release(held *body) {
	b.backend.ReleaseBody(held.admitted)
	held.admitted = 0
	if cap(held.bytes) <= bodyBytesPooled {
		b.buffers.Put(held)
	}
}

// read returns the whole body of c, expanded. The bound on its length holds for what is sent and for what that expands to.
func (b *bodies) read(c *call) (*body, *failure) {
	if c.r.ContentLength > b.bytesMax {
		return nil, b.tooLarge()
	}
	held, ok := b.buffers.Get().(*body)
	if !ok {
		held = &body{}
	}
	held.bytes = held.bytes[:0]
	f := b.fill(held, c)
	if f != nil {
		b.release(held)
		return nil, f
	}
	return held, nil
}

func (b *bodies) fill(held *body, c *call) *failure {
	paced := &pacedReader{r: http.MaxBytesReader(c.w, c.r.Body, b.bytesMax), control: c.w.control, start: time.Now()}
	defer paced.done()
	src, done, f := b.expand(paced, c.r.Header.Get("Content-Encoding"))
	if f != nil {
		return f
	}
	defer done()
	encoded := src != io.Reader(paced)
	want := c.r.ContentLength + 1 // one more than the body: its end is read without growing again
	if c.r.ContentLength < 0 || encoded {
		want = bodyBytesFirst
	}
	for {
		if f := b.grow(held, want); f != nil {
			return f
		}
		n, err := src.Read(held.bytes[len(held.bytes):held.admitted])
		held.bytes = held.bytes[:len(held.bytes)+n]
		switch {
		case int64(len(held.bytes)) > b.bytesMax:
			return b.tooLarge()
		case err == io.EOF:
			return nil
		case err != nil:
			return b.readFailure(c.r.Context(), err, encoded)
		}
		if int64(len(held.bytes)) == held.admitted {
			want = min(2*held.admitted, b.bytesMax+1)
		}
	}
}

// grow makes room for want bytes, which are admitted before they are allocated.
func (b *bodies) grow(held *body, want int64) *failure {
	if missing := want - held.admitted; missing > 0 {
		if !b.backend.AdmitBody(missing) {
			return &failure{status: http.StatusTooManyRequests, code: codeOverloaded, retryAfter: time.Second,
				message: "the bodies of other requests fill the memory set aside for them", hint: "send again after Retry-After, in fewer requests at a time"}
		}
		held.admitted = want
	}
	if held.admitted > int64(cap(held.bytes)) {
		grown := make([]byte, len(held.bytes), held.admitted)
		copy(grown, held.bytes)
		held.bytes = grown
	}
	return nil
}

// expand returns the reader that undoes the content encoding, and what gives it back.
func (b *bodies) expand(src io.Reader, encoding string) (io.Reader, func(), *failure) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return src, func() {}, nil
	case "gzip", "x-gzip":
		zr, ok := b.gzips.Get().(*gzip.Reader)
		if !ok {
			zr = new(gzip.Reader)
		}
		if err := zr.Reset(src); err != nil {
			b.gzips.Put(zr)
			return nil, nil, b.readFailure(context.Background(), err, true)
		}
		return zr, func() { b.gzips.Put(zr) }, nil
	case "zstd":
		zr, ok := b.zstds.Get().(*zstd.Decoder)
		if !ok {
			// Concurrency 1: a decoder without goroutines, which the pool may drop without closing it.
			made, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(zstdWindowBytesMax))
			if err != nil {
				return nil, nil, internalError()
			}
			zr = made
		}
		if err := zr.Reset(src); err != nil {
			return nil, nil, b.readFailure(context.Background(), err, true)
		}
		return zr, func() {
			if zr.Reset(bytes.NewReader(nil)) == nil { // lets go of the request
				b.zstds.Put(zr)
			}
		}, nil
	}
	return nil, nil, &failure{status: http.StatusUnsupportedMediaType, code: codeUnsupportedCode, field: "Content-Encoding", value: encoding,
		message: "cannot read a body in this content encoding", hint: "send it as it is, or as gzip or zstd"}
}

func (b *bodies) tooLarge() *failure {
	return &failure{status: http.StatusRequestEntityTooLarge, code: codeBodyTooLarge, field: "limits.body",
		value:   fmt.Sprint(b.bytesMax),
		message: fmt.Sprintf("the body is larger than the %d bytes that a request may have", b.bytesMax),
		hint:    "send the events in several requests, or raise limits.body"}
}

// readFailure tells apart why a body cannot be read.
func (b *bodies) readFailure(ctx context.Context, err error, encoded bool) *failure {
	var tooLarge *http.MaxBytesError
	var timeout net.Error
	switch {
	case errors.As(err, &tooLarge):
		return b.tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &failure{status: http.StatusRequestTimeout, code: codeSlowBody, message: "the body came too slowly",
			hint: fmt.Sprintf("send at least %d bytes a second", bodyBytesPerSecondMin)}
	case encoded && ctx.Err() == nil:
		return &failure{status: http.StatusBadRequest, code: codeBadEncoding, field: "Content-Encoding",
			message: "the body is not what its content encoding says: " + err.Error()}
	}
	return &failure{status: http.StatusBadRequest, code: codeBodyIncomplete, message: "cannot read the body to its end: " + err.Error()}
}

// pacedReader gives a body time as long as it moves: patience at first, and then as long as its bytes take at the lowest
// pace. One that trickles is cut off, one that is only long is not.
type pacedReader struct {
	r       io.Reader
	control *http.ResponseController
	start   time.Time
	read    int64
}

func (p *pacedReader) Read(into []byte) (int, error) {
	allowed := bodyPatience + time.Duration(p.read/bodyBytesPerSecondMin)*time.Second
	_ = p.control.SetReadDeadline(p.start.Add(allowed)) // not supported by a test's recorder: no deadline then
	n, err := p.r.Read(into)
	p.read += int64(n)
	return n, err
}

// done lifts the deadline: what the request waits for from here on is the node's doing.
func (p *pacedReader) done() { _ = p.control.SetReadDeadline(time.Time{}) }
