package gateway

import (
	"context"
	"net/http"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"kith/gateway/quota"
	"kith/graph/apierr"
)

// admission bounds what a gateway works on at once, for all together and, by its limiter, for each user and address.
//
// Requests that exceed the bound wait for a moment; then they are refused: a client that is asked to come back soon is better off
// than one of thousands that all wait.
//
// Requests whose work takes milliseconds take turns, half as many at a time as Go runs goroutines, so that cheap requests are
// answered beside them. These are requests with long bodies, with long queries that were not seen
// before, and with costly operations.
type admission struct {
	*quota.Limiter
	requests *semaphore.Weighted // of 1 each
	sockets  *semaphore.Weighted // of 1: the one long message of a WebSocket that is read

	most    int64 // requests in work
	queued  atomic.Int64
	metrics *Metrics
	party   func(context.Context) quota.Party
}

const (
	// costlyFrom is the cost from which an operation is not cheap.
	costlyFrom = 500
	// costlyBytes is the length from which a body, or a query that was not seen before, is not
	// cheap.
	costlyBytes = 4 << 10

	// maxMessageBytes is how many bytes a message over a WebSocket may have. See Subscriptions in docs/reference/api.md.
	maxMessageBytes = 128 << 10

	// longAnswer is the number of bytes from which an answer is not handed to the system at once.
	longAnswer = 64 << 10

	// longAnswers is how many answers of the greatest length may be being sent: clients that do not read keep them in memory.
	longAnswers = 8
)

func newAdmission(cfg Config) *admission {
	open := cfg.Subscriptions
	return &admission{
		Limiter: quota.New(quota.Bounds{
			Connections: open.MaxConnections, AddressConnections: open.MaxAddressConnections, UserConnections: open.MaxUserConnections,
			UserSubscriptions: open.MaxUserSubscriptions, UserCost: open.MaxUserCost, ConnectionCost: open.MaxConnectionCost,
			Answers: open.MaxAnswers, MessageBytes: maxMessageBytes, Sending: longAnswers * int64(cfg.MaxAnswer),
			Costly: max(1, runtime.GOMAXPROCS(0)/2), Waiting: cfg.MaxRequests / 4,
		}),
		requests: semaphore.NewWeighted(int64(cfg.MaxRequests)),
		sockets:  semaphore.NewWeighted(1),
		most:     int64(cfg.MaxRequests),
		metrics:  cfg.Metrics,
		party:    open.Party,
	}
}

// A permit is the admission of one request; the zero value is none.
type permit struct {
	of     *admission // nil: it is none, or has ended
	costly bool
}

// enter takes a request in; false if there are too many. Its permit has to end.
func (a *admission) enter(ctx context.Context) (permit, bool) {
	if !a.wait(ctx) {
		a.metrics.overload.WithLabelValues("requests").Inc()
		return permit{}, false
	}
	return permit{of: a}, true
}

// wait waits for room, unless too many already wait.
func (a *admission) wait(ctx context.Context) bool {
	if a.requests.TryAcquire(1) {
		return true
	}
	defer a.queued.Add(-1)
	if a.queued.Add(1) > max(1, a.most) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, quota.Patience)
	defer cancel()
	return a.requests.Acquire(ctx, 1) == nil
}

// work announces work of a cost, for a party, that takes milliseconds. It returns false if there is too much such work.
func (p *permit) work(ctx context.Context, who quota.Party, cost uint64) bool {
	if p.costly {
		p.of.Charge(who, cost)
		return true
	}
	if p.costly = p.of.Begin(ctx, who, cost); !p.costly {
		p.of.metrics.overload.WithLabelValues("costly").Inc()
	}
	return p.costly
}

// end is called when only sending the answer is left, and again at the end in any case.
func (p *permit) end() {
	a := p.of
	if a == nil {
		return
	}
	p.of = nil
	if p.costly {
		a.End()
	}
	a.requests.Release(1)
}

// take admits a message of so many bytes from a WebSocket. A long message waits for its
// turn, and with it all later messages of the client. done is called when the message has been
// worked on. take fails only when the context is done.
func (a *admission) take(ctx context.Context, length int) (done func(), err error) {
	if length <= costlyBytes {
		return func() {}, nil
	}
	if err := a.sockets.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { a.sockets.Release(1) }, nil
}

// send admits an answer that is to be sent to a party, as [quota.Limiter.Send] does if it is long.
func (a *admission) send(to quota.Party, length int) (sent func(), ok bool) {
	if length < longAnswer {
		return func() {}, true
	}
	if sent, ok = a.Send(to, length); !ok {
		a.metrics.overload.WithLabelValues("writing").Inc()
	}
	return sent, ok
}

// full counts a connection that was one too many, and says so.
func (a *admission) full(transport string, full *quota.Full) *refusal {
	if full == nil {
		return nil
	}
	a.metrics.tooMany.WithLabelValues(transport, full.Bound).Inc()
	if full.Bound == "all" {
		return busy(tooManyConnections)
	}
	return &refusal{http.StatusTooManyRequests, apierr.TooManyConnections.Error("at most %d connections may be open for one %s", full.Most, full.Bound)}
}

const (
	tooManyRequests    = "the server is busy: try again soon"
	tooManyAnswers     = "too many long answers wait for their clients: try again soon (a mutation has been done)"
	tooManyConnections = "there are too many open connections at the moment"
)
