package gateway

import (
	"context"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"kith/graph/apierr"
)

// Party says to whom a connection belongs: the bounds on connections that stay open apply to its
// address and to its user.
type Party struct {
	// Address is the client's address, in the form in which addresses are counted; "" counts
	// for none, as for a backend that connects for many users.
	Address string

	// User is the user who is signed in; 0: nobody.
	User int64

	// Anonymous: neither a user nor a service is signed in. Such a connection is closed when it is
	// idle.
	Anonymous bool
}

// each are the address and the user of a party, which are counted one by one. A part that is Party{} is not counted.
func (p Party) each() [2]Party { return [...]Party{{Address: p.Address}, {User: p.User}} }

// payer is whose share of the processors work takes: the user's, or the address's if nobody is signed in.
func (p Party) payer() Party {
	if p.User != 0 {
		return Party{User: p.User}
	}
	return Party{Address: p.Address}
}

// slot is what one connection takes of the bounds. It is guarded by its connections.
type slot struct {
	of    *connections
	party Party
	cost  uint64 // of the subscriptions that run on it
	queue *queue // of its user, or address
}

// share is what one user, or one address, has.
type share struct {
	connections   int
	subscriptions int    // of a user
	cost          uint64 // of the subscriptions
	queue         *queue
}

// queue bounds the work for one user, or for one address if nobody is signed in.
type queue struct {
	turns    *semaphore.Weighted // answers that are worked on or being sent
	bytes    *semaphore.Weighted // of messages that are not processed
	messages *rate.Limiter       // further messages are not read for a while
}

const (
	// ownPart is which part of [Subscriptions.MaxAnswers] one user can have.
	ownPart = 4

	// maxRead is how many bytes of unprocessed messages one user may have. The values made of them may take twenty
	// times as much.
	maxRead = 8 * maxMessageBytes

	messagesASecond = 500
	messagesAtOnce  = 1000
)

func (c *connections) newQueue() *queue {
	return &queue{
		turns:    semaphore.NewWeighted(int64(max(1, c.MaxAnswers/ownPart))),
		bytes:    semaphore.NewWeighted(maxRead),
		messages: rate.NewLimiter(messagesASecond, messagesAtOnce),
	}
}

// tooMany means that a bound on connections has been reached. The client cannot change that itself: another connection has to
// end.
type tooMany struct {
	bound string // all, address or user
	refusal
}

func tooManyOf(bound string, most int) *tooMany {
	return &tooMany{bound, refusal{http.StatusTooManyRequests, apierr.TooManyConnections.Error("at most %d connections may be open for one %s", most, bound)}}
}

// enter counts one more connection, unless there are too many or the gateway stops. A
// connection that has entered has to leave.
func (s *server) enter(r *http.Request, transport string) (*slot, *refusal) {
	on, full := s.open.enter(s.Subscriptions.Party(r.Context()))
	if full != nil {
		s.Metrics.tooMany.WithLabelValues(transport, full.bound).Inc()
		return nil, &full.refusal
	}
	return on, nil
}

func (c *connections) enter(party Party) (*slot, *tooMany) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.MaxConnections || c.stopped() {
		return nil, &tooMany{"all", *busy(tooManyConnections)}
	}
	if full := c.fits(party, Party{}); full != nil {
		return nil, full
	}
	c.open++
	return &slot{of: c, party: party, queue: c.take(party)}, nil
}

// become moves the connection to another party, for instance when it is initialised.
func (s *slot) become(party Party) *tooMany {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if full := s.of.fits(party, s.party); full != nil {
		return full
	}
	s.of.drop(s.party)
	s.party, s.queue = party, s.of.take(party)
	return nil
}

func (s *slot) leave() {
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(s.party)
	c.open--
	if c.open == 0 && c.stopped() {
		close(c.empty)
	}
}

// subscribe counts a subscription of a cost. It has to be unsubscribed
// before the connection leaves, or moves to another party.
func (s *slot) subscribe(cost uint64) error {
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.cost+cost > c.MaxConnectionCost {
		return apierr.TooManySubscriptions.Error("the subscriptions of one connection may cost at most %d together", c.MaxConnectionCost)
	}
	if s := c.shares[Party{User: s.party.User}]; s != nil {
		if s.subscriptions >= c.MaxUserSubscriptions {
			return apierr.TooManySubscriptions.Error("one user may have at most %d subscriptions", c.MaxUserSubscriptions)
		}
		if s.cost+cost > c.MaxUserCost {
			return apierr.TooManySubscriptions.Error("the subscriptions of one user may cost at most %d together", c.MaxUserCost)
		}
		s.subscriptions++
		s.cost += cost
	}
	s.cost += cost
	return nil
}

func (s *slot) unsubscribe(cost uint64) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.cost -= cost
	if s := s.of.shares[Party{User: s.party.User}]; s != nil {
		s.subscriptions--
		s.cost -= cost
	}
}

// fits reports whether a party has room for one more, besides those it has already.
func (c *connections) fits(party, already Party) *tooMany {
	has := func(one, before Party) int {
		if s := c.shares[one]; s != nil && one != before {
			return s.connections
		}
		return 0
	}
	now, before := party.each(), already.each()
	switch {
	case has(now[0], before[0]) >= c.MaxAddressConnections:
		return tooManyOf("address", c.MaxAddressConnections)
	case has(now[1], before[1]) >= c.MaxUserConnections:
		return tooManyOf("user", c.MaxUserConnections)
	}
	return nil
}

// take counts a connection for a party, and returns its queue: that of its
// user, else that of its address, else its own.
func (c *connections) take(party Party) (at *queue) {
	for _, one := range party.each() {
		if one == (Party{}) {
			continue
		}
		if c.shares[one] == nil {
			c.shares[one] = &share{queue: c.newQueue()}
		}
		c.shares[one].connections++
		at = c.shares[one].queue
	}
	if at == nil {
		at = c.newQueue()
	}
	return at
}

func (c *connections) drop(party Party) {
	for _, one := range party.each() {
		if s := c.shares[one]; s != nil {
			if s.connections--; s.connections == 0 {
				delete(c.shares, one)
			}
		}
	}
}

// turn is the right to work on an answer, and then to hold it until it is sent. releaseGateway gives back the turn of the gateway, and
// release that of the user as well; each may be called more than once.
type turn struct{ releaseGateway, release func() }

// noTurn is the turn of an answer that is no longer wanted.
var noTurn = turn{releaseGateway: func() {}, release: func() {}}

// turn waits until the connection may have an answer made. Turns are given in order, and one user has a part of them at most.
// So the subscriptions of one user can neither keep the processors from others, nor hold memory for more than a few answers.
func (s *slot) turn(ctx context.Context) turn {
	own, all := s.queue.turns, s.of.answers
	if own.Acquire(ctx, 1) != nil {
		return noTurn
	}
	if all.Acquire(ctx, 1) != nil {
		own.Release(1)
		return noTurn
	}
	made := sync.OnceFunc(func() { all.Release(1) })
	return turn{releaseGateway: made, release: sync.OnceFunc(func() { made(); own.Release(1) })}
}

// hold waits until a message of this many bytes may be worked on, and returns the function that releases them.
func (q *queue) hold(ctx context.Context, bytes int) func() {
	n := int64(min(bytes, maxRead))
	if q.bytes.Acquire(ctx, n) != nil {
		return func() {}
	}
	return sync.OnceFunc(func() { q.bytes.Release(n) })
}
