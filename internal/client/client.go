// Package client talks to a node over HTTP, as the command line does.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// replyBytesMax bounds a reply that is read whole.
	replyBytesMax = 64 << 20
	// retryWaitMax is the longest that one Retry-After is obeyed before the request is tried again.
	retryWaitMax = 30 * time.Second
	// retriesMax bounds how often one request is refused with 429 or 503 before the refusal is returned.
	retriesMax = 60
)

// Client is one node's address. It may be shared.
type Client struct {
	base string
	http *http.Client
}

// New returns a client of the node at server, such as http://127.0.0.1:7330.
func New(server string) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("cannot use server %q: want http://host:port", server)
	}
	return &Client{base: strings.TrimRight(server, "/"), http: &http.Client{}}, nil
}

// APIError is a refusal in the form that every endpoint uses.
type APIError struct {
	Status     int           `json:"-"`
	RetryAfter time.Duration `json:"-"`

	Code    string `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	Value   string `json:"value,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

func (e *APIError) Error() string {
	s := e.Message
	if e.Value != "" && !strings.Contains(s, e.Value) {
		s += fmt.Sprintf(": got %s %q", e.Field, e.Value)
	}
	s += " (" + e.Code + ")"
	if e.Hint != "" {
		s += "\n  " + e.Hint
	}
	return s
}

// SendResult is what became of the events of one or more requests. Rejections keep the index that they had in their
// own request; Line is set by senders that know it.
type SendResult struct {
	Accepted   int64       `json:"accepted"`
	Duplicates int64       `json:"duplicates"`
	Rejected   []Rejection `json:"rejected"`
}

// Rejection is one refused event.
type Rejection struct {
	Index int    `json:"index"`
	ID    string `json:"id"`
	Code  string `json:"code"`
	Field string `json:"field"`
	Value string `json:"value"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// SendNDJSON posts body, CloudEvents of one line each, to stream. Where the node answers that it is busy, it waits as
// long as told and tries again: the same request sent twice counts once.
func (c *Client) SendNDJSON(ctx context.Context, stream, ack string, body []byte) (SendResult, error) {
	target := c.base + "/v1/streams/" + url.PathEscape(stream) + "/events"
	if ack != "" {
		target += "?ack=" + url.QueryEscape(ack)
	}
	for tries := 0; ; tries++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
		if err != nil {
			return SendResult{}, err
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		var result SendResult
		err = c.do(req, &result)
		var refusal *APIError
		busy := errors.As(err, &refusal) &&
			(refusal.Status == http.StatusTooManyRequests || refusal.Status == http.StatusServiceUnavailable)
		if !busy || tries == retriesMax {
			return result, err
		}
		if err := sleep(ctx, min(refusal.RetryAfter, retryWaitMax)); err != nil {
			return SendResult{}, err
		}
	}
}

// Events opens the stream of events that query selects: NDJSON, to be closed by the caller.
func (c *Client) Events(ctx context.Context, stream string, query url.Values) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		c.base+"/v1/streams/"+url.PathEscape(stream)+"/events?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refusalOf(resp)
	}
	return resp.Body, nil
}

// Count is a counter's answer for one key.
type Count struct {
	Counter       string            `json:"counter"`
	Key           []string          `json:"key"`
	AsOf          int64             `json:"as_of"`
	Windows       map[string]Window `json:"windows"`
	NextExpiry    *int64            `json:"next_expiry"`
	CompleteSince *int64            `json:"complete_since,omitempty"`
	Behind        int64             `json:"behind,omitempty"`
}

// Window is the answer for one window: Count <= truth <= Max, and Max is nil where nothing bounds it.
type Window struct {
	Count int64  `json:"count"`
	Max   *int64 `json:"max"`
	Exact bool   `json:"exact"`
}

// CountRaw returns a counter's answer for key as the node sent it. asOf and window may be empty.
func (c *Client) CountRaw(ctx context.Context, counter string, key []string, asOf, window string) (json.RawMessage, error) {
	query := url.Values{"key": key}
	if asOf != "" {
		query.Set("as_of", asOf)
	}
	if window != "" {
		query.Set("window", window)
	}
	return c.GetJSON(ctx, "/v1/counters/"+url.PathEscape(counter)+"?"+query.Encode())
}

// GetJSON returns the JSON that path answers.
func (c *Client) GetJSON(ctx context.Context, path string) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	var raw json.RawMessage
	if err := c.do(req, &raw); err != nil {
		return nil, err
	}
	return raw, nil
}

func (c *Client) do(req *http.Request, into any) error {
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusalOf(resp)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, replyBytesMax)).Decode(into); err != nil {
		return fmt.Errorf("cannot read the reply of %s: %w", req.URL, err)
	}
	return nil
}

func (c *Client) unreachable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("cannot reach %s (is `weir run` up there, or is --server another?): %w", c.base, err)
}

// refusalOf reads an error reply. A reply that is not in Weir's form (a proxy's, say) keeps its status and its text.
func refusalOf(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	var wrapped struct {
		Error *APIError `json:"error"`
	}
	if json.Unmarshal(text, &wrapped) != nil || wrapped.Error == nil || wrapped.Error.Code == "" {
		wrapped.Error = &APIError{Code: resp.Status, Message: strings.TrimSpace(string(text))}
	}
	wrapped.Error.Status = resp.StatusCode
	wrapped.Error.RetryAfter = time.Second
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		wrapped.Error.RetryAfter = time.Duration(s) * time.Second
	}
	return wrapped.Error
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
