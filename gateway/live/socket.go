package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/coder/websocket"

	"kith/gateway/documents"
	"kith/gateway/exchange"
	"kith/gateway/quota"
	"kith/graph/apierr"
)

// socket is one WebSocket connection. gqlgen has a transport of its own; it waits for slow clients without limit, takes any
// number of operations and the same id twice, sends `complete` after `error`, closes with codes that are not the protocol's,
// drops connections without the reason when a token ends, and makes values of all extensions and variables. The two have
// only the reading of a message's type in common.
type socket struct {
	*Server
	conn    *websocket.Conn
	slot    *quota.Slot
	headers http.Header

	ctx context.Context         // of the connection
	end context.CancelCauseFunc // ends it with an *ending; the first counts

	sending sync.Mutex // a message is sent behind the one before it, and has its time from then on

	tellBegun bool // by pings

	room []func() // give back that of the message that is read, or worked on, if it is long

	waits atomic.Int64 // rises when it begins and ends to wait for a message: it is odd while it waits

	mu         sync.Mutex
	active     map[string]*operation // by the client's id
	stopping   bool                  // no more operations
	idle       *time.Timer           // closes the connection; nil: it may be idle without limit
	slots      chan struct{}         // one for each operation that has not ended, whether the client has completed it or not
	requests   sync.WaitGroup        // queries, mutations, and operations not yet known to be subscriptions
	background sync.WaitGroup        // all that runs beside the reading of messages
}

// operation is an operation that runs on a WebSocket, and the sink of its answers.
type operation struct {
	*socket
	id     string
	cancel context.CancelFunc
	known  func() // called when it has ended, or is known to be a subscription, which runs for long
}

// message is what goes over the connection in both directions.
type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Types of messages.
const (
	typeInit      = "connection_init"
	typeAck       = "connection_ack"
	typePing      = "ping"
	typePong      = "pong"
	typeSubscribe = "subscribe"
	typeNext      = "next"
	typeError     = "error"
	typeComplete  = "complete"
)

// Bounds on the input of a connection. Clients' messages are a query with its
// variables, their ids are UUIDs or numbers, and their payloads a token.
const (
	maxOperationID = 128
	maxInit        = 16 << 10
	maxPing        = 1 << 10  // it is sent back
	maxUpgrade     = 16 << 10 // address and headers of the request, which live as long as the connection
)

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
	errFault       = &ending{"error", 4500, exchange.Masked}
)

// maxReason is how many bytes a reason may have; a close frame has room for 123.
const maxReason = 120

// read takes messages until the connection ends. The timer runs until the
// connection is initialised.
func (s *socket) read(initialised *time.Timer) {
	defer initialised.Stop()
	ctx := s.ctx // of operations; the connection's own until it is initialised
	callOff := func() {}
	defer func() { callOff(); s.leaveRoom() }()
	ready := false
	for {
		kind, text, err := s.message()
		if errors.Is(err, websocket.ErrMessageTooBig) {
			s.end(errTooBig)
		}
		if err != nil || s.slot.Receive(s.ctx) != nil {
			s.end(errLeft)
			return
		}
		m, ok := s.decode(kind, text)
		if !ok {
			s.end(errBadMessage)
			return
		}
		switch {
		case m.Type == typePing && len(m.Payload) > maxPing:
			s.end(errLongPing)
		case m.Type == typePing:
			_ = s.write(message{Type: typePong, Payload: m.Payload})
		case m.Type == typePong:
		case m.Type == typeInit && ready:
			s.end(errInitTwice)
		case m.Type == typeInit:
			if ctx = s.initialise(m.Payload); ctx == nil {
				return
			}
			initialised.Stop()
			ready = true
			callOff = s.endWithToken(ctx, s.end)
			_ = s.write(message{Type: typeAck})
		case m.Type == typeComplete && ready && m.ID != "":
			s.complete(m.ID)
		case m.Type == typeSubscribe && ready:
			s.subscribe(ctx, m)
		case m.Type == typeSubscribe:
			s.end(errUninvited)
		default:
			s.end(errBadMessage)
		}
		if s.ctx.Err() != nil { // as after a write that failed
			return
		}
	}
}

// message takes one message. Frames without a byte do not count against its size, so it has a time as well.
func (s *socket) message() (kind websocket.MessageType, text []byte, err error) {
	s.leaveRoom()
	s.waits.Add(1)
	kind, r, err := s.conn.Reader(context.Background()) // ends when the connection is closed
	s.waits.Add(1)
	if err != nil {
		return kind, nil, err
	}
	late := time.AfterFunc(s.MessageTimeout, func() { s.end(errLateMessage) })
	defer late.Stop()
	text, err = s.take(r)
	return kind, text, err
}

// partOfMessage is how many bytes of a long message are taken at a time: its length is not known before.
const partOfMessage = 16 << 10

