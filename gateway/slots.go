package gateway

import (
	"context"
	"net/http"
	"strconv"

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

// slot is what one connection takes of the bounds. It is guarded by its connections.
type slot struct {
	of    *connections
	party Party
	cost  uint64 // of the subscriptions that run on it
	queue queue  // of its user, or address
}

// share is what one user, or one address, has.
type share struct {
	connections   int
	subscriptions int    // of a user
	cost          uint64 // of the subscriptions
	queue         queue
}

// Why there is no room. The client cannot change that itself: another connection has to end.
const (
	allConnections = "all"
	perAddress     = "address"
	perUser        = "user"
)

// tooMany means that a bound on connections has been reached.
type tooMany struct {
	bound string // one of the above
	most  int
}

// Error implements error.
func (c *tooMany) Error() string {
	if c.bound == allConnections {
		return tooManyConnections
	}
	return "at most " + strconv.Itoa(c.most) + " connections may be open for one " + c.bound
}

// refuse answers the request. The answer says whether the client has too many connections of its
// own, or the gateway has.
func (c *tooMany) refuse(w http.ResponseWriter, a answer) {
	if c.bound == allConnections {
		busy(w, a, tooManyConnections)
		return
	}
	w.Header().Set("Retry-After", "1")
	a.refuse(http.StatusTooManyRequests, apierr.RateLimited("%s", c.Error()))
}

// enter counts one more connection, unless there are too many or the gateway stops. A
// connection that has entered has to leave.
func (c *connections) enter(party Party) (*slot, *tooMany) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.MaxConnections || c.stopped() {
		return nil, &tooMany{bound: allConnections}
	}
	if err := c.fits(party, Party{}); err != nil {
		return nil, err
	}
	c.open++
	return &slot{of: c, party: party, queue: c.take(party)}, nil
}

// become moves the connection to another party, for instance when it is initialised.
func (s *slot) become(party Party) *tooMany {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if err := s.of.fits(party, s.party); err != nil {
		return err
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
		return apierr.RateLimited("the subscriptions of one connection may cost at most %d together", c.MaxConnectionCost)
	}
	if s := c.users[s.party.User]; s != nil {
		if s.subscriptions >= c.MaxUserSubscriptions {
			return apierr.RateLimited("one user may have at most %d subscriptions", c.MaxUserSubscriptions)
		}
		if s.cost+cost > c.MaxUserCost {
			return apierr.RateLimited("the subscriptions of one user may cost at most %d together", c.MaxUserCost)
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
	if s := s.of.users[s.party.User]; s != nil {
		s.subscriptions--
		s.cost -= cost
	}
}

// turn waits until the connection may have an answer made.
func (s *slot) turn(ctx context.Context) grant { return s.of.turns.take(ctx, s.queue) }

// fits reports whether a party has room for one more, besides those it has already.
func (c *connections) fits(party, already Party) *tooMany {
	if s := c.addresses[party.Address]; s != nil && party.Address != already.Address && s.connections >= c.MaxAddressConnections {
		return &tooMany{perAddress, c.MaxAddressConnections}
	}
	if s := c.users[party.User]; s != nil && party.User != already.User && s.connections >= c.MaxUserConnections {
		return &tooMany{perUser, c.MaxUserConnections}
	}
	return nil
}

// take counts a connection for a party, and returns its queue: that of its
// user, else that of its address, else its own.
func (c *connections) take(party Party) queue {
	var at queue
	if party.Address != "" {
		at = counted(c.addresses, party.Address, c.turns)
	}
	if party.User != 0 {
		at = counted(c.users, party.User, c.turns)
	}
	if at == (queue{}) {
		at = c.turns.queue()
	}
	return at
}

func (c *connections) drop(party Party) {
	discounted(c.addresses, party.Address)
	discounted(c.users, party.User)
}

func counted[K comparable](shares map[K]*share, key K, t *turns) queue {
	if shares[key] == nil {
		shares[key] = &share{queue: t.queue()}
	}
	shares[key].connections++
	return shares[key].queue
}

func discounted[K comparable](shares map[K]*share, key K) {
	if s := shares[key]; s != nil {
		if s.connections--; s.connections == 0 {
			delete(shares, key)
		}
	}
}
