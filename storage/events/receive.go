package events

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/internal/sleep"
)

// quiet is how long nothing comes until Redis is asked whether it is still there,
// and how long it may take to answer.
const quiet = time.Second

// maxSenders bounds how many gateways are remembered by their last number. It is
// reached when so many have started since this one connected; then all are
// forgotten, at the price of a gap.
const maxSenders = 10_000

// receive hands on what the other gateways send. Pub/sub keeps nothing for who is
// not connected, so every connection begins with a gap.
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
	// Receiving does not end with the context; closing the connection does it.
	defer context.AfterFunc(ctx, func() { _ = subscription.Close() })()

	numbers := make(map[uint64]uint64) // by sender
	for asked := false; ; {
		got, err := subscription.ReceiveTimeout(ctx, quiet)
		if isTimeout(err) && !asked {
			asked = true
			if subscription.Ping(ctx) == nil {
				continue
			}
		}
		if err != nil {
			return
		}
		asked = false
		switch got := got.(type) {
		case *redis.Subscription:
			// The library subscribes again by itself when a connection breaks.
			clear(numbers)
			b.gap("connected")
			b.hear(true)
		case *redis.Message:
			b.accept(got.Payload, numbers)
		}
	}
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// accept hands a message to the hub, unless it is this gateway's own or came
// before. A gap comes before it when others are missing.
func (b *Bus) accept(text string, numbers map[uint64]uint64) {
	m, ok := decode(text)
	if !ok {
		b.gap("unreadable")
		return
	}
	if m.sender == b.sender {
		return
	}
	last, known := numbers[m.sender]
	switch {
	case known && m.number <= last:
		return
	case !known && len(numbers) >= maxSenders:
		clear(numbers)
		b.gap("missing")
	case m.number > last+1: // of a sender that is not known, whatever came before may be missing
		b.gap("missing")
	}
	numbers[m.sender] = m.number
	b.metrics.received.Add(float64(len(m.events)))
	b.hub.Publish(m.events...)
}

func (b *Bus) gap(reason string) {
	b.metrics.gaps.WithLabelValues(reason).Inc()
	b.hub.Publish(Event{Kind: Gap})
}
