package api

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/weirstream/weir/internal/cloudevents"
	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/eventlog"
)

const (
	// trailerNext names the trailer that says where a reply ended; its value is what the parameter next takes.
	trailerNext = "Weir-Next"
	// chunkBytes is how many bytes of a streamed reply are gathered before they are written.
	chunkBytes = 64 << 10
	// bufferBytesPooled bounds the buffers that are kept: one large event must not cost its size for ever.
	bufferBytesPooled = 1 << 20
	// turnsMax is how many replies read at the same time, and so how many frames and chunks are held for clients that are slow
	// to take them: 64 of at most about 384 KiB. Others wait for their turn; those that follow and have nothing to read
	// hold nothing.
	turnsMax = 64
	// framesPerTurn ends a turn, so that a long reply to a slow client does not keep short ones waiting until its end.
	framesPerTurn = 16
)

// turns is the right to read, given to turnsMax replies at a time in the order of their asking.
type turns chan struct{}

// take waits for a turn. false: ctx ended before.
func (t turns) take(ctx context.Context) bool {
	select {
	case t <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t turns) give() { <-t }

// getEvents streams the selected events and, where that was asked for, goes on with those that come.
func (h *Handler) getEvents(c *call) *failure {
	stream, f := h.stream(c)
	if f != nil {
		return f
	}
	s, f := parseSelection(c.r.URL.RawQuery, stream.Log)
	if f != nil {
		return f
	}
	setSelectionHeaders(c.w.Header())
	if c.r.Method == http.MethodHead {
		return nil
	}
	c.w.liftReadDeadline()
	ctx, cancel := h.untilDrain(c.r.Context())
	defer cancel()
	out := &output{w: c.w, selection: s, log: stream.Log, turns: h.turns, buffers: &h.buffers, left: s.limit}
	return h.ended(c, stream, s, out.run(ctx))
}

// ended closes the reply with its trailer, or makes plain that it is not whole.
func (h *Handler) ended(c *call, stream *Stream, s *selection, err error) *failure {
	if err != nil {
		if c.r.Context().Err() == nil && !errors.Is(err, errGone) {
			h.logger.Error("reading events failed", slog.String("stream", stream.Name), slog.Any("err", err))
			if c.w.status == 0 {
				c.w.Header().Del("Trailer")
				return internalError()
			}
		}
		c.w.abort(statusGone)
		return nil
	}
	if c.w.status == 0 {
		c.w.WriteHeader(http.StatusOK)
	}
	c.w.Header().Set(trailerNext, s.resume())
	return nil
}

// untilDrain returns a context that ends with ctx, and when the node drains.
func (h *Handler) untilDrain(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if h.drain == nil {
		return ctx, cancel
	}
	go func() {
		select {
		case <-h.drain:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// errGone says that the client took no more.
var errGone = errors.New("client is gone")

// output is one reply that streams events.
type output struct {
	w         *reply
	selection *selection
	log       *eventlog.Log
	turns     turns
	buffers   *sync.Pool // of *[]byte
	buffer    []byte     // events that are not written yet; only during a turn
	left      int64      // events until the limit
	event     event.Event
}

// run writes what is stored and, when following, what comes, until the limit, the end of ctx or an error. That ctx
// ended is no error.
func (o *output) run(ctx context.Context) error {
	if err := o.stored(ctx); err != nil || !o.selection.follow {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	watch := newWatch(ctx, o.log, o.selection)
	defer watch.stop(cancel)
	for o.left > 0 {
		if err := o.flush(); err != nil {
			return err
		}
		if !watch.wait(ctx, o.selection) {
			return nil
		}
		if err := o.stored(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stored writes what each partition holds durably at this moment. The end is read once, or a stream that is written
// to as fast as it is read would never end.
func (o *output) stored(ctx context.Context) error {
	for _, i := range o.selection.partitions {
		end := o.log.Partition(i).Frontiers().Durable
		for o.left > 0 && ctx.Err() == nil && o.selection.next[i] < end {
			err := o.turn(ctx, i, end)
			if errors.Is(err, eventlog.ErrTrimmed) {
				first := o.log.Partition(i).Frontiers().First
				o.selection.next[i] = max(first, o.selection.next[i]+1)
				continue
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// turn waits for a turn and writes what it allows of the events of partition i that lie below end.
func (o *output) turn(ctx context.Context, i int, end int64) error {
	if !o.turns.take(ctx) {
		return nil
	}
	defer o.turns.give()
	buffer, ok := o.buffers.Get().(*[]byte)
	if !ok {
		buffer = new([]byte)
	}
	o.buffer = (*buffer)[:0]
	err := o.scan(ctx, i, end)
	if err == nil {
		err = o.write()
	}
	if *buffer = o.buffer; cap(*buffer) <= bufferBytesPooled {
		o.buffers.Put(buffer)
	}
	o.buffer = nil
	return err
}

// scan writes the events of partition i that lie below end, as many as a turn allows.
func (o *output) scan(ctx context.Context, i int, end int64) error {
	s := o.selection
	var options eventlog.ScanOptions
	if s.timed() {
		options.TimeFrom, options.TimeTo = s.from, s.to
	}
	reader := o.log.Partition(i).NewScan(s.next[i], options)
	defer reader.Close()
	for frames := 0; frames < framesPerTurn && ctx.Err() == nil; frames++ {
		frame, ok, err := reader.Next(end)
		if err != nil {
			return err
		}
		if !ok {
			s.next[i] = max(s.next[i], end) // whatever is left below end lies outside the time range
			return nil
		}
		if err := o.frame(i, frame); err != nil || o.left == 0 {
			return err
		}
	}
	return nil
}

// frame writes the events of one frame.
func (o *output) frame(i int, frame eventlog.Frame) error {
	s := o.selection
	records := frame.Records
	for offset := frame.First; len(records) > 0; offset++ {
		tail, err := o.event.Decode(records)
		if err != nil {
			return err
		}
		records = tail
		if offset < s.next[i] {
			continue
		}
		s.next[i] = offset + 1
		if !s.wants(&o.event) {
			continue
		}
		o.buffer = cloudevents.AppendJSON(o.buffer, &o.event, i, offset)
		o.buffer = append(o.buffer, '\n')
		if o.left--; o.left == 0 {
			return nil
		}
		if len(o.buffer) >= chunkBytes {
			if err := o.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *selection) wants(e *event.Event) bool {
	return e.Time >= s.from && (e.Time < s.to || s.to == math.MaxInt64) && (s.segment == nil || bytes.Equal(e.Segment, s.segment))
}

func (o *output) write() error {
	if len(o.buffer) == 0 {
		return nil
	}
	_, err := o.w.Write(o.buffer)
	o.buffer = o.buffer[:0]
	if err != nil {
		return errGone
	}
	return nil
}

// flush sends what there is, and the header where nothing was sent yet.
func (o *output) flush() error {
	if err := o.write(); err != nil {
		return err
	}
	if o.w.flush() != nil {
		return errGone
	}
	return nil
}

// watch waits for any of several partitions. Each has a goroutine that waits for it to become longer than what was
// read, wakes the reader, and waits to be told that the reader went on.
type watch struct {
	wake  chan struct{}
	next  []atomic.Int64  // by partition: read up to here
	moved []chan struct{} // by partition: next has changed
	ended atomic.Bool     // the log takes no more events
	group sync.WaitGroup
}

func newWatch(ctx context.Context, log *eventlog.Log, s *selection) *watch {
	w := &watch{wake: make(chan struct{}, 1), next: make([]atomic.Int64, len(s.next)), moved: make([]chan struct{}, len(s.next))}
	for _, i := range s.partitions {
		w.moved[i] = make(chan struct{}, 1)
		w.next[i].Store(s.next[i])
		w.group.Go(func() {
			for log.Partition(i).WaitDurable(ctx, w.next[i].Load()) == nil {
				signal(w.wake)
				select {
				case <-w.moved[i]:
				case <-ctx.Done():
					return
				}
			}
			w.ended.Store(true)
			signal(w.wake)
		})
	}
	return w
}

// wait returns when some partition holds more than s has read: false when there is nothing more to come.
func (w *watch) wait(ctx context.Context, s *selection) bool {
	for _, i := range s.partitions {
		if w.next[i].Swap(s.next[i]) != s.next[i] {
			signal(w.moved[i])
		}
	}
	select {
	case <-w.wake:
		return ctx.Err() == nil && !w.ended.Load()
	case <-ctx.Done():
		return false
	}
}

func (w *watch) stop(cancel context.CancelFunc) {
	cancel()
	w.group.Wait()
}

// signal leaves a token in c unless one lies there already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