// take reads a message to its end. One that is long takes room until the next one is waited for.
func (s *socket) take(r io.Reader) ([]byte, error) {
	var text bytes.Buffer
	_, err := io.CopyN(&text, r, quota.CostlyBytes+1)
	for err == nil {
		release, full := s.slot.HoldArriving(s.ctx, partOfMessage)
		if s.room = append(s.room, release); full != nil {
			return nil, full
		}
		_, err = io.CopyN(&text, r, partOfMessage)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return text.Bytes(), err
}

// leaveRoom gives back the room of the message that has been worked on.
func (s *socket) leaveRoom() {
	for _, release := range s.room {
		release()
	}
	s.room = nil
}

// decode reads a message; false if the text is not a message.
func (s *socket) decode(kind websocket.MessageType, text []byte) (m message, ok bool) {
	taken := s.Limiter.Take(s.ctx, len(text), func() {
		ok = documents.Decode(text, &m) == nil
	})
	return m, taken && ok && kind == websocket.MessageText
}

// initialise returns the context of the connection's operations, or nil if the
// connection is refused.
func (s *socket) initialise(payload json.RawMessage) context.Context {
	if len(payload) > maxInit {
		s.end(errLongInit)
		return nil
	}
	var values map[string]any
	if len(payload) > 0 && json.Unmarshal(payload, &values) != nil {
		s.end(errBadMessage)
		return nil
	}
	s.tellBegun = values["begun"] == "ping"
	ctx, err := s.Init(s.ctx, values)
	if err == nil {
		return s.seat(ctx)
	}
	if known, ok := apierr.Of(err); ok {
		code := 4403
		if known.Retryable { // clients come back with the same token, and need no other
			code = 1013
		}
		s.end(&ending{"refused", code, apierr.Shortened(known.Message, maxReason-len("…"))})
	} else {
		_ = s.Present(s.ctx, err) // into the log
		s.end(errFault)
	}
	return nil
}

// seat counts the connection for its party, once that is known.
func (s *socket) seat(ctx context.Context) context.Context {
	party := s.Party(ctx)
	if full := s.slot.Become(party); full != nil {
		s.end(&ending{"refused", 1013, full.Err.Error()}) // clients come back after a while
		return nil
	}
	if party.Anonymous {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.idle = time.AfterFunc(s.IdleTimeout, s.endIdle)
		context.AfterFunc(s.ctx, func() { s.idle.Stop() })
	}
	return ctx
}

// endIdle ends a connection on which nothing runs.
func (s *socket) endIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.active) == 0 {
		s.end(errIdle)
	}
}

// rest notes that an operation has ended. The caller holds the lock.
func (s *socket) rest() {
	if s.idle != nil && len(s.active) == 0 && s.ctx.Err() == nil {
		s.idle.Reset(s.IdleTimeout)
	}
}

// subscribe starts an operation.
func (s *socket) subscribe(ctx context.Context, m message) {
	if len(m.ID) > maxOperationID {
		s.end(errLongID)
		return
	}
	held := s.slot.Hold(s.ctx, len(m.Payload))
	params, ok := s.params(m.Payload)
	if m.ID == "" || !ok {
		held()
		s.end(errBadMessage)
		return
	}
	o := &operation{socket: s, id: m.ID}
	ctx, o.cancel = context.WithCancel(ctx)
	o.known = sync.OnceFunc(func() { held(); s.requests.Done() })
	s.mu.Lock()
	taken, full, stopping := s.active[o.id] != nil, len(s.active) >= s.MaxOperations, s.stopping
	admitted := !taken && !full && !stopping
	if admitted {
		s.active[o.id] = o
		s.requests.Add(1)
	}
	s.mu.Unlock()
	if admitted && s.start(ctx, o, params) {
		return
	}
	o.cancel()
	switch {
	case admitted: // the connection has ended
		o.known()
		return
	case taken:
		s.end(&ending{"violation", 4409, "Subscriber for " + apierr.Shortened(o.id, maxReason/2) + " already exists"})
	case stopping: // the client will repeat it elsewhere
	case full:
		s.refuse(o, answerOf(apierr.TooManyOperations.Error("at most %d operations may run at once on one connection", s.MaxOperations)))
	}
	held()
}

// start runs an operation; false if the connection has ended. It waits for operations that the client has completed and that
// have not ended yet. Otherwise a client could start and complete any number.
func (s *socket) start(ctx context.Context, o *operation, params *graphql.RawParams) bool {
	select {
	case s.slots <- struct{}{}:
	case <-s.ctx.Done():
		return false
	}
	s.background.Go(func() {
		defer func() { <-s.slots }()
		o.run(ctx, params)
	})
	return true
}

// params reads the parameters of an operation; false if they are not valid.
func (s *socket) params(payload json.RawMessage) (params *graphql.RawParams, ok bool) {
	taken := s.Limiter.Take(s.ctx, len(payload), func() {
		var err error
		params, err = documents.ReadParameters(payload)
		params.Headers = s.headers
		ok = err == nil && !documents.IsNothing(params)
	})
	return params, taken && ok
}

// complete ends an operation because the client has asked for that.
func (s *socket) complete(id string) {
	s.mu.Lock()
	o := s.active[id]
	s.mu.Unlock()
	if o != nil && o.forget() {
		o.cancel()
	}
}

// write sends one message. A client that does not take it in time is dropped.
func (s *socket) write(m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // plain values, and payloads that are JSON
	}
	return s.send(text)
}

func (s *socket) send(text []byte) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	// Not below the connection's context, see ping. The library cuts the connection
	// when this one is done; by then the reason has to be known.
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	defer cancel()
	defer time.AfterFunc(s.WriteTimeout, func() { s.end(errSlow); cancel() }).Stop()
	err := s.conn.Write(ctx, websocket.MessageText, text)
	if err != nil {
		s.end(errLeft)
	}
	return err
}
