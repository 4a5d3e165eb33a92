package live

import (
	"context"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/gateway/documents"
	"kith/gateway/exchange"
)

// events is an answer of server-sent events, after
// https://github.com/enisdenny/graphql-sse/blob/master/PROTOCOL.md, in its distinct
// connections mode: one operation a connection, each answer an event `next`, and at the end an
// event `complete`. A stream that ends without `complete` was cut, and the client asks again.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	cancel  context.CancelCauseFunc

	mu sync.Mutex // pings come from another goroutine
}

// Events answers one request by server-sent events. Errs say why an operation cannot be executed.
func (s *Server) Events(x *exchange.Exchange, r *http.Request, op documents.Operation, errs gqlerror.List) *exchange.Refusal {
	slot, full := s.Limiter.Enter(exchange.Events, s.Party(r.Context()))
	if full != nil {
		return full
	}
	defer slot.Leave()
	s.Metrics.Connected(x, exchange.Events)
	x.Stream.Operations.Add(1)

	ctx, cancel := context.WithCancelCause(r.Context())
	defer func() { s.Metrics.Disconnected(x, endingOf(ctx).label) }()
	e := &events{w: x, control: http.NewResponseController(x), timeout: s.WriteTimeout, cancel: cancel}
	_ = e.control.SetWriteDeadline(time.Time{}) // that of the server: each write has its own time
	x.CloseAfter(r)                             // its deadlines must not apply to a next request
	x.SetHeaders("text/event-stream")
	x.Header().Set("X-Accel-Buffering", "no") // proxies that collect answers would never send this one
	x.WriteHeader(http.StatusOK)
	defer s.endWithToken(ctx, cancel)()
	working := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx, e, working, errs == nil && op.Operation.Operation == ast.Subscription) })

	if errs != nil {
		x.Outcome = s.refuse(e, s.Reject(ctx, op, errs))
	} else {
		x.Outcome = s.run(ctx, op, slot, e)
	}
	if ctx.Err() == nil {
		_ = e.write([]byte("event: complete\ndata:\n\n"))
	}
	close(working)
	watching.Wait()
	cancel(errDone)
	return nil
}

// watch sends pings until the work is done, and ends a subscription when the gateway stops. Other
// operations soon end by themselves.
func (s *Server) watch(ctx context.Context, e *events, working chan struct{}, live bool) {
	ping := time.NewTicker(s.PingInterval)
	defer ping.Stop()
	closing := s.Limiter.Closing
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

// begun sends the headers. A client that asks for the present state then misses nothing: the subscription tells the rest.
func (e *events) begun() { _ = e.write([]byte(":\n\n")) }

func (e *events) next(response *graphql.Response) error {
	return e.write(exchange.AppendResponse([]byte("event: next\ndata: "), response, "\n\n"))
}

// fail sends errors as an answer: they have no event of their own.
func (e *events) fail(response *graphql.Response) error { return e.next(response) }

// write sends a whole text, or ends the connection.
func (e *events) write(text []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	// Over HTTP/2, net/http resets a stream whose deadline is over, even if nothing is being written, and takes a deadline back
	// some time after it was told to. So a deadline is set when it is over.
	reset := make(chan struct{})
	timer := time.AfterFunc(e.timeout, func() {
		defer close(reset)
		e.cancel(errSlow) // before net/http cancels the request
		_ = e.control.SetWriteDeadline(time.Unix(0, 0))
	})
	_, err := e.w.Write(text)
	if err == nil {
		err = e.control.Flush()
	}
	if !timer.Stop() {
		<-reset
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		e.cancel(errLeft)
	}
	return err
}
