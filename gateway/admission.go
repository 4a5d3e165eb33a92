package gateway

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"kith/graph/apierr"
)

// admission bounds what a gateway works on at once. Beyond that requests wait for a moment,
// then they are refused: a client that is told to come back soon is better off than one of
// thousands that all wait.
//
// A request that costs much waits for others that do, and not for cheap ones: of all
// processors, half are there for those.
type admission struct {
	requests *semaphore.Weighted // of 1 each
	costly   *semaphore.Weighted // of what each costs
	writing  *semaphore.Weighted // of the bytes of long answers that are being sent

	most         int64 // requests in work
	mostCost     int64 // of costly ones in work
	mostWritten  int64 // bytes of long answers
	queued       atomic.Int64
	queuedCostly atomic.Int64
	metrics      *Metrics
}

const (
	// costlyFrom is what a request costs that is not cheap: its work takes milliseconds.
	costlyFrom = 2_000

	// queueTime is how long a request waits until it is refused.
	queueTime = time.Second

	// longAnswer is how many bytes an answer has that is not handed to the system at once.
	longAnswer = 64 << 10

	// longAnswers is how many answers of the greatest length may be on their way.
	longAnswers = 8
)

func newAdmission(cfg Config) *admission {
	a := &admission{
		most:        int64(cfg.MaxRequests),
		mostCost:    int64(max(1, runtime.GOMAXPROCS(0)/2) * max(cfg.Limits.Cost, defaultMaxCost)),
		mostWritten: longAnswers * int64(cfg.MaxAnswer),
		metrics:     cfg.Metrics,
	}
	a.requests = semaphore.NewWeighted(a.most)
	a.costly = semaphore.NewWeighted(a.mostCost)
	a.writing = semaphore.NewWeighted(a.mostWritten)
	return a
}

// defaultMaxCost is that of [kith/graph/limits.Limits].
const defaultMaxCost = 100_000

// enter takes a request in; false if there are too many. A request that was taken in leaves.
func (a *admission) enter(ctx context.Context) bool {
	return a.requests.TryAcquire(1) || a.wait(ctx, a.requests, &a.queued, a.most, 1, "requests")
}

func (a *admission) leave() { a.requests.Release(1) }

// enterCostly takes a request in by what it costs. leave is called at its end.
func (a *admission) enterCostly(ctx context.Context, cost uint64) (leave func(), ok bool) {
	if cost <= costlyFrom {
		return func() {}, true
	}
	n := int64(min(cost, uint64(a.mostCost)))
	if !a.costly.TryAcquire(n) && !a.wait(ctx, a.costly, &a.queuedCostly, a.most/4, n, "cost") {
		return nil, false
	}
	return sync.OnceFunc(func() { a.costly.Release(n) }), true
}

// enterWriting takes in an answer that is to be sent. leave is called when it is.
func (a *admission) enterWriting(ctx context.Context, length int) (leave func(), ok bool) {
	if length < longAnswer {
		return func() {}, true
	}
	n := min(int64(length), a.mostWritten)
	if !a.writing.TryAcquire(n) && !a.wait(ctx, a.writing, &a.queuedCostly, a.most/4, n, "writing") {
		return nil, false
	}
	return func() { a.writing.Release(n) }, true
}

// wait waits for room, unless too many do.
func (a *admission) wait(ctx context.Context, room *semaphore.Weighted, queued *atomic.Int64, most, n int64, why string) bool {
	if queued.Add(1) <= max(1, most) {
		ctx, cancel := context.WithTimeout(ctx, queueTime)
		err := room.Acquire(ctx, n)
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

// busy refuses a request, or a connection, that is one too many.
func busy(w http.ResponseWriter, a answer, message string) {
	w.Header().Set("Retry-After", "1")
	a.refuse(http.StatusServiceUnavailable, errBusy(message))
}

func errBusy(message string) error {
	return &apierr.Error{Code: apierr.CodeUnavailable, Retryable: true, Message: message}
}

const (
	tooManyRequests    = "the server is busy: try again soon"
	tooManyConnections = "there are too many open connections at the moment"
)
