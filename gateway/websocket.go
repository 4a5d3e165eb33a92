package gateway

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"kith/graph/apierr"
)

// subprotocol is the one that the gateway speaks:
// https://github.com/enisdenny/graphql-ws/blob/master/PROTOCOL.md
const subprotocol = "graphql-transport-ws"

// Bounds on the input of a connection. Clients' messages are a query with its
// variables, their ids are UUIDs or numbers, and their payloads a token.
const (
	maxMessageBytes = 128 << 10 // Subscriptions in docs/reference/api.md
	maxOperationID  = 128
	maxInit         = 16 << 10
	maxPing         = 1 << 10  // it is sent back
	maxUpgrade      = 16 << 10 // address and headers of the request, which live as long as the connection
)

// serveSocket serves a WebSocket to its end.
func (s *server) serveSocket(a answer) *refusal {
	r := a.r
	if s.origins.isForeign(r) {
		return &refusal{http.StatusForbidden, apierr.OriginForeign.Error("a page of another origin may not connect")}
	}
	if sizeOf(r) > maxUpgrade {
		return refuse(http.StatusRequestHeaderFieldsTooLarge, "the headers of a WebSocket have at most %d bytes", maxUpgrade)
	}
	slot, full := s.admission.Enter(s.Subscriptions.Party(r.Context()))
	if full != nil {
		return s.admission.full(transportWebSocket, full)
	}
	defer slot.Leave()
	a.pause() // a client that comes again and again has mostly been refused
	conn, err := websocket.Accept(a, r, &websocket.AcceptOptions{
		Subprotocols:       []string{subprotocol},
		InsecureSkipVerify: true, // this is about the origin, which has been checked
	})
	if err != nil {
		a.outcome = outcomeRefused // and it has been answered
		return nil
	}
	conn.SetReadLimit(min(s.MaxBody, maxMessageBytes))
	a.stream = &streamed{transport: transportWebSocket}
	s.Metrics.connected(a.stream)

	ctx, cancel := context.WithCancelCause(r.Context())
	(&socket{
		server:  s,
		conn:    conn,
		slot:    slot,
		headers: r.Header,
		ctx:     ctx,
		end:     cancel,
		active:  make(map[string]*operation),
		slots:   make(chan struct{}, s.Subscriptions.MaxOperations),
	}).serve()
	a.stream.ended = endingOf(ctx).label
	s.Metrics.disconnected(a.stream)
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

// The close codes and reasons of the protocol.
var (
	errNoProtocol  = &ending{"refused", 4406, "Subprotocol not acceptable"}
	errNoInit      = &ending{"refused", 4408, "Connection initialisation timeout"}
	errUninvited   = &ending{"refused", 4401, "Unauthorized"} // an operation before the connection_ack
	errInitTwice   = &ending{"violation", 4429, "Too many initialisation requests"}
	errBadMessage  = &ending{"violation", 4400, "Invalid message"}
	errTooBig      = &ending{label: "violation"} // the library has closed it
	errLateMessage = &ending{"violation", 4400, "Invalid message: it took too long"}
	errLongID      = &ending{"violation", 4400, fmt.Sprintf("Invalid message: an id has at most %d bytes", maxOperationID)}
	errLongInit    = &ending{"violation", 4400, fmt.Sprintf("Invalid message: the payload of connection_init has at most %d bytes", maxInit)}
	errLongPing    = &ending{"violation", 4400, fmt.Sprintf("Invalid message: the payload of a ping has at most %d bytes", maxPing)}
	errIdle        = &ending{"idle", 1000, "nobody is signed in and nothing has been asked for a while"}
	errNoPong      = &ending{label: "unresponsive"}
	errFault       = &ending{"error", 4500, masked}
)

// maxReason is how many bytes a reason may have; a close frame has room for 123.
const maxReason = 120

// serve is the life of the connection.
func (s *socket) serve() {
	s.background.Go(s.close)
	if s.conn.Subprotocol() != subprotocol {
		s.end(errNoProtocol)
	} else {
		s.background.Go(s.ping)
		s.background.Go(s.stopWithGateway)
		initialised := time.AfterFunc(s.Subscriptions.InitTimeout, func() { s.end(errNoInit) })
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

// ping asks for a sign of life at intervals.
func (s *socket) ping() {
	ticker := time.NewTicker(s.Subscriptions.PingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.ctx.Done():
			return
		}
		// Not below the connection's context: the library cuts a connection whose context ends, but
		// the connection may have to be closed properly.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.Subscriptions.PingInterval)
		err := s.conn.Ping(ctx)
		cancel()
		if err != nil {
			s.end(errNoPong)
			return
		}
	}
}

// stopWithGateway ends the connection when the gateway stops, as soon as its
// queries and mutations are answered.
func (s *socket) stopWithGateway() {
	select {
	case <-s.admission.Closing:
	case <-s.ctx.Done():
		return
	}
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.requests.Wait()
	s.end(errStopped)
}
