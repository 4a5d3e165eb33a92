package gateway

import (
	"cmp"
	"context"
	"runtime"
	"time"
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
	Party func(context.Context) Party

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
		s.Party = func(context.Context) Party { return Party{} }
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
