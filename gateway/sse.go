package gateway

import (
	"context"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/klauspost/compress/gzhttp"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// mediaStream is the media type of server-sent events.
const mediaStream = "text/event-stream"

// events is an answer of server-sent events, after
// https://github.com/enisdenny/graphql-sse/blob/master/PROTOCOL.md, in its distinct
// connections mode: one operation a connection, each answer an event `next`, and at the end an
// event `complete`. A stream that ends without `complete` was cut, and the client asks again.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	http2   bool
	cancel  context.CancelCauseFunc

	mu   sync.Mutex // pings come from another goroutine
	slow bool       // a write took too long; net/http cancels the request before it returns the error
}

// stream answers one request by server-sent events. Op is nil where errs say why
// there is none.
func (t transport) stream(r *http.Request, exec graphql.GraphExecutor, op *graphql.OperationContext, errs gqlerror.List, a answer) {
	slot, full := t.streams.connections.enter(t.streams.Party(r.Context()))
	if full != nil {
		t.streams.metrics.connectionRefused(transportEvents, full)
		a.media = mediaJSON
		a.setHeaders()
		full.refuse(a.w, a)
		return
	}
	defer slot.leave()
	a.exchange.stream = &streamed{transport: transportEvents}
	t.streams.metrics.connected(a.exchange)

	ctx, cancel := context.WithCancelCause(r.Context())
	e := &events{w: a.w, control: http.NewResponseController(a.w), timeout: t.streams.WriteTimeout, http2: r.ProtoMajor == 2, cancel: cancel}
	closing(a.w, r) // its deadlines must not apply to a next request
	e.open()
	defer t.streams.endWithToken(ctx, cancel)()
	working := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		t.streams.watch(ctx, e, working, op != nil && errs == nil && op.Operation.Operation == ast.Subscription)
	})

	counted, streams := a.exchange.stream.counting(e), t.streams.within(a.exchange.patience)
	if errs != nil {
		a.exchange.outcome = outcomeRefused
		streams.refuse(ctx, exec, op, errs, counted)
	} else {
		a.exchange.outcome = streams.run(ctx, exec, op, slot, counted)
	}
	if ctx.Err() == nil {
		_ = e.write([]byte("event: complete\ndata:\n\n"))
	}
	close(working)
	watching.Wait()
	cancel(errDone)
	a.exchange.stream.ended = endingOf(ctx).label
	if e.slow {
		a.exchange.stream.ended = errSlow.label
	}
	t.streams.metrics.disconnected(a.exchange)
}

// watch sends pings until the work is done, and ends a subscription when the gateway stops. Other
// operations soon end by themselves.
func (s *streams) watch(ctx context.Context, e *events, working chan struct{}, live bool) {
	ping := time.NewTicker(s.PingInterval)
	defer ping.Stop()
	closing := s.connections.closing
	if !live {
		closing = nil
	}
	for {
		select {
		case <-ping.C:
			_ = e.write([]byte(":\n\n"))
		case <-closing:
			e.cancel(errStopped)
			return
		case <-working:
			return
		case <-ctx.Done():
			return
		}
	}
}

// open sends the headers. The server's deadline for the answer no longer applies: each write has
// its own.
func (e *events) open() {
	h := e.w.Header()
	h.Set("Content-Type", mediaStream)
	h.Set("X-Accel-Buffering", "no")           // proxies that collect answers would never send this one
	h.Set(gzhttp.HeaderNoCompression, "plain") // each event has to be sent at once; gzhttp removes this header
	e.w.WriteHeader(http.StatusOK)
	_ = e.write([]byte(":\n\n"))
}

func (e *events) next(response *graphql.Response) error {
	return e.write(appendResponse([]byte("event: next\ndata: "), response, "\n\n"))
}

// fail sends errors as an answer: they have no event of their own.
func (e *events) fail(response *graphql.Response) error { return e.next(response) }

// write sends a whole text, or ends the connection.
func (e *events) write(text []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	tookTooLong := e.limit()
	_, err := e.w.Write(text)
	if err == nil {
		err = e.control.Flush()
	}
	if tookTooLong() { // the error of a flush does not get through gzhttp
		e.slow, err = true, os.ErrDeadlineExceeded
	}
	if err != nil {
		e.cancel(errLeft)
	}
	return err
}

// limit bounds the time that a write takes, from now until tookTooLong is called.
func (e *events) limit() (tookTooLong func() bool) {
	if !e.http2 {
		deadline := time.Now().Add(e.timeout)
		_ = e.control.SetWriteDeadline(deadline)
		return func() bool { return !time.Now().Before(deadline) }
	}
	// Over HTTP/2, net/http resets a stream whose deadline is over, even if nothing is being written, and takes a deadline back
	// some time after it was told to. So the stream gets a deadline when it is over.
	reset := make(chan struct{})
	timer := time.AfterFunc(e.timeout, func() {
		defer close(reset)
		_ = e.control.SetWriteDeadline(time.Unix(0, 0))
	})
	return func() bool {
		if timer.Stop() {
			return false
		}
		<-reset
		return true
	}
}
