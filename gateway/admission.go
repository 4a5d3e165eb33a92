package gateway

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// admission bounds the requests that a gateway works on at once. Further requests wait for a moment;
// then they are refused: a client that is asked to come back soon is better off than one of
// thousands that all wait.
//
// Requests whose work takes milliseconds take turns, half as many at a time as Go runs goroutines, so that cheap requests are
// answered beside them. These are requests with long bodies, with long queries that were not seen
// before, and with costly operations.
type admission struct {
	requests *semaphore.Weighted // of 1 each
	costly   *turns
	sockets  *semaphore.Weighted // of 1: the one long message of a WebSocket that is read

	most    int64 // requests in work
	queued  atomic.Int64
	metrics *Metrics

	mostWritten int64 // bytes of long answers
	mu          sync.Mutex
	written     int64           // bytes of long answers that are being sent
	writtenTo   map[Party]int64 // those of one user, and of one address
}

const (
	// costlyFrom is the cost from which an operation is not cheap.
	costlyFrom = 500
	// costlyBytes is the length from which a body, or a query that was not seen before, is not
	// cheap.
	costlyBytes = 4 << 10

	// queueTime is how long a request waits until it is refused.
	queueTime = time.Second

	// longAnswer is the number of bytes from which an answer is not handed to the system at once.
	longAnswer = 64 << 10

	// longAnswers is how many answers of the greatest length may be being sent: clients that do not read keep them in memory.
	longAnswers = 8
)

func newAdmission(cfg Config) *admission {
	return &admission{
		requests: semaphore.NewWeighted(int64(cfg.MaxRequests)),
		costly:   newTurns(max(1, runtime.GOMAXPROCS(0)/2), cfg.MaxRequests/4),
		sockets:  semaphore.NewWeighted(1),

		most:        int64(cfg.MaxRequests),
		metrics:     cfg.Metrics,
		mostWritten: longAnswers * int64(cfg.MaxAnswer),
		writtenTo:   make(map[Party]int64),
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

// work announces work of a cost, for a party, that takes milliseconds. It returns false if there is too much such work.
func (p *permit) work(ctx context.Context, who Party, cost uint64) bool {
	if p.costly {
		p.of.costly.charge(who.payer(), cost)
		return true
	}
	if p.costly = p.of.costly.begin(ctx, who.payer(), cost); !p.costly {
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
		a.costly.end()
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

// enterWriting admits an answer that is to be sent to a party. leave is called when it has been sent. An answer for which there
// is no room does not wait: it would take its memory and its turn meanwhile.
//
// A user, and an address, may have half of what is then left, as queues of a switch that share its memory do (dynamic
// thresholds, Choudhury and Hahne 1998): the more is taken, the less everybody may have, and there is room for those who have nothing.
// Alone a client has two answers of the greatest length.
func (a *admission) enterWriting(to Party, length int) (leave func(), ok bool) {
	if length < longAnswer {
		return func() {}, true
	}
	n := int64(length)
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.mostWritten - a.written - n
	ok = left >= 0
	for _, one := range to.each() {
		ok = ok && (one == (Party{}) || a.writtenTo[one]+n <= left/2)
	}
	if !ok {
		a.metrics.overload.WithLabelValues("writing").Inc()
		return func() {}, false
	}
	a.write(to, n)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.write(to, -n)
	}, true
}

// write counts bytes that are being sent to a party. The caller holds the lock.
func (a *admission) write(to Party, n int64) {
	a.written += n
	for _, one := range to.each() {
		if a.writtenTo[one] += n; a.writtenTo[one] == 0 {
			delete(a.writtenTo, one)
		}
	}
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
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	return a.requests.Acquire(ctx, 1) == nil
}

const (
	tooManyRequests    = "the server is busy: try again soon"
	tooManyAnswers     = "too many long answers wait for their clients: try again soon (a mutation has been done)"
	tooManyConnections = "there are too many open connections at the moment"
)
