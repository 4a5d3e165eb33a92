package live

import (
	"context"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"kith/gateway/exchange"
	"kith/storage/sleep"
)

// subprotocol is the one that the gateway speaks:
// https://github.com/enisdenny/graphql-ws/blob/master/PROTOCOL.md
const subprotocol = "graphql-transport-ws"

// WebSocket serves a WebSocket to its end.
func (s *Server) WebSocket(x *exchange.Exchange, r *http.Request) *exchange.Refusal {
	if sizeOf(r) > maxUpgrade {
		return exchange.Refuse(http.StatusRequestHeaderFieldsTooLarge, "the headers of a WebSocket have at most %d bytes", maxUpgrade)
	}
	slot, full := s.Limiter.Enter(exchange.WebSocket, s.Party(r.Context()))
	if full != nil {
		return full
	}
	defer slot.Leave()
	s.Limiter.Pause(r.Context()) // a client that comes again and again has mostly been refused
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	// Frames of control count as messages. Once the connection has ended, another goroutine reads the last ones.
	counted := func(wait context.Context) bool { return ctx.Err() == nil && slot.Receive(wait) == nil }
	conn, err := websocket.Accept(x, r, &websocket.AcceptOptions{
		Subprotocols:       []string{subprotocol},
		InsecureSkipVerify: true, // this is about the origin, which has been checked
		OnPingReceived:     func(wait context.Context, _ []byte) (answer bool) { return counted(wait) },
		OnPongReceived:     func(wait context.Context, _ []byte) { counted(wait) },
	})
	if err != nil {
		x.Outcome = exchange.Refused // and it has been answered
		return nil
	}
	conn.SetReadLimit(s.MaxMessage)
	s.Metrics.Connected(x, exchange.WebSocket)
	(&socket{
		Server:  s,
		conn:    conn,
		slot:    slot,
		headers: r.Header,
		ctx:     ctx,
		end:     cancel,
		active:  make(map[string]*operation),
		slots:   make(chan struct{}, s.MaxOperations),
	}).serve()
	s.Metrics.Disconnected(x, endingOf(ctx).label)
	return nil
}

// sizeOf is how many bytes a request's address and headers have.
func sizeOf(r *http.Request) int {
	n := len(r.RequestURI)
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value)
		}
	}
	return n
}

// serve is the life of the connection.
func (s *socket) serve() {
	s.background.Go(s.close)
	if s.conn.Subprotocol() != subprotocol {
		s.end(errNoProtocol)
	} else {
		s.background.Go(s.ping)
		s.background.Go(s.stopWithGateway)
		initialised := time.AfterFunc(s.InitTimeout, func() { s.end(errNoInit) })
		s.read(initialised)
	}
	s.background.Wait()
}

// close closes the connection once it has ended. It sends a close code if there is one, which takes some seconds if the
// other end does not answer.
func (s *socket) close() {
	<-s.ctx.Done()
	if e := endingOf(s.ctx); e.code != 0 {
		_ = s.conn.Close(websocket.StatusCode(e.code), e.reason)
	}
	_ = s.conn.CloseNow()
}

// ping asks for a sign of life at intervals. A pong is read between messages only: while one arrives or is worked on, which have
// bounds of their own, none is missed.
func (s *socket) ping() {
	for sleep.For(s.ctx, s.PingInterval) == nil {
		// Not below the connection's context: the library cuts a connection whose context ends, but
		// the connection may have to be closed properly.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.PingInterval)
		before := s.waits.Load()
		err := s.conn.Ping(ctx)
		cancel()
		if err != nil && before%2 == 1 && before == s.waits.Load() {
			s.end(errNoPong)
			return
		}
	}
}

// stopWithGateway ends the connection when the gateway stops, as soon as its
// queries and mutations are answered.
func (s *socket) stopWithGateway() {
	select {
	case <-s.Limiter.Closing:
	case <-s.ctx.Done():
		return
	}
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.requests.Wait()
	s.end(errStopped)
}
