package gateway

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

	mu   sync.Mutex // pings come from another goroutine
	slow bool       // a write took too long; net/http cancels the request before it returns the error
}

// stream answers one request by server-sent events. Errs say why an operation cannot be executed.
func (s *server) stream(a answer, op documents.Operation, errs gqlerror.List) *exchange.Refusal {
	a.permit.End()
	slot, full := s.admission.Enter(exchange.Events, s.admission.Party(a.r.Context()))
	if full != nil {
		return full
	}
	defer slot.Leave()
	a.Stream = &exchange.Stream{Transport: exchange.Events}
	a.Stream.Operations.Add(1)
	s.Metrics.Connected(a.Stream)
	defer func() { s.Metrics.Disconnected(a.Stream) }()

	ctx, cancel := context.WithCancelCause(a.r.Context())
	e := &events{w: a, control: http.NewResponseController(a), timeout: s.Subscriptions.WriteTimeout, cancel: cancel}
	_ = e.control.SetWriteDeadline(time.Time{}) // that of the server: each write has its own time
	a.CloseAfter(a.r)                           // its deadlines must not apply to a next request
	a.SetHeaders(mediaStream)
	a.Header().Set("X-Accel-Buffering", "no") // proxies that collect answers would never send this one
	a.WriteHeader(http.StatusOK)
	_ = e.write([]byte(":\n\n"))
	defer s.Subscriptions.endWithToken(ctx, cancel)()
	working := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx, e, working, errs == nil && op.Operation.Operation == ast.Subscription) })

	if errs != nil {
		a.Outcome = s.refuse(ctx, op, errs, e)
	} else {
		a.Outcome = s.run(ctx, op, slot, e)
	}
	if ctx.Err() == nil {
		_ = e.write([]byte("event: complete\ndata:\n\n"))
	}
	close(working)
	watching.Wait()
	cancel(errDone)
	a.Stream.Ended = endingOf(ctx).label
	if e.slow {
		a.Stream.Ended = errSlow.label
	}
	return nil
}

// watch sends pings until the work is done, and ends a subscription when the gateway stops. Other
// operations soon end by themselves.
func (s *server) watch(ctx context.Context, e *events, working chan struct{}, live bool) {
	ping := time.NewTicker(s.Subscriptions.PingInterval)
	defer ping.Stop()
	closing := s.admission.Closing
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
		_ = e.control.SetWriteDeadline(time.Unix(0, 0))
	})
	_, err := e.w.Write(text)
	if err == nil {
		err = e.control.Flush()
	}
	if !timer.Stop() {
		<-reset
		e.slow, err = true, os.ErrDeadlineExceeded
	}
	if err != nil {
		e.cancel(errLeft)
	}
	return err
}
