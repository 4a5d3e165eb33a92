package events

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/sleep"
)

// Bus connects the hubs of all gateways of a deployment.
type Bus struct {
	hub     *Hub
	client  redis.UniversalClient // nil: this is the only gateway
	channel string
	sender  uint64
	metrics *Metrics

	hearing struct {
		sync.Mutex // held while it is called, so that the last call is of the state that lasts
		is         bool
		call       func(bool) // nil: nobody asks
	}

	mu     sync.Mutex
	queue  []Event // what has not been sent to the others yet
	lost   bool    // events were dropped after the last message sent
	waking sleep.Waker
	number uint64 // of the last message; only the sending goroutine uses it

	failing atomic.Bool  // see [Bus.Unheard]
	earlier atomic.Int64 // see [Bus.Earlier]
}

// BusConfig says how gateways reach each other.
type BusConfig struct {
	// Redis carries the messages. Set its ContextTimeoutEnabled, or a hanging Redis is noticed
	// late. Nil means that there is no other gateway.
	Redis redis.UniversalClient

	// Channel is the name of the pub/sub channel; stores that share a Redis need one each. Defaults
	// to "kith:events".
	Channel string

	// Metrics counts what is sent and received. Defaults to none.
	Metrics *Metrics
}

const (
	// maxQueued is how many events wait while Redis is away, or takes them more slowly than an import writes: 20 MB. If there are
	// more, they are dropped, and the others will notice that they missed some.
	maxQueued = 1 << 16
	// maxWhole is how many of them have counts and profiles, some kB each. Those behind only say of whom others have to read again.
	maxWhole = 1 << 12
)

// NewBus makes the bus that feeds a hub. Its Run does the work.
func NewBus(hub *Hub, cfg BusConfig) *Bus {
	return &Bus{
		hub:     hub,
		client:  cfg.Redis,
		channel: cmp.Or(cfg.Channel, "kith:events"),
		sender:  rand.Uint64(),
		metrics: cmp.Or(cfg.Metrics, NewMetrics(nil)),
		waking:  make(sleep.Waker, 1),
	}
}

// OnHearing calls a function at once, and whenever messages of the other gateways begin or cease to
// reach this one, with the state at that moment. There is one such function. Without a Redis
// nothing ever reaches this gateway.
func (b *Bus) OnHearing(f func(bool)) {
	b.hearing.Lock()
	defer b.hearing.Unlock()
	b.hearing.call = f
	f(b.hearing.is)
}

func (b *Bus) hear(is bool) {
	b.hearing.Lock()
	defer b.hearing.Unlock()
	if b.hearing.is == is {
		return
	}
	b.hearing.is = is
	if b.hearing.call != nil {
		b.hearing.call(is)
	}
}

// Publish reports rows of forward sides that are on both sides to this and all other gateways. Like Send, it does
// not wait.
func (b *Bus) Publish(ctx context.Context, rows []storage.Row) {
	var c storage.Change
	for _, r := range rows {
		c.Rows = append(c.Rows, storage.Row{Side: r.Side.Replica(), Edge: r.Edge})
	}
	b.Send(ctx, c)
}

// Send reports a change to this gateway's hub before it returns, and to the other gateways as soon as
// they can be reached. It does not wait for them.
func (b *Bus) Send(_ context.Context, c storage.Change) {
	list := Of(c)
	if len(list) == 0 {
		return
	}
	b.hub.Publish(list...)
	if b.client == nil {
		return
	}
	b.mu.Lock()
	if len(b.queue)+len(list) > maxQueued {
		b.metrics.overflow.Add(float64(len(b.queue) + len(list)))
		b.queue, b.lost = nil, true
	} else {
		for _, e := range list {
			if e.User != nil && len(b.queue) >= maxWhole {
				e.User = &storage.UserChange{User: e.User.User, What: e.User.What}
			}
			b.queue = append(b.queue, e)
		}
	}
	b.metrics.queued.Set(float64(len(b.queue)))
	b.mu.Unlock()
	b.waking.Wake()
}

// Behind reports whether events wait; after the end of Run, whether they have not been sent to the others.
func (b *Bus) Behind() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost || len(b.queue) > 0
}

// Unheard reports whether sending to the others fails at the moment: something has changed, and they do not know.
func (b *Bus) Unheard() bool { return b.failing.Load() }

// Earlier is how many of the gaps only say that a gateway had sent messages before it was first heard over a connection. It rises before such a
// gap is published.
func (b *Bus) Earlier() int64 { return b.earlier.Load() }

// Run exchanges events with the other gateways until the context is done, and ends in no other way.
// Then it sends what is left, for a second at most.
func (b *Bus) Run(ctx context.Context) {
	if b.client == nil {
		<-ctx.Done()
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { b.send(ctx) })
	wg.Go(func() { b.receive(ctx) })
	wg.Wait()
}

// take returns the next message, or false if there is none; a beat is one without events.
func (b *Bus) take(beat bool) (message, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost {
		b.number++ // the others notice that this number is missing
		b.lost, beat = false, false
	} else if len(b.queue) == 0 && !beat {
		return message{}, false
	}
	n := min(len(b.queue), maxMessage)
	b.number++
	m := message{sender: b.sender, number: b.number, events: b.queue[:n:n], beat: beat && n == 0}
	b.queue = b.queue[n:]
	if len(b.queue) == 0 {
		b.queue = nil
	}
	b.metrics.queued.Set(float64(len(b.queue)))
	return m, true
}

// Timeouts and pauses with Redis.
const (
	sendTimeout = time.Second
	lastSends   = time.Second
	firstPause  = 20 * time.Millisecond
	longPause   = time.Second
)

// send sends message after message, and repeats each until it succeeds: the receivers recognise
// those they already have.
func (b *Bus) send(ctx context.Context) {
	for {
		woken := b.waking.WakesWithin(ctx, quiet)
		if ctx.Err() != nil {
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSends)
			defer cancel()
			b.drain(last, false)
			return
		}
		b.drain(ctx, !woken)
	}
}

// drain sends until there is nothing left or the context is done; if that was nothing, a beat if it is demanded.
func (b *Bus) drain(ctx context.Context, beat bool) {
	for ; ctx.Err() == nil; beat = false {
		m, ok := b.take(beat)
		if !ok {
			return
		}
		text := m.encode()
		pause := firstPause
		for b.publish(ctx, text) != nil {
			if !m.beat || b.Behind() { // otherwise the others miss nothing
				b.failing.Store(true)
				b.metrics.failures.Inc()
			}
			if sleep.For(ctx, pause) != nil {
				b.putBack(m)
				return
			}
			pause = min(2*pause, longPause)
		}
		b.failing.Store(false)
		b.metrics.sent.Add(float64(len(m.events)))
	}
}

func (b *Bus) publish(ctx context.Context, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return b.client.Publish(ctx, b.channel, text).Err()
}

// putBack queues a message again that the last attempt could not send. It may have arrived all the
// same; then it comes twice under different numbers, which is allowed.
func (b *Bus) putBack(m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(m.events, b.queue...)
	b.lost = b.lost || len(m.events) == 0 && !m.beat // it said that events were dropped
}
