package identity

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"kith/graph/apierr"
	"kith/graph/defaults"
	"kith/storage"
)

// LimitsConfig bounds attempts. 0 means no bound.
type LimitsConfig struct {
	// PerHandle is how many passwords may be tried for one handle from one address in a
	// minute. Addresses from which nobody has signed in with that handle may together try
	// [strangers] times as many.
	PerHandle int

	// PerAddress is how many passwords may be tried, and how many users registered,
	// from one address in a minute, as [AddressKey] counts it.
	PerAddress int

	// PerUser is how often a user may call each mutation in a minute. A call counts once for each
	// [objectsACall] of the objects that it changes.
	PerUser int

	// Entries is how many handles, addresses, and pairs of them are remembered at most.
	// Defaults to 65,536 of each kind (some 45 MB in all).
	Entries int

	// Now is the clock. Defaults to [time.Now].
	Now func() time.Time
}

// Limits bounds how often passwords are tried, and how often users write. Each gateway counts for
// itself, except for writes where there is a Redis. It is safe for concurrent use.
//
// An attacker on one handle must not lock its owner out. So attempts are first counted by handle
// and address. Attempts from many addresses are also counted by the handle alone, with a higher
// limit. That limit does not apply to addresses from which somebody has signed in with the handle.
type Limits struct {
	now                  func() time.Time
	pairs                *buckets // by handle and address
	handles              *buckets // by handle, for addresses that are not known for it
	addresses, newcomers *buckets
	writers              *buckets // by user and mutation

	// CountAll adds to a counter of all gateways, which is forgotten after its minute, and returns its value and how long that lasts. Nil:
	// there are none.
	CountAll func(ctx context.Context, counter string, n int) (value int, lasts time.Duration, err error)

	known *lru.Cache[string, struct{}] // handles with addresses from which a user has signed in with them
}

// objectsACall is how many objects a call of a mutation may change without counting twice.
const objectsACall = 10

// strangers is how many times the limit of one address all unknown addresses together have on one
// handle.
const strangers = 10

// NewLimits never fails.
func NewLimits(cfg LimitsConfig) *Limits {
	cfg = defaults.For(cfg, LimitsConfig{Entries: 1 << 16, Now: time.Now})
	known, err := lru.New[string, struct{}](cfg.Entries)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return &Limits{
		now:       cfg.Now,
		known:     known,
		pairs:     newBuckets(cfg.PerHandle, cfg.Entries),
		handles:   newBuckets(strangers*cfg.PerHandle, cfg.Entries),
		addresses: newBuckets(cfg.PerAddress, cfg.Entries),
		newcomers: newBuckets(cfg.PerAddress, cfg.Entries),
		writers:   newBuckets(cfg.PerUser, cfg.Entries),
	}
}

// SignIn is called before a password is checked. The error is
// RATE_LIMITED with the seconds to wait as `retryAfter`. An address that is over its limit
// does not use up the handle's limit, so that one address cannot lock everybody out.
func (l *Limits) SignIn(address netip.Addr, handle string) error {
	if err := l.take(l.addresses, AddressKey(address)); err != nil {
		return err
	}
	pair := pairKey(address, handle)
	if err := l.take(l.pairs, pair); err != nil {
		return err
	}
	if _, known := l.known.Get(pair); known {
		return nil
	}
	return l.take(l.handles, handleKey(handle))
}

// SignedIn is called when the password was right: earlier attempts on the handle from
// the address are cleared, and the address is known from now on. The attempts counted for the
// address alone stay. Otherwise a user could use their own password to be able to guess others.
func (l *Limits) SignedIn(address netip.Addr, handle string) {
	pair := pairKey(address, handle)
	l.pairs.forget(pair)
	l.known.Add(pair, struct{}{})
}

// SignUp is called before a user is registered. Its errors are those of SignIn.
func (l *Limits) SignUp(address netip.Addr) error {
	return l.take(l.newcomers, AddressKey(address))
}

// Write is called before a user changes so many objects by a mutation. Its errors are those of
// SignIn. If the counters of all gateways cannot be reached, those of this one decide.
func (l *Limits) Write(ctx context.Context, user storage.UserID, mutation string, objects int) error {
	most := l.writers.burst
	if most == 0 {
		return nil
	}
	n := min(max(1, (objects+objectsACall-1)/objectsACall), most)
	key := user.String() + ":" + mutation
	wait, giveBack := l.writers.take(key, n, l.now())
	if wait > 0 || l.CountAll == nil {
		return tooMany(apierr.TooManyWrites, "too many of these changes", wait)
	}
	count, lasts, err := l.CountAll(ctx, "writes:"+key, n)
	if err == nil && count > most {
		giveBack() // or who waits as long as is asked for might be refused here then
		return tooMany(apierr.TooManyWrites, "too many of these changes", lasts)
	}
	return nil
}

func (l *Limits) take(b *buckets, key string) error {
	wait, _ := b.take(key, 1, l.now())
	return tooMany(apierr.TooManySignIns, "too many attempts", wait)
}

// tooMany is the error for who has to wait; nil if nobody has to.
func tooMany(reason apierr.Reason, what string, wait time.Duration) error {
	if wait == 0 {
		return nil
	}
	return reason.Error("%s: wait for a while", what).After(wait)
}

// AddressKey is the form in which an address is counted: itself, or the first 64 bits of an IPv6
// address, which one customer has.
func AddressKey(address netip.Addr) string {
	address = address.Unmap().WithZone("")
	if !address.Is6() {
		return address.String() // "invalid IP" for an unknown address: all of these share a bucket
	}
	prefix, _ := address.Prefix(64) // fails only for other lengths
	return prefix.String()
}

func pairKey(address netip.Addr, handle string) string {
	return handleKey(handle) + " " + AddressKey(address)
}

// handleKey writes a handle as it is looked up. A text that cannot be a handle takes no room, nor does the request that the handle is a part of.
func handleKey(handle string) string {
	const most = 64
	return strings.ToLower(strings.Clone(handle[:min(len(handle), most)]))
}

// buckets holds a token bucket for each of the keys used last. A forgotten key starts over; the
// number of keys makes it costly to have one forgotten.
type buckets struct {
	limit rate.Limit
	burst int

	mu   sync.Mutex
	keys *simplelru.LRU[string, *rate.Limiter]
}

func newBuckets(perMinute, entries int) *buckets {
	if perMinute <= 0 {
		return &buckets{}
	}
	keys, err := simplelru.NewLRU[string, *rate.Limiter](entries, nil)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return &buckets{limit: rate.Limit(float64(perMinute) / 60), burst: perMinute, keys: keys}
}

// take returns 0 if there were n tokens, which is no more than a bucket holds, and gives them back if asked to; otherwise the time until there are.
func (b *buckets) take(key string, n int, now time.Time) (wait time.Duration, giveBack func()) {
	if b.burst == 0 {
		return 0, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket, ok := b.keys.Get(key)
	if !ok {
		bucket = rate.NewLimiter(b.limit, b.burst)
		b.keys.Add(key, bucket)
	}
	reservation := bucket.ReserveN(now, n)
	giveBack = func() { reservation.CancelAt(now) }
	if wait = reservation.DelayFrom(now); wait > 0 {
		giveBack()
	}
	return wait, giveBack
}

func (b *buckets) forget(key string) {
	if b.burst == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys.Remove(key)
}
