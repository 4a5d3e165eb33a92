package gateway

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// refusals slow down a client that is refused again and again. A refusal costs the gateway a
// millisecond or so; a client that sends the next such request as soon as it has the answer
// would keep a processor busy. Requests that are not refused are never slowed down.
type refusals struct {
	addresses *lru.Cache[string, *rate.Limiter] // by [Party.Address]
}

const (
	// refusalsASecond and refusalsAtOnce are how many refusals an address gets without a wait: per
	// second, and together. For each refusal beyond that it waits.
	refusalsASecond = 20
	refusalsAtOnce  = 50
	refusalPause    = 100 * time.Millisecond

	// refusedAddresses is how many addresses are remembered: some 2 MB.
	refusedAddresses = 8192
)

func newRefusals() refusals {
	addresses, err := lru.New[string, *rate.Limiter](refusedAddresses)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return refusals{addresses}
}

// pause counts a refusal, and waits if there were too many. Backends that act for many users
// have no address and do not wait.
func (r refusals) pause(ctx context.Context, party Party) {
	if party.Address == "" {
		return
	}
	r.addresses.ContainsOrAdd(party.Address, rate.NewLimiter(refusalsASecond, refusalsAtOnce))
	if limiter, ok := r.addresses.Get(party.Address); !ok || limiter.Allow() {
		return
	}
	select {
	case <-time.After(refusalPause):
	case <-ctx.Done():
	}
}
