package identity

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// clock is a clock that stands still until it is moved.
type clock struct{ now time.Time }

func (c *clock) limits(cfg LimitsConfig) *Limits {
	c.now = time.Now()
	cfg.Now = func() time.Time { return c.now }
	return NewLimits(cfg)
}

var here = netip.MustParseAddr("192.0.2.1")

// refusedFor returns the seconds to wait, 0 if there was no error.
func refusedFor(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	known, ok := apierr.Of(err)
	must.That(t, ok && known.Code == apierr.CodeRateLimited && known.Retryable, "%v", err)
	seconds, ok := known.Extensions()["retryAfter"].(int)
	must.That(t, ok && seconds >= 1, "%+v", known)
	return seconds
}

func address(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

func TestLimitPerHandleAndAddress(t *testing.T) {
	t.Parallel()
	var c clock
	l := c.limits(LimitsConfig{PerHandle: 6, PerAddress: 100})
	for i := range 6 {
		must.Equal(t, fmt.Sprint("the wait at attempt ", i), refusedFor(t, l.SignIn(here, "ann")), 0)
	}
	check.Equal(t, "the wait", refusedFor(t, l.SignIn(here, "ANN")), 10)
	check.Equal(t, "the wait for another handle", refusedFor(t, l.SignIn(here, "bob")), 0)
	check.Equal(t, "the wait of the owner elsewhere", refusedFor(t, l.SignIn(address(1), "ann")), 0)
	c.now = c.now.Add(9 * time.Second)
	check.Equal(t, "the wait after 9 s", refusedFor(t, l.SignIn(here, "ann")), 1)
	c.now = c.now.Add(time.Second)
	check.Equal(t, "the wait after 10 s", refusedFor(t, l.SignIn(here, "ann")), 0)
	check.Equal(t, "the second wait after 10 s", refusedFor(t, l.SignIn(here, "ann")), 10)
	l.SignedIn(address(1), "ann")
	check.Equal(t, "the wait after the right password elsewhere", refusedFor(t, l.SignIn(here, "ann")), 10)
	l.SignedIn(here, "Ann")
	check.Equal(t, "the wait after the right password", refusedFor(t, l.SignIn(here, "ann")), 0)
}

// Attempts at one handle from always new addresses have together ten times the limit of one address. Attempts
// from addresses from which the owner has signed in do not count towards that.
func TestLimitPerHandle(t *testing.T) {
	t.Parallel()
	var c clock
	l := c.limits(LimitsConfig{PerHandle: 6, PerAddress: 100})
	must.OK(t, l.SignIn(here, "ann"))
	l.SignedIn(here, "ann")
	for i := range 59 { // the owner's first attempt was from an address that was not known yet
		must.Equal(t, fmt.Sprint("the wait at attempt ", i), refusedFor(t, l.SignIn(address(i), "ann")), 0)
	}
	check.Equal(t, "the wait from one address too many", refusedFor(t, l.SignIn(address(60), "ann")), 1)
	check.Equal(t, "the wait of the owner", refusedFor(t, l.SignIn(here, "ann")), 0)
	check.Equal(t, "the wait for another handle", refusedFor(t, l.SignIn(address(61), "bob")), 0)
	for range 5 {
		l.SignIn(here, "ann")
	}
	check.Equal(t, "the wait at a known address, which has a limit, too", refusedFor(t, l.SignIn(here, "ann")), 10)
}

func TestLimitPerAddress(t *testing.T) {
	t.Parallel()
	var c clock
	l := c.limits(LimitsConfig{PerHandle: 2, PerAddress: 4})
	for i := range 4 {
		must.Equal(t, fmt.Sprint("the wait at attempt ", i), refusedFor(t, l.SignIn(here, fmt.Sprint("handle", i))), 0)
	}
	l.SignedIn(here, "handle0") // one known password does not let a client try all others
	for range 10 {
		must.Equal(t, "the wait", refusedFor(t, l.SignIn(here, "victim")), 15)
	}
	// Refused attempts from one address have not used up the limit of the handle.
	for i := range 2 {
		check.Equal(t, "the wait for the handle elsewhere", refusedFor(t, l.SignIn(address(i), "victim")), 0)
	}
	check.Equal(t, "the wait to register, which counts apart", refusedFor(t, l.SignUp(here)), 0)
	for range 3 {
		l.SignUp(here)
	}
	check.Equal(t, "the wait to register", refusedFor(t, l.SignUp(here)), 15)
}

func TestAddressesThatAreOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::1", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"fe80::1%eth0", "fe80::1%eth1", true},
	} {
		check.Equal(t, fmt.Sprint(c.a, " and ", c.b), AddressKey(netip.MustParseAddr(c.a)) == AddressKey(netip.MustParseAddr(c.b)), c.same)
	}
	check.That(t, AddressKey(netip.Addr{}) != "" && AddressKey(netip.Addr{}) != AddressKey(here), "an address that is not known")
}

func TestNoLimits(t *testing.T) {
	t.Parallel()
	l := NewLimits(LimitsConfig{})
	for range 1000 {
		must.OK(t, l.SignIn(here, "ann"))
		must.OK(t, l.SignUp(here))
		l.SignedIn(here, "ann")
	}
}

