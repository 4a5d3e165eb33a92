package gateway

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
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
