package quota

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"kith/storage"
)

const (
	// CostlyFrom is the cost from which an operation is not cheap.
	CostlyFrom = 1_000
	// CostlyBytes is the length from which a body, or a query that was not seen before, is not
	// cheap.
	CostlyBytes = 4 << 10

	// LongAnswer is the number of bytes from which an answer is not handed to the system at once.
	LongAnswer = 64 << 10

	// longAnswers is how many answers of the greatest length may be being sent: clients that do not read keep them in memory.
	longAnswers = 8

	// freePart is which part of the processors a party may use by cheap requests before these take turns as well, and freeAtOnce what it may
	// use at once. A unit of cost stands for a microsecond.
	freePart   = 1. / 32
	freeAtOnce = 50_000

	// othersFor is how long a request of somebody else keeps processors free for more.
	othersFor = 20 * time.Millisecond
)

// A Permit is the admission of one request; the zero value is none.
type Permit struct {
	of   *Limiter // nil: it is none, or has ended
	turn *turn    // nil: it has got none
}

// Admit takes a request in; false if there are too many. Its permit has to end.
//
// Requests that exceed the bound wait for a moment; then they are refused: a client that is asked to come back soon is better off
// than one of thousands that all wait.
func (l *Limiter) Admit(ctx context.Context) (Permit, bool) {
	if !l.wait(ctx) {
		l.metrics.Overload.WithLabelValues("requests").Inc()
		return Permit{}, false
	}
	l.working.Add(1)
	return Permit{of: l}, true
}

// wait waits for room, unless too many already wait.
func (l *Limiter) wait(ctx context.Context) bool {
	if l.requests.TryAcquire(1) {
		return true
	}
	defer l.queued.Add(-1)
	if l.queued.Add(1) > int64(max(1, l.Requests)) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return l.requests.Acquire(ctx, 1) == nil
}

// Read announces that so many bytes are read. It returns false if they are many, which takes milliseconds, and there is too much such work.
func (p *Permit) Read(ctx context.Context, bytes int) bool {
	return bytes <= CostlyBytes || p.work(ctx, p.of.turns, CostlyFrom)
}

// Execute announces in the same way that an operation of a cost is executed. A cheap one waits only if its party has spent its share.
func (p *Permit) Execute(ctx context.Context, cost uint64) bool {
	if cost > CostlyFrom || p.turn != nil {
		return p.work(ctx, p.of.turns, cost)
	}
	return p.of.spares(ctx, cost) || p.work(ctx, p.of.cheap, cost)
}

// work waits until there is a turn for costly work, or adds to the cost of the one that the permit has.
//
// Such requests take turns, half as many at a time as Go runs goroutines, so that cheap requests are answered beside them; cheap ones of who
// has spent its share take others, see [Limiter.forCheap].
func (p *Permit) work(ctx context.Context, turns *turns, cost uint64) bool {
	if p.turn != nil {
		p.turn.charge(cost)
		return true
	}
	if p.turn = turns.begin(ctx, p.of.Party(ctx).payer(), cost); p.turn == nil {
		p.of.metrics.Overload.WithLabelValues(turns.kind).Inc()
		return false
	}
	return true
}

// Waiting lets the request give its turn away while it waits for servers.
func (p *Permit) Waiting(ctx context.Context) context.Context {
	if p.turn == nil {
		return ctx
	}
	return storage.WithWaiter(ctx, p.turn)
}

// End is called when only sending the answer is left, and again at the end in any case.
func (p *Permit) End() {
	l := p.of
	if l == nil {
		return
	}
	p.of = nil
	if p.turn != nil {
		p.turn.end()
	}
	l.working.Add(-1)
	l.requests.Release(1)
}

// spares reports whether a party has not spent its share of the processors with a request of a cost. While no more requests are in work than
// there are processors, nobody is kept waiting and nothing is spent. Backends that act for many have no share.
func (l *Limiter) spares(ctx context.Context, cost uint64) bool {
	if l.working.Load() <= int64(l.half) {
		return true
	}
	who := l.Party(ctx).payer()
	if who == (Party{}) {
		return true
	}
	spent, ok := l.spent.Get(who)
	if !ok {
		spent = rate.NewLimiter(rate.Limit(freePart*1e6*float64(l.half)), freeAtOnce)
		l.spent.Add(who, spent)
	}
	if now := time.Now(); !spent.AllowN(now, int(cost)) {
		return false
	} else if spent.TokensAt(now) > freeAtOnce/2 {
		l.others.Store(now.UnixNano())
	}
	return true
}

// forCheap is how many turns there are for the cheap requests of who has spent its share: a half of the processors while there are others, who have not.
func (l *Limiter) forCheap() int {
	if time.Since(time.Unix(0, l.others.Load())) < othersFor {
		return l.half
	}
	return 2 * l.half
}

// Take works on a message of so many bytes from a WebSocket. A long message waits for its
// turn, and with it all later messages of the client. Take returns false only when the context is done before.
func (l *Limiter) Take(ctx context.Context, length int, work func()) bool {
	if length > CostlyBytes {
		if l.sockets.Acquire(ctx, 1) != nil {
			return false
		}
		defer l.sockets.Release(1)
	}
	work()
	return true
}

// Send admits an answer that is to be sent to the party of a context. sent is called when it has been sent. A long answer for which there is no room does
// not wait: it would take its memory and its turn meanwhile.
//
// A user, and an address, may have half of what is then left, as queues of a switch that share its memory do (dynamic
// thresholds, Choudhury and Hahne 1998): the more is taken, the less everybody may have, and there is room for those who have nothing.
// Alone a client has two answers of the greatest length.
func (l *Limiter) Send(ctx context.Context, length int) (sent func(), ok bool) {
	if length < LongAnswer {
		return func() {}, true
	}
	to := l.Party(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(length)
	left := longAnswers*int64(l.Answer) - l.sending - n
	ok = left >= 0
	for _, one := range to.each() {
		ok = ok && (one == (Party{}) || l.of(one).sending+n <= left/2)
	}
	if !ok {
		l.metrics.Overload.WithLabelValues("writing").Inc()
		return func() {}, false
	}
	l.send(to, n)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.send(to, -n)
	}, true
}

func (l *Limiter) send(to Party, n int64) {
	l.sending += n
	l.change(to, func(s *share) { s.sending += n })
}