// TestLimitsAreBounded: whatever handles and addresses are invented, only a bounded number of them are
// remembered, and each takes bounded memory.
func TestLimitsAreBounded(t *testing.T) {
	t.Parallel()
	var c clock
	l := c.limits(LimitsConfig{PerHandle: 10, PerAddress: 10, Entries: 100})
	for i := range 5000 {
		handle := fmt.Sprintf("%d%1000d", i, i)
		must.OK(t, l.SignIn(address(i), handle))
		l.SignedIn(address(i), handle)
		must.OK(t, l.SignIn(address(i), handle))
	}
	check.Equal(t, "addresses are known", l.known.Len(), 100)
	for _, b := range []*buckets{l.pairs, l.handles, l.addresses} {
		check.Equal(t, "keys that are remembered", b.keys.Len(), 100)
		for _, key := range b.keys.Keys() {
			check.That(t, len(key) <= 64+len(" 255.255.255.255"), "a key of %d bytes", len(key))
		}
	}
}

// TestLimitsAtOnce: no more attempts of many goroutines at once succeed than of one after another.
func TestLimitsAtOnce(t *testing.T) {
	t.Parallel()
	var c clock
	l := c.limits(LimitsConfig{PerHandle: 50, PerAddress: 1000})
	var through atomic.Int64
	var running sync.WaitGroup
	for range 10 {
		running.Go(func() {
			for range 50 {
				if l.SignIn(here, "ann") == nil {
					through.Add(1)
				}
			}
		})
	}
	running.Wait()
	check.Equal(t, "requests that got through", through.Load(), 50)
}

func TestLimitOfWrites(t *testing.T) {
	t.Parallel()
	var c clock
	l := c.limits(LimitsConfig{PerUser: 4})
	wait := func(user storage.UserID, mutation string, objects int) int {
		t.Helper()
		return refusedFor(t, l.Write(t.Context(), user, mutation, objects))
	}
	got := []int{
		wait(7, "follow", 1), wait(7, "follow", 0), wait(7, "follow", 10), wait(7, "follow", 1), wait(7, "follow", 1),
		wait(7, "unfollow", 1), wait(8, "follow", 1), // another mutation, another user
		wait(7, "followMany", 25), wait(7, "followMany", 11), wait(7, "followMany", 1), wait(7, "followMany", 1),
		wait(9, "followMany", 500), wait(9, "followMany", 1), // no call counts more than all that are allowed
	}
	want := []int{0, 0, 0, 0, 15, 0, 0, 0, 15, 0, 15, 0, 15}
	check.That(t, slices.Equal(got, want), "wait %d s, not %d", got, want)
	c.now = c.now.Add(15 * time.Second)
	check.Equal(t, "the wait after 15 s", wait(7, "follow", 1), 0)
}

// Where gateways count together, each refuses what is too much for all, until their minute is over. A counter that fails refuses nothing.
func TestLimitOfWritesOnAllGateways(t *testing.T) {
	t.Parallel()
	var c clock
	counter, failure := 0, error(nil)
	gateways := []*Limits{c.limits(LimitsConfig{PerUser: 4}), c.limits(LimitsConfig{PerUser: 4})}
	for _, l := range gateways {
		l.CountAll = func(_ context.Context, _ string, n int) (int, time.Duration, error) {
			counter += n
			return counter, 10 * time.Second, failure
		}
	}
	wait := func(gateway int) int {
		t.Helper()
		return refusedFor(t, gateways[gateway].Write(t.Context(), 7, "follow", 1))
	}
	got, want := []int{wait(0), wait(1), wait(0), wait(1), wait(0), wait(1)}, []int{0, 0, 0, 0, 10, 10}
	check.That(t, slices.Equal(got, want), "wait %d s, not %d", got, want)
	failure = errors.New("away")
	check.Equal(t, "the wait without the counters", wait(1), 0)
	failure, counter, c.now = nil, 0, c.now.Add(10*time.Second)
	check.Equal(t, "the wait in the next minute", wait(0), 0)
}

// Who waits for as long as the counters of all gateways ask for is let in: a refused change uses up nothing of this one.
func TestRefusedChangesUseUpNothing(t *testing.T) {
	t.Parallel()
	var c clock
	counted := 60
	l := c.limits(LimitsConfig{PerUser: 60})
	l.CountAll = func(_ context.Context, _ string, n int) (int, time.Duration, error) {
		return counted + n, 10 * time.Second, nil
	}
	follow500 := func() int { return refusedFor(t, l.Write(t.Context(), 7, "followMany", 500)) }
	check.Equal(t, "the wait", follow500(), 10)
	counted, c.now = 0, c.now.Add(10*time.Second)
	check.Equal(t, "the wait after that", follow500(), 0)
	check.Equal(t, "the wait for one more", follow500(), 40)
}

// What is remembered of a handle is the handle, and not the request whose text it is a part of.
func TestLimitsKeepNoTextOfRequests(t *testing.T) {
	t.Parallel()
	l := new(clock).limits(LimitsConfig{PerHandle: 6, PerAddress: 100})
	text := strings.Repeat("ann, and a password ", 1000)
	handle := text[:3]
	must.OK(t, l.SignIn(here, handle))
	for _, b := range []*buckets{l.pairs, l.handles, l.addresses} {
		for _, key := range b.keys.Keys() {
			check.That(t, unsafe.StringData(key) != unsafe.StringData(handle), "%q is a part of a text of %d bytes", key, len(text))
		}
	}
}
