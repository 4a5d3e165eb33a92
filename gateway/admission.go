package gateway

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"kith/graph/apierr"
)

// admission bounds the requests that a gateway works on at once. Further requests wait for a moment;
// then they are refused: a client that is asked to come back soon is better off than one of
// thousands that all wait.
//
// Requests whose work takes milliseconds get half of the processors, so that cheap requests are
// answered beside them. These are requests with long bodies, with long queries that were not seen
// before, and with costly operations.
type admission struct {
	requests *semaphore.Weighted // of 1 each
	costly   *semaphore.Weighted // of 1 each
	sockets  *semaphore.Weighted // of 1: the one WebSocket that waits for costly work

	most         int64 // requests in work
	queued       atomic.Int64
	queuedCostly atomic.Int64
	metrics      *Metrics

	mostWritten int64 // bytes of long answers
	mu          sync.Mutex
	written     int64           // bytes of long answers that are being sent
	writtenTo   map[Party]int64 // those of one user, and of one address
}

const (
	// costlyFrom is the cost from which an operation is not cheap.
	costlyFrom = 2_000
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
	a := &admission{most: int64(cfg.MaxRequests), mostWritten: longAnswers * int64(cfg.MaxAnswer), metrics: cfg.Metrics, writtenTo: make(map[Party]int64)}
	a.requests = semaphore.NewWeighted(a.most)
	a.costly = semaphore.NewWeighted(max(1, int64(runtime.GOMAXPROCS(0)/2)))
	a.sockets = semaphore.NewWeighted(1)
	return a
}

// A permit is the admission of one request; the zero value is none.
type permit struct {
	of     *admission // nil: it is none, or has ended
	costly bool
}

// enter takes a request in; false if there are too many. Its permit has to end.
func (a *admission) enter(ctx context.Context) (permit, bool) {
	ok := a.requests.TryAcquire(1) || a.wait(ctx, a.requests, &a.queued, a.most, "requests")
	if !ok {
		return permit{}, false
	}
	return permit{of: a}, true
}

// work announces work of milliseconds; it returns false if there is too much such work.
func (p *permit) work(ctx context.Context) bool {
	if a := p.of; !p.costly {
		p.costly = a.costly.TryAcquire(1) || a.wait(ctx, a.costly, &a.queuedCostly, a.most/4, "costly")
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
		a.costly.Release(1)
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
	if err := a.costly.Acquire(ctx, 1); err != nil {
		a.sockets.Release(1)
		return nil, err
	}
	return func() { a.costly.Release(1); a.sockets.Release(1) }, nil
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
	for _, one := range [...]Party{{User: to.User}, {Address: to.Address}} {
		ok = ok && (one == (Party{}) || a.writtenTo[one]+n <= left/2)
	}
	if !ok {
		a.metrics.overloaded("writing")
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
	for _, one := range [...]Party{{User: to.User}, {Address: to.Address}} {
		if a.writtenTo[one] += n; a.writtenTo[one] == 0 {
			delete(a.writtenTo, one)
		}
	}
}

// wait waits for room, unless too many already wait.
func (a *admission) wait(ctx context.Context, room *semaphore.Weighted, queued *atomic.Int64, most int64, why string) bool {
	if queued.Add(1) <= max(1, most) {
		ctx, cancel := context.WithTimeout(ctx, queueTime)
		err := room.Acquire(ctx, 1)
		cancel()
		if err == nil {
			queued.Add(-1)
			return true
		}
	}
	queued.Add(-1)
	a.metrics.overloaded(why)
	return false
}

// busy refuses a request, or a connection, that exceeds a bound.
func busy(w http.ResponseWriter, a answer, message string) {
	w.Header().Set("Retry-After", "1")
	a.refuse(http.StatusServiceUnavailable, apierr.Unavailable("%s", message))
}

const (
	tooManyRequests    = "the server is busy: try again soon"
	tooManyAnswers     = "too many long answers wait for their clients: try again soon (a mutation has been done)"
	tooManyConnections = "there are too many open connections at the moment"
)

// turns bound how many answers over connections that stay open are worked on at once:
// in the whole gateway, and for one user, or for one address if nobody is signed in, a part of that
// number. Turns are given in order. So the subscriptions of one user can neither keep the
// processors from others, nor hold memory for more than a few answers.
type turns struct {
	all *semaphore.Weighted
	own int64
}

// ownPart is which part of the turns one user can have.
const ownPart = 4

// maxRead is how many bytes of unprocessed messages one user, or one address if nobody is
// signed in, may have. The values made of them may take twenty
// times as much.
const maxRead = 8 * maxMessageBytes

func newTurns(most int) *turns {
	return &turns{all: semaphore.NewWeighted(int64(most)), own: int64(max(1, most/ownPart))}
}

// queue is the queue of one user, or of one address.
type queue struct {
	turns    *semaphore.Weighted
	bytes    *semaphore.Weighted
	messages *rate.Limiter
}

// How many messages one user, or one address if nobody is signed in, may send. Further messages are
// not read for a while.
const (
	messagesASecond = 500
	messagesAtOnce  = 1000
)

func (t *turns) queue() queue {
	return queue{turns: semaphore.NewWeighted(t.own), bytes: semaphore.NewWeighted(maxRead), messages: rate.NewLimiter(messagesASecond, messagesAtOnce)}
}

// grant is the right to work on an answer, and then to hold it until it is sent.
type grant struct{ made, sent func() }

// noGrant is the grant of an answer that is no longer wanted.
var noGrant = grant{made: func() {}, sent: func() {}}

// take waits for a turn. made gives back the gateway's turn, and sent gives back both turns; each
// may be called more than once.
func (t *turns) take(ctx context.Context, q queue) grant {
	if q.turns.Acquire(ctx, 1) != nil {
		return noGrant
	}
	if t.all.Acquire(ctx, 1) != nil {
		q.turns.Release(1)
		return noGrant
	}
	made := sync.OnceFunc(func() { t.all.Release(1) })
	return grant{made: made, sent: sync.OnceFunc(func() { made(); q.turns.Release(1) })}
}

// hold waits until a message of this many bytes may be worked on, and returns the function that releases them.
func (q queue) hold(ctx context.Context, bytes int) func() {
	n := int64(min(bytes, maxRead))
	if q.bytes.Acquire(ctx, n) != nil {
		return func() {}
	}
	return sync.OnceFunc(func() { q.bytes.Release(n) })
}
