// Package quota bounds what one user, or one address, takes of a gateway at once, so that there is room for everybody else: connections
// that stay open and the subscriptions on them, long bodies and answers that wait for their client, the processors for costly requests, and
// refusals.
//
// All of it is counted by one [Limiter], for each [Party], and what has a bound for all together only, such as the requests in work.
package quota

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"kith/gateway/exchange"
	"kith/graph/defaults"
	"kith/storage/sleep"
)

// Party says to whom a connection, or a request, belongs: bounds apply to its address and to its user.
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

// Bounds are what may be taken at once. A zero field takes its default.
type Bounds struct {
	Connections        int    // that stay open: 10,000
	AddressConnections int    // of these, those of one address: 1,000
	UserConnections    int    // of these, those of one user: 200
	UserSubscriptions  int    // of one user, on all connections: 1,000
	UserCost           uint64 // of these together (see kith/graph/limits): 20,000. All of them may be answered for one event
	ConnectionCost     uint64 // of the subscriptions of one connection together: 10,000
	Answers            int    // worked on over such connections: 4 for each of Go's processors; a quarter of these for one user, or address

	// The fields that follow are those of [kith/gateway.Config], with its defaults.

	Answer   int   // bytes of the longest answer: clients may have eight of these together that they have not taken yet
	Body     int64 // bytes of the longest body: clients may have eight of these together that they have not sent yet, or [bodiesAtLeast]
	Requests int   // in work over plain HTTP, and as many that wait for that; a quarter of these may wait for costly work
}

// WithDefaults fills in what is zero.
func (b Bounds) WithDefaults() Bounds {
	return defaults.For(b, Bounds{
		Connections: 10_000, AddressConnections: 1_000, UserConnections: 200, UserSubscriptions: 1_000, UserCost: 20_000, ConnectionCost: 10_000,
		Answers: 4 * runtime.GOMAXPROCS(0),
	})
}

// Limiter counts what parties have.
type Limiter struct {
	Bounds
	// Party is whose a context is.
	Party func(context.Context) Party
	// Closing is closed by Stop.
	Closing chan struct{}

	metrics  *exchange.Metrics
	requests *semaphore.Weighted // of 1 each that is in work
	working  atomic.Int64        // requests that are in work
	queued   atomic.Int64        // requests that wait for that
	sockets  *semaphore.Weighted // of 1: the one long message of a WebSocket that is read

	turns   *turns
	answers *semaphore.Weighted               // of 1 each that is worked on
	refused *lru.Cache[string, *rate.Limiter] // by [Party.Address]

	mu     sync.Mutex
	shares map[Party]*share // of parts of parties that have something
	open   int              // connections that stay open
	held   held
	empty  chan struct{} // closed when no connection is left after Stop
}

// held is how many bytes are held for clients that are slow, or stand still, in each direction.
type held [2]int64

// The directions.
const (
	sending   = iota // of long answers, until the client has taken them
	receiving        // of long bodies, until the client has sent them, and of long messages, until they have been worked on
)

// share is what one user, or one address, has.
type share struct {
	connections   int
	subscriptions int
	cost          uint64 // of the subscriptions
	held          held

	answers  *semaphore.Weighted // that are worked on or being sent
	bytes    *semaphore.Weighted // of messages that are not processed
	messages *rate.Limiter       // further messages are not read for a while
}

const (
	// MaxMessage is how many bytes a message over a WebSocket may have. See Subscriptions in docs/reference/api.md.
	MaxMessage = 128 << 10

	// ownPart is which part of [Bounds.Answers] one user can have.
	ownPart = 4

	// ownMessages is how many of the longest messages one user may have that are unprocessed. The values made of them may take
	// twenty times as much.
	ownMessages = 8

	messagesASecond = 500
	messagesAtOnce  = 1000

	// refusalsASecond and refusalsAtOnce are how many refusals an address gets without a wait: per
	// second, and together. For each refusal beyond that it waits.
	refusalsASecond = 20
	refusalsAtOnce  = 50
	refusalPause    = 100 * time.Millisecond

	// remembered is how many addresses are remembered that were refused, and how many parties with what they have spent: some 2 MB each.
	remembered = 8192
)

// New makes a limiter for the parties of contexts.
func New(b Bounds, party func(context.Context) Party, m *exchange.Metrics) *Limiter {
	refused, err := lru.New[string, *rate.Limiter](remembered)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return &Limiter{
		Bounds:   b,
		Party:    party,
		Closing:  make(chan struct{}),
		metrics:  m,
		requests: semaphore.NewWeighted(int64(b.Requests)),
		sockets:  semaphore.NewWeighted(1),
		turns:    newTurns(max(1, runtime.GOMAXPROCS(0)/2), b.Requests/4),
		answers:  semaphore.NewWeighted(int64(b.Answers)),
		refused:  refused,
		shares:   make(map[Party]*share),
		empty:    make(chan struct{}),
	}
}

func (l *Limiter) newShare() *share {
	return &share{
		answers:  semaphore.NewWeighted(int64(max(1, l.Answers/ownPart))),
		bytes:    semaphore.NewWeighted(int64(ownMessages * MaxMessage)),
		messages: rate.NewLimiter(messagesASecond, messagesAtOnce),
	}
}

// change changes the shares of a party's address and user, which are kept while there is something in them. It returns the user's, else
// the address's, else one that is nobody's. The caller holds the lock.
func (l *Limiter) change(party Party, change func(*share)) (payer *share) {
	for _, one := range party.each() {
		if one == (Party{}) {
			continue
		}
		if payer = l.shares[one]; payer == nil {
			payer = l.newShare()
			l.shares[one] = payer
		}
		if change(payer); payer.connections == 0 && payer.held == (held{}) {
			delete(l.shares, one)
		}
	}
	if payer == nil {
		payer = l.newShare()
	}
	return payer
}

// of is the share of a part of a party, which is empty if it has none. The caller holds the lock.
func (l *Limiter) of(one Party) share {
	if s := l.shares[one]; s != nil {
		return *s
	}
	return share{}
}

// Pause counts a refusal, and waits if there were too many: a refusal costs the gateway a millisecond or so, and a client that sends the
// next such request as soon as it has the answer would keep a processor busy. Backends that act for many users have no address and do not
// wait.
func (l *Limiter) Pause(ctx context.Context) {
	party := l.Party(ctx)
	if party.Address == "" {
		return
	}
	l.refused.ContainsOrAdd(party.Address, rate.NewLimiter(refusalsASecond, refusalsAtOnce))
	if limiter, ok := l.refused.Get(party.Address); !ok || limiter.Allow() {
		return
	}
	_ = sleep.For(ctx, refusalPause)
}
