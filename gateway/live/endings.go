package live

import (
	"context"
	"errors"
	"time"
)

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
func (s *Server) endWithToken(ctx context.Context, cancel context.CancelCauseFunc) (callOff func()) {
	keep := s.Revoked(ctx, func() { cancel(errRevoked) })
	at := s.Expires(ctx)
	if at.IsZero() {
		return keep
	}
	timer := time.AfterFunc(time.Until(at), func() { cancel(errExpired) })
	return func() { timer.Stop(); keep() }
}
