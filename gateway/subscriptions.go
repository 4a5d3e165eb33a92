package gateway

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"time"

	"kith/gateway/quota"
)

// Subscriptions is how operations are served over connections that stay open:
// WebSocket (graphql-transport-ws) and server-sent events (graphql-sse, distinct
// connections). A zero field takes its default.
type Subscriptions struct {
	// Init prepares the context of a WebSocket connection by the payload of its
	// connection_init, such as {"Authorization": "Bearer …"}. If it returns an error, the
	// connection is refused. Defaults to accepting every connection by its request's headers.
	Init func(ctx context.Context, payload map[string]any) (context.Context, error)

	// Expires is when a connection with a context has to end, such as with the token
	// that opened it; zero: never. Defaults to never.
	Expires func(context.Context) time.Time

	// Party returns to whom the connection of a context belongs. Defaults to an empty party, for
	// which only MaxConnections and MaxConnectionCost count.
	Party func(context.Context) quota.Party

	// Revoked calls end when a connection with a context has to end before it expires, such
	// as when the token that opened it is refused from now on. The function that it returns cancels
	// that. Defaults to never.
	Revoked func(ctx context.Context, end func()) (callOff func())

	// InitTimeout is how long a WebSocket may stay open without a connection_init.
	// Defaults to 5 s.
	InitTimeout time.Duration

	// MessageTimeout is how long one message over a WebSocket may take. Defaults to 30 s, as the body of a request.
	MessageTimeout time.Duration

	// IdleTimeout is how long a WebSocket may stay open without an operation if nobody is signed
	// in. Defaults to 60 s.
	IdleTimeout time.Duration

	// PingInterval is how often the other end is asked for a sign of life. Over WebSocket, the
	// other end has as long again to answer. Defaults to 15 s.
	PingInterval time.Duration

	// WriteTimeout is how long a client may take to receive one answer before it is
	// dropped. Defaults to 5 s.
	WriteTimeout time.Duration

	// MaxConnections is how many connections may be open at once. Defaults to 10,000.
	MaxConnections int

	// MaxAddressConnections is how many of them one address may have. Defaults to 1,000.
	MaxAddressConnections int

	// MaxUserConnections is how many of them one user may have. Defaults to 200.
	MaxUserConnections int

	// MaxUserSubscriptions is how many subscriptions one user may have, on all
	// connections. Defaults to 1,000.
	MaxUserSubscriptions int

	// MaxConnectionCost is how much the subscriptions of one connection may cost together
	// (see [limits.Costs]). Defaults to 10,000.
	MaxConnectionCost uint64

	// MaxUserCost is how much the subscriptions of one user may cost together. Defaults to 20,000:
	// all of them may be answered for one event.
	MaxUserCost uint64

	// MaxAnswers is how many answers are worked on at once; a quarter of it is how many for one
	// user. Defaults to 8 for each processor.
	MaxAnswers int

	// MaxOperations is how many operations may run at once on one WebSocket. Defaults
	// to 100.
	MaxOperations int
}

func (s Subscriptions) withDefaults() Subscriptions {
	if s.Init == nil {
		s.Init = func(ctx context.Context, _ map[string]any) (context.Context, error) { return ctx, nil }
	}
	if s.Expires == nil {
		s.Expires = func(context.Context) time.Time { return time.Time{} }
	}
	if s.Party == nil {
		s.Party = func(context.Context) quota.Party { return quota.Party{} }
	}
	if s.Revoked == nil {
		s.Revoked = func(context.Context, func()) func() { return func() {} }
	}
	s.InitTimeout = cmp.Or(s.InitTimeout, 5*time.Second)
	s.MessageTimeout = cmp.Or(s.MessageTimeout, readTimeout)
	s.IdleTimeout = cmp.Or(s.IdleTimeout, time.Minute)
	s.PingInterval = cmp.Or(s.PingInterval, 15*time.Second)
	s.WriteTimeout = cmp.Or(s.WriteTimeout, 5*time.Second)
	s.MaxConnections = cmp.Or(s.MaxConnections, 10_000)
	s.MaxAddressConnections = cmp.Or(s.MaxAddressConnections, 1_000)
	s.MaxUserConnections = cmp.Or(s.MaxUserConnections, 200)
	s.MaxUserSubscriptions = cmp.Or(s.MaxUserSubscriptions, 1_000)
	s.MaxConnectionCost = cmp.Or(s.MaxConnectionCost, 10_000)
	s.MaxUserCost = cmp.Or(s.MaxUserCost, 20_000)
	s.MaxAnswers = cmp.Or(s.MaxAnswers, 4*runtime.GOMAXPROCS(0))
	s.MaxOperations = cmp.Or(s.MaxOperations, 100)
	return s
}

// ending is the reason why a connection was ended. The label is for log and metrics; code and
// reason close a WebSocket. Without a code the connection is just cut.
type ending struct {
	label  string
	code   int
	reason string
}

func (e *ending) Error() string { return e.label }

// The endings that both kinds of connections know.
var (
	errLeft    = &ending{label: "client"}                                                         // it left
	errDone    = &ending{label: "complete"}                                                       // no more answers
	errSlow    = &ending{label: "slow"}                                                           // it did not take its messages
	errExpired = &ending{label: "expired", code: 4403, reason: "the token has expired"}           // Expires
	errRevoked = &ending{label: "revoked", code: 4403, reason: "the token is not valid any more"} // Revoked
	errStopped = &ending{label: "stopped", code: 1001, reason: "the server is going away"}        // as RFC 6455 has it
)

// endingOf is why a context was cancelled.
func endingOf(ctx context.Context) *ending {
	if e, ok := errors.AsType[*ending](context.Cause(ctx)); ok {
		return e
	}
	return errLeft
}

// endWithToken cancels when the token of a context expires or is revoked. The function that it
// returns cancels that.
func (s Subscriptions) endWithToken(ctx context.Context, cancel context.CancelCauseFunc) (callOff func()) {
	keep := s.Revoked(ctx, func() { cancel(errRevoked) })
	at := s.Expires(ctx)
	if at.IsZero() {
		return keep
	}
	timer := time.AfterFunc(time.Until(at), func() { cancel(errExpired) })
	return func() { timer.Stop(); keep() }
}
