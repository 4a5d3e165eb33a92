package identity

import (
	"cmp"
	"math"
	"net/netip"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"kith/graph/apierr"
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

	// PerUser is how many posts and comments a user may write, and favorites it may make or end, in a minute.
	PerUser int

	// Entries is how many handles, addresses, and pairs of them are remembered at most.
	// Defaults to 65,536 of each kind (some 45 MB in all).
	Entries int

	// Now is the clock. Defaults to [time.Now].
	Now func() time.Time
}

// Limits bounds how often passwords are tried. Each gateway counts for itself. It
// is safe for concurrent use.
//
// An attacker on one handle must not lock its owner out. So attempts are first counted by handle
// and address. Attempts from many addresses are also counted by the handle alone, with a higher
// limit. That limit does not apply to addresses from which somebody has signed in with the handle.
type Limits struct {
	now                  func() time.Time
	pairs                *buckets // by handle and address
	handles              *buckets // by handle, for addresses that are not known for it
	addresses, newcomers *buckets
	writers              *buckets

	known *lru.Cache[string, struct{}] // handles with addresses from which a user has signed in with them
}

// strangers is how many times the limit of one address all unknown addresses together have on one
// handle.
const strangers = 10

// NewLimits never fails.
func NewLimits(cfg LimitsConfig) *Limits {
	cfg.Entries = cmp.Or(cfg.Entries, 1<<16)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
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
// [apierr.RateLimited] with the seconds to wait as `retryAfter`. An address that is over its limit
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

// Write is called before a user publishes a post or writes a comment. Its errors are those of
// SignIn.
func (l *Limits) Write(user storage.UserID) error {
	return l.take(l.writers, user.String())
}

func (l *Limits) take(b *buckets, key string) error {
	wait := b.take(key, l.now())
	if wait == 0 {
		return nil
	}
	err := apierr.RateLimited("too many attempts")
	if known, ok := apierr.Of(err); ok {
		known.Details = map[string]any{"retryAfter": int(math.Ceil(wait.Seconds()))}
	}
	return err
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

// handleKey writes a handle as it is looked up. A text that cannot be a handle takes no room.
func handleKey(handle string) string {
	const most = 64
	return strings.ToLower(handle[:min(len(handle), most)])
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

// take returns 0 if there was a token, otherwise the time until there is one.
func (b *buckets) take(key string, now time.Time) time.Duration {
	if b.burst == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket, ok := b.keys.Get(key)
	if !ok {
		bucket = rate.NewLimiter(b.limit, b.burst)
		b.keys.Add(key, bucket)
	}
	reservation := bucket.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

func (b *buckets) forget(key string) {
	if b.burst == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys.Remove(key)
}
