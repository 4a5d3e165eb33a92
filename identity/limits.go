package identity

import (
	"math"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"kith/graph/apierr"
)

// LimitsConfig says how often somebody may try. 0 means as often as one likes.
type LimitsConfig struct {
	// PerHandle is how many passwords may be tried for one handle in a minute.
	PerHandle int

	// PerAddress is how many passwords may be tried, and how many users registered,
	// from one address in a minute, as [AddressKey] counts it.
	PerAddress int

	// Entries is how many handles, and how many addresses, are remembered at most.
	// Defaults to 65,536 (some 20 MB).
	Entries int

	// Now is the clock. Defaults to [time.Now].
	Now func() time.Time
}

// Limits bounds how often passwords are tried. Each gateway counts for itself. It
// is safe for concurrent use.
type Limits struct {
	now                  func() time.Time
	handles              *buckets
	addresses, newcomers *buckets
}

// NewLimits never fails.
func NewLimits(cfg LimitsConfig) *Limits {
	if cfg.Entries == 0 {
		cfg.Entries = 1 << 16
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Limits{
		now:       cfg.Now,
		handles:   newBuckets(cfg.PerHandle, cfg.Entries),
		addresses: newBuckets(cfg.PerAddress, cfg.Entries),
		newcomers: newBuckets(cfg.PerAddress, cfg.Entries),
	}
}

// SignIn is called before a password is looked at. The error is
// [apierr.RateLimited] with the seconds to wait as `retryAfter`. An address that is
// over its limit does not use a handle's up, so that one place cannot lock
// everybody out.
func (l *Limits) SignIn(address netip.Addr, handle string) error {
	if err := l.take(l.addresses, AddressKey(address)); err != nil {
		return err
	}
	return l.take(l.handles, handleKey(handle))
}

// SignedIn is called when the password was right: the handle's earlier attempts
// are forgotten. The address's are not, or whoever has one password could use it to
// guess others.
func (l *Limits) SignedIn(handle string) { l.handles.forget(handleKey(handle)) }

// SignUp is called before a user is registered; errors as SignIn.
func (l *Limits) SignUp(address netip.Addr) error {
	return l.take(l.newcomers, AddressKey(address))
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

// AddressKey is what an address counts as: itself, or the first 64 bits of an IPv6 address,
// which is what one customer has.
func AddressKey(address netip.Addr) string {
	address = address.Unmap().WithZone("")
	if !address.Is6() {
		return address.String() // "invalid IP" for one that is not known: those share a bucket
	}
	prefix, _ := address.Prefix(64) // fails only for other lengths
	return prefix.String()
}

// handleKey spells a handle as it is looked up, and keeps what cannot be one from
// taking room.
func handleKey(handle string) string {
	const most = 64
	return strings.ToLower(handle[:min(len(handle), most)])
}

// buckets holds a token bucket for each of the keys used last. Who was forgotten
// starts afresh; the number of keys is what makes it costly to be forgotten.
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

// take returns 0 if there was a token, else how long until there is one.
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
