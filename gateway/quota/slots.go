package quota

import (
	"context"
	"net/http"
	"sync"
	"time"

	"kith/gateway/exchange"
	"kith/graph/apierr"
	"kith/storage/sleep"
)

// Slot is what one connection that stays open takes of the bounds. Its limiter guards it.
type Slot struct {
	Party     Party
	of        *Limiter
	transport string
	cost      uint64 // of the subscriptions that run on it
	share     *share // of its user, or address
}

// Enter counts one more connection, unless there are too many or the gateway stops. A
// connection that has entered has to leave.
func (l *Limiter) Enter(transport string, party Party) (*Slot, *exchange.Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.Connections || l.stopped() {
		l.metrics.TooMany.WithLabelValues(transport, "all").Inc()
		return nil, exchange.Busy(exchange.TooManyConnections)
	}
	if full := l.full(transport, party, Party{}); full != nil {
		return nil, full
	}
	l.open++
	return &Slot{of: l, transport: transport, Party: party, share: l.connect(party, 1)}, nil
}

// full refuses one more connection of a party, besides those it has already, if a bound would be exceeded. The client cannot change that
// itself: another connection has to end.
func (l *Limiter) full(transport string, party, already Party) *exchange.Refusal {
	for i, most := range [...]int{l.AddressConnections, l.UserConnections} {
		if one := party.each()[i]; one != already.each()[i] && l.of(one).connections >= most {
			bound := [...]string{"address", "user"}[i]
			l.metrics.TooMany.WithLabelValues(transport, bound).Inc()
			return &exchange.Refusal{Status: http.StatusTooManyRequests, Err: apierr.TooManyConnections.Error("at most %d connections may be open for one %s", most, bound)}
		}
	}
	return nil
}

func (l *Limiter) connect(party Party, n int) *share {
	return l.change(party, func(s *share) { s.connections += n })
}

// Become moves the connection to another party, for instance when it is initialised.
func (s *Slot) Become(party Party) *exchange.Refusal {
	l := s.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if full := l.full(s.transport, party, s.Party); full != nil {
		return full
	}
	l.connect(s.Party, -1)
	s.Party, s.share = party, l.connect(party, 1)
	return nil
}

// Leave takes back what Enter counted.
func (s *Slot) Leave() {
	l := s.of
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connect(s.Party, -1)
	if l.open--; l.open == 0 && l.stopped() {
		close(l.empty)
	}
}

// Stop ends all connections, by Closing, and admits no more.
func (l *Limiter) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped() {
		return
	}
	close(l.Closing)
	if l.open == 0 {
		close(l.empty)
	}
}

func (l *Limiter) stopped() bool {
	select {
	case <-l.Closing:
		return true
	default:
		return false
	}
}

// Wait waits until all connections have left.
func (l *Limiter) Wait(ctx context.Context) error {
	select {
	case <-l.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Subscribe counts a subscription of a cost. It has to end before the connection leaves, or moves to another party.
func (s *Slot) Subscribe(cost uint64) (end func(), err error) {
	l, own := s.of, s.share
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case s.cost+cost > l.ConnectionCost:
		return nil, apierr.TooManySubscriptions.Error("the subscriptions of one connection may cost at most %d together", l.ConnectionCost)
	case s.Party.User != 0 && own.subscriptions >= l.UserSubscriptions:
		return nil, apierr.TooManySubscriptions.Error("one user may have at most %d subscriptions", l.UserSubscriptions)
	case s.Party.User != 0 && own.cost+cost > l.UserCost:
		return nil, apierr.TooManySubscriptions.Error("the subscriptions of one user may cost at most %d together", l.UserCost)
	}
	own.subscriptions++
	own.cost += cost
	s.cost += cost
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		own.subscriptions--
		own.cost -= cost
		s.cost -= cost
	}, nil
}

// Turn is the right to work on an answer, and then to hold it until it is sent. Made gives back the turn of the gateway, and
// Sent that of the user as well; each may be called more than once.
type Turn struct{ Made, Sent func() }

// NoTurn is the turn of an answer that is no longer wanted.
var NoTurn = Turn{Made: func() {}, Sent: func() {}}

// Turn waits until the connection may have an answer made. Turns are given in order, and one user has a part of them at most.
// So the subscriptions of one user can neither keep the processors from others, nor hold memory for more than a few answers.
// An answer that takes longer than [longestTurn] is waiting itself: from then on others have both turns.
func (s *Slot) Turn(ctx context.Context) Turn {
	own, all := s.share.answers, s.of.answers
	if own.Acquire(ctx, 1) != nil {
		return NoTurn
	}
	if all.Acquire(ctx, 1) != nil {
		own.Release(1)
		return NoTurn
	}
	made := sync.OnceFunc(func() { all.Release(1) })
	sent := sync.OnceFunc(func() { made(); own.Release(1) })
	late := time.AfterFunc(longestTurn, sent)
	return Turn{func() { late.Stop(); made() }, func() { late.Stop(); sent() }}
}

// Receive waits until one more message may be worked on.
func (s *Slot) Receive(ctx context.Context) error { return s.share.messages.Wait(ctx) }

// roomAgain is how often room is looked for.
const roomAgain = 100 * time.Millisecond

// HoldArriving waits until there is room for so many bytes of a long message, or the context is done. release gives them back.
func (s *Slot) HoldArriving(ctx context.Context, bytes int64) (release func(), err error) {
	for {
		if release, ok := s.of.hold(s.Party, receiving, bytes); ok {
			return release, nil
		}
		if err := sleep.For(ctx, roomAgain); err != nil {
			return func() {}, err
		}
	}
}

// Hold waits until a message of this many bytes may be worked on, and returns the function that releases them.
func (s *Slot) Hold(ctx context.Context, bytes int) (release func()) {
	held, n := s.share.bytes, int64(min(bytes, ownMessages*MaxMessage))
	if held.Acquire(ctx, n) != nil {
		return func() {}
	}
	return sync.OnceFunc(func() { held.Release(n) })
}
