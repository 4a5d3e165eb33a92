package events

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage/sleep"
)

// quiet is how long a gateway sends nothing before it sends a message without events. It has to hear its own messages: otherwise it has
// ceased to hear the others, too, or they speak over another Redis, to which the address leads by now.
const quiet = time.Second

// maxSenders bounds how many gateways are remembered by their last number. It is reached if that
// many gateways have started since this one connected; then all are forgotten, which costs a gap.
const maxSenders = 10_000

// receive passes on what the other gateways send. Pub/sub keeps nothing for a client that is not
// connected, so every connection begins with a gap.
func (b *Bus) receive(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		started := time.Now()
		b.listen(ctx)
		if time.Since(started) > longPause {
			pause = firstPause
		}
		if sleep.For(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, longPause)
	}
}

// listen receives over one connection until it breaks.
func (b *Bus) listen(ctx context.Context) {
	subscription := b.client.Subscribe(ctx, b.channel)
	defer subscription.Close()
	defer b.hear(false)
	// The context does not end a receive; closing the connection does.
	defer context.AfterFunc(ctx, func() { _ = subscription.Close() })()

	// When a connection breaks, the library connects again before it says so: that may take longer than what is promised.
	said := make(chan struct{})
	silent := time.AfterFunc(2*quiet, func() { b.hear(false); close(said) })
	defer func() {
		if !silent.Stop() {
			<-said
		}
	}()

	numbers := make(map[uint64]uint64) // by sender
	for own := time.Now(); ; silent.Reset(time.Until(own.Add(2 * quiet))) {
		got, err := subscription.ReceiveTimeout(ctx, quiet)
		if err != nil && !isTimeout(err) || !silent.Stop() {
			return
		}
		switch got := got.(type) {
		case *redis.Subscription:
			// The library subscribes again by itself when a connection breaks.
			clear(numbers)
			b.gap("connected")
			b.hear(true)
			own = time.Now()
		case *redis.Message:
			if b.accept(got.Payload, numbers) {
				own = time.Now()
			}
		}
	}
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// accept passes a message to the hub, unless it is this gateway's own or came before. If messages
// are missing before it, it passes a gap first. own reports whether it is this gateway's own.
func (b *Bus) accept(text string, numbers map[uint64]uint64) (own bool) {
	m, ok := decode(text)
	last, known := numbers[m.sender]
	switch {
	case !ok:
		b.gap("unreadable")
		return false
	case m.sender == b.sender, known && m.number <= last:
		return m.sender == b.sender
	case !known && len(numbers) >= maxSenders:
		clear(numbers)
		b.gap("missing")
	case m.number > last+1: // of an unknown sender, everything before may be missing
		if !known {
			b.earlier.Add(1)
		}
		b.gap("missing")
	}
	numbers[m.sender] = m.number
	b.metrics.received.Add(float64(len(m.events)))
	b.hub.Publish(m.events...)
	return false
}

func (b *Bus) gap(reason string) {
	b.metrics.gaps.WithLabelValues(reason).Inc()
	b.hub.Publish(Event{Kind: Gap})
}
