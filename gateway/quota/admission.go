package quota

import (
	"context"

	"kith/storage"
)

const (
	// CostlyFrom is the cost from which an operation is not cheap.
	CostlyFrom = 1_000
	// CostlyBytes is the length from which a body is not cheap.
	CostlyBytes = 4 << 10

	// LongAnswer is the number of bytes from which an answer is not handed to the system at once.
	LongAnswer = 64 << 10

	// longest is how many answers of the greatest length may be on their way: those that clients do not read stay in memory. As many bodies of the
	// greatest length may be arriving, from clients that are slow to write.
	longest = 8

	// bodiesAtLeast is how many bytes of long bodies may be arriving in any case: the greatest length is only 256 KiB by default, and many clients
	// are slow. The buffers, which double as they grow, take up to twice as many.
	bodiesAtLeast = 64 << 20
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
	return bytes <= CostlyBytes || p.work(ctx, costly, CostlyFrom)
}

// Parse parses a query of so many bytes that was not seen before, each of which takes a microsecond or so. It returns false if there is too much such work.
func (p *Permit) Parse(ctx context.Context, bytes int, parse func()) bool {
	ok := p.Execute(ctx, uint64(bytes))
	if ok {
		parse()
	}
	return ok
}

// Parse is [Permit.Parse] for a message from a WebSocket.
func (l *Limiter) Parse(ctx context.Context, bytes int, parse func()) bool {
	l.working.Add(1)
	defer l.working.Add(-1)
	p := Permit{of: l}
	defer p.giveBack()
	return p.Parse(ctx, bytes, parse)
}

// Execute announces in the same way that an operation of a cost is executed, in microseconds that it may take.
func (p *Permit) Execute(ctx context.Context, cost uint64) bool {
	if cost > CostlyFrom {
		return p.work(ctx, costly, cost)
	}
	if p.turn == nil && p.of.working.Load() <= int64(p.of.turns.half) {
		return true // nobody is kept waiting
	}
	return p.work(ctx, cheap, cost) || ctx.Err() == nil // it has waited for long enough
}

// work waits until there is a turn, or adds to the cost of the one that the permit has.
//
// Costly requests take turns: half as many are worked on at a time as Go runs goroutines, so that cheap ones are answered beside them. So do the
// cheap requests of a party that has had more than its share.
func (p *Permit) work(ctx context.Context, k kind, cost uint64) bool {
	if p.turn != nil && p.turn.kind >= k {
		p.turn.charge(cost)
		return true
	}
	p.giveBack()
	if p.turn = p.of.turns.begin(ctx, p.of.Party(ctx).payer(), k, cost); p.turn == nil && k == costly && ctx.Err() == nil { // otherwise its client has gone
		p.of.metrics.Overload.WithLabelValues("costly").Inc()
	}
	return p.turn != nil
}

// Waiting lets the request give its turn away while it waits for servers.
func (p *Permit) Waiting(ctx context.Context) context.Context {
	if p.turn == nil || p.turn.kind == free {
		return ctx
	}
	return storage.WithWait(ctx, p.turn.Wait)
}

// End is called when only sending the answer is left, and again at the end in any case.
func (p *Permit) End() {
	l := p.of
	if l == nil {
		return
	}
	p.of = nil
	p.giveBack()
	l.working.Add(-1)
	l.requests.Release(1)
}

func (p *Permit) giveBack() {
	if p.turn != nil {
		p.turn.end()
		p.turn = nil
	}
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

// Send admits an answer that is to be sent to the party of a context. The caller calls sent when it has been sent. A long answer does not wait
// for room: it would keep its memory and its turn meanwhile.
func (l *Limiter) Send(ctx context.Context, length int) (sent func(), ok bool) {
	if length < LongAnswer {
		return func() {}, true
	}
	return l.admitBytes(ctx, sending, int64(length))
}

// Receive admits a body of so many bytes, more than [CostlyBytes], from the party of a context. The caller calls arrived when all of it has
// arrived, or when it no longer waits for the rest.
func (l *Limiter) Receive(ctx context.Context, length int64) (arrived func(), ok bool) {
	return l.admitBytes(ctx, receiving, length)
}

func (l *Limiter) admitBytes(ctx context.Context, direction int, n int64) (release func(), ok bool) {
	if release, ok = l.hold(l.Party(ctx), direction, n); !ok {
		l.metrics.Overload.WithLabelValues([...]string{sending: "writing", receiving: "reading"}[direction]).Inc()
	}
	return release, ok
}

// hold takes n bytes of the room in a direction, if there are so many.
//
// A user, or an address, may hold half of what is then left, as the queues of a switch that share its memory may (dynamic
// thresholds, Choudhury and Hahne 1998): the more is taken, the less each may hold, so that there is room for those who hold nothing.
// A client that is alone may have two answers of the greatest length.
func (l *Limiter) hold(of Party, direction int, n int64) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := held{sending: longest * int64(l.Answer), receiving: max(longest*l.Body, bodiesAtLeast)}
	left := room[direction] - l.held[direction] - n
	ok = left >= 0
	for _, one := range of.each() {
		ok = ok && (one == (Party{}) || l.of(one).held[direction]+n <= left/2)
	}
	if !ok {
		return func() {}, false
	}
	add := func(n int64) {
		l.held[direction] += n
		l.change(of, func(s *share) { s.held[direction] += n })
	}
	add(n)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		add(-n)
	}, true
}
