package eventlog

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirstream/weir/internal/event"
)

// Overload.RetryAfter lies between these.
const (
	RetryAfterMin = 50 * time.Millisecond
	RetryAfterMax = 5 * time.Second
)

// call is one Append: a part for each partition that it has events for.
type call struct {
	parts   []part // by partition; batch is nil where there is nothing
	pending atomic.Int32
	failed  atomic.Pointer[error] // the first
	done    chan struct{}         // holds one
}

// part is what a call wants of one partition.
type part struct {
	call  *call
	batch *event.Batch
	ack   Ack
}

var callPool = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

func newCall(l *Log, batches []event.Batch, ack Ack) *call {
	c := callPool.Get().(*call)
	if cap(c.parts) < len(l.partitions) {
		c.parts = make([]part, len(l.partitions))
	}
	c.parts = c.parts[:len(l.partitions)]
	pending := int32(0)
	for i := range batches {
		if len(batches[i].Items) > 0 {
			c.parts[i] = part{call: c, batch: &batches[i], ack: ack}
			pending++
		}
	}
	c.pending.Store(pending)
	return c
}

func putCall(c *call) {
	clear(c.parts)
	c.failed.Store(nil)
	callPool.Put(c)
}

func (c *call) err() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// answer ends the part. The last one of its call wakes the caller, who owns the batches again.
func (p *part) answer(err error) {
	c := p.call
	if err != nil {
		c.failed.CompareAndSwap(nil, &err)
	}
	if c.pending.Add(-1) == 0 {
		c.done <- struct{}{}
	}
}

// queue holds the parts that wait for an appender.
type queue struct {
	bytes    atomic.Int64 // of records, from admission to the end of their commit
	bytesMax int64
	admitted atomic.Int64  // parts, since open
	rate     atomic.Int64  // bytes per second that were taken lately; 0 unknown
	wake     chan struct{} // holds one

	mu struct {
		sync.Mutex
		parts  []*part
		closed bool
	}
}

// admit reserves n bytes of the queue, or refuses. An append that is larger than the whole queue passes when the queue
// is empty, or it would never.
func (p *Partition) admit(n int64) error {
	if n == 0 {
		return nil
	}
	if failure := p.failure.Load(); failure != nil {
		return *failure
	}
	queued := p.queue.bytes.Add(n)
	if queued <= p.queue.bytesMax || queued == n {
		return nil
	}
	p.queue.bytes.Add(-n)
	p.count.overloads.Add(1)
	return &Overload{Partition: p.index, RetryAfter: p.queue.retryAfter()}
}

// retryAfter guesses when half of the queue will have drained.
func (q *queue) retryAfter() time.Duration {
	rate := q.rate.Load()
	if rate <= 0 {
		return RetryAfterMax
	}
	wait := time.Duration(float64(q.bytes.Load()) / 2 / float64(rate) * float64(time.Second))
	return min(max(wait, RetryAfterMin), RetryAfterMax)
}

// enqueue hands an admitted part to the appender.
func (p *Partition) enqueue(part *part) {
	p.queue.mu.Lock()
	closed := p.queue.mu.closed
	if !closed {
		p.queue.mu.parts = append(p.queue.mu.parts, part)
		p.queue.admitted.Add(1)
	}
	p.queue.mu.Unlock()
	if closed {
		p.queue.bytes.Add(-int64(len(part.batch.Records)))
		part.answer(ErrClosed)
		return
	}
	select {
	case p.queue.wake <- struct{}{}:
	default:
	}
}

// take moves what is queued behind dst.
func (q *queue) take(dst []*part) (parts []*part, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	dst = append(dst, q.mu.parts...)
	clear(q.mu.parts)
	q.mu.parts = q.mu.parts[:0]
	return dst, q.mu.closed
}

// close lets the appender end when it has taken what is queued.
func (q *queue) close() {
	q.mu.Lock()
	q.mu.closed = true
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
