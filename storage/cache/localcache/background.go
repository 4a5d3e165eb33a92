package localcache

import (
	"context"
	"sync"
	"time"

	"kith/storage"
)

// fillTime bounds a read that several requests may wait for.
const fillTime = 10 * time.Second

// background is the reads that a cache makes on behalf of several requests: none of them ends such a read, but closing the cache does.
type background struct {
	ctx     context.Context // ends when the cache is closed
	end     context.CancelFunc
	running sync.WaitGroup

	mu     sync.RWMutex // so that nothing begins while close waits
	closed bool
}

func newBackground() *background {
	b := &background{}
	b.ctx, b.end = context.WithCancel(context.Background())
	return b
}

// start runs a read in a goroutine. Once the cache is closed, it runs the read at once, which then fails.
func (b *background) start(read func()) {
	b.mu.RLock()
	closed := b.closed
	if !closed {
		b.running.Go(read)
	}
	b.mu.RUnlock()
	if closed {
		read()
	}
}

// onBehalfOf returns a context with the values of a request, that ends after a time or when the cache is closed. It has
// outages of its own: others wait for the read who have not found a shard silent.
func (b *background) onBehalfOf(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(storage.RememberOutages(context.WithoutCancel(ctx)), limit)
	stop := context.AfterFunc(b.ctx, cancel)
	if b.ctx.Err() != nil { // then AfterFunc only begins to end it
		cancel()
	}
	return ctx, func() { stop(); cancel() }
}

// close ends all reads and waits for them.
func (b *background) close() {
	b.end()
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.running.Wait()
}
