package gateway

import (
	"context"
	"time"
)

// Subscriptions is how operations are served over connections that stay open:
// WebSocket (graphql-transport-ws) and server-sent events (graphql-sse, distinct
// connections). A field left zero takes its default.
type Subscriptions struct {
	// Init prepares the context of a WebSocket connection by the payload of its
	// connection_init, such as {"Authorization": "Bearer …"}. Its error refuses the
	// connection. Defaults to taking every connection as its request's headers say.
	Init func(ctx context.Context, payload map[string]any) (context.Context, error)

	// Expires is when a connection with a context has to end, such as with the token
	// that opened it; zero: never. Defaults to never.
	Expires func(context.Context) time.Time

	// InitTimeout is how long a WebSocket may stay open without a connection_init.
	// Defaults to 5 s.
	InitTimeout time.Duration

	// PingInterval is how often the other end is asked for a sign of life. Over
	// WebSocket it has as long again to answer. Defaults to 15 s.
	PingInterval time.Duration

	// WriteTimeout is how long a client may take to receive one answer before it is
	// dropped. Defaults to 5 s.
	WriteTimeout time.Duration

	// MaxConnections is how many connections may be open at once. Defaults to 10,000.
	MaxConnections int

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
	if s.InitTimeout == 0 {
		s.InitTimeout = 5 * time.Second
	}
	if s.PingInterval == 0 {
		s.PingInterval = 15 * time.Second
	}
	if s.WriteTimeout == 0 {
		s.WriteTimeout = 5 * time.Second
	}
	if s.MaxConnections == 0 {
		s.MaxConnections = 10_000
	}
	if s.MaxOperations == 0 {
		s.MaxOperations = 100
	}
	return s
}
