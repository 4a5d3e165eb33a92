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
		if wait := refusedFor(t, l.SignIn(here, "ann")); wait != 0 {
			t.Fatalf("attempt %d: wait %d s", i, wait)
		}
	}
	if wait := refusedFor(t, l.SignIn(here, "ANN")); wait != 10 {
		t.Errorf("wait %d s", wait)
	}
	if wait := refusedFor(t, l.SignIn(here, "bob")); wait != 0 {
		t.Errorf("another handle: wait %d s", wait)
	}
	if wait := refusedFor(t, l.SignIn(address(1), "ann")); wait != 0 {
		t.Errorf("the owner is locked out: wait %d s", wait)
	}
	c.now = c.now.Add(9 * time.Second)
	if wait := refusedFor(t, l.SignIn(here, "ann")); wait != 1 {
		t.Errorf("after 9 s: wait %d s", wait)
	}
	c.now = c.now.Add(time.Second)
	if wait := refusedFor(t, l.SignIn(here, "ann")); wait != 0 {
		t.Errorf("after 10 s: wait %d s", wait)
	}
	if wait := refusedFor(t, l.SignIn(here, "ann")); wait != 10 {
		t.Errorf("after 10 s, the second: wait %d s", wait)
	}
	l.SignedIn(address(1), "ann")
	if wait := refusedFor(t, l.SignIn(here, "ann")); wait != 10 {
		t.Errorf("after the right password elsewhere: wait %d s", wait)
	}
	l.SignedIn(here, "Ann")
	if wait := refusedFor(t, l.SignIn(here, "ann")); wait != 0 {
		t.Errorf("after the right password: wait %d s", wait)
	}
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
		if wait := refusedFor(t, l.SignIn(address(i), "ann")); wait != 0 {
			t.Fatalf("attempt %d: wait %d s", i, wait)
		}
	}
	if wait := refusedFor(t, l.SignIn(address(60), "ann")); wait != 1 {
		t.Errorf("from one address too many: wait %d s", wait)
	}
	if wait := refusedFor(t, l.SignIn(here, "ann")); wait != 0 {
		t.Errorf("the owner is locked out: wait %d s", wait)
	}
	if wait := refusedFor(t, l.SignIn(address(61), "bob")); wait != 0 {
		t.Errorf("another handle: wait %d s", wait)
	}
	for range 5 {
		l.SignIn(here, "ann")
	}
	if wait := refusedFor(t, l.SignIn(here, "ann")); wait != 10 {
		t.Errorf("a known address has a limit, too: wait %d s", wait)
	}
}

func TestLimitPerAddress(t *testing.T) {
	t.Parallel()
	var c clock
	l := c.limits(LimitsConfig{PerHandle: 2, PerAddress: 4})
	for i := range 4 {
		if wait := refusedFor(t, l.SignIn(here, fmt.Sprint("handle", i))); wait != 0 {
			t.Fatalf("attempt %d: wait %d s", i, wait)
		}
	}
	l.SignedIn(here, "handle0") // one known password does not let a client try all others
	for range 10 {
		if wait := refusedFor(t, l.SignIn(here, "victim")); wait != 15 {
			t.Fatalf("wait %d s", wait)
		}
	}
	// Refused attempts from one address have not used up the limit of the handle.
	for i := range 2 {
		if wait := refusedFor(t, l.SignIn(address(i), "victim")); wait != 0 {
			t.Errorf("the handle is locked: wait %d s", wait)
		}
	}
	if wait := refusedFor(t, l.SignUp(here)); wait != 0 {
		t.Errorf("registering counts apart: wait %d s", wait)
	}
	for range 3 {
		l.SignUp(here)
	}
	if wait := refusedFor(t, l.SignUp(here)); wait != 15 {
		t.Errorf("registering: wait %d s", wait)
	}
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
		if same := AddressKey(netip.MustParseAddr(c.a)) == AddressKey(netip.MustParseAddr(c.b)); same != c.same {
			t.Errorf("%s and %s: %t", c.a, c.b, same)
		}
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
		if n := b.keys.Len(); n != 100 {
			t.Errorf("%d are remembered", n)
		}
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
	if n := through.Load(); n != 50 {
		t.Errorf("%d got through", n)
	}
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
	if wait := wait(7, "follow", 1); wait != 0 {
		t.Errorf("after 15 s: wait %d s", wait)
	}
}

// Where gateways count together, each refuses what is too much for all, until the next minute. A counter that fails refuses nothing.
func TestLimitOfWritesOnAllGateways(t *testing.T) {
	t.Parallel()
	var c clock
	counters, failure := make(map[string]int), error(nil)
	gateways := []*Limits{c.limits(LimitsConfig{PerUser: 4}), c.limits(LimitsConfig{PerUser: 4})}
	for _, l := range gateways {
		l.CountAll = func(_ context.Context, counter string, n int) (int, error) {
			counters[counter] += n
			return counters[counter], failure
		}
	}
	c.now = time.Date(2026, 1, 1, 0, 0, 50, 0, time.UTC)
	wait := func(gateway int) int {
		t.Helper()
		return refusedFor(t, gateways[gateway].Write(t.Context(), 7, "follow", 1))
	}
	if got, want := []int{wait(0), wait(1), wait(0), wait(1), wait(0), wait(1)}, []int{0, 0, 0, 0, 10, 10}; !slices.Equal(got, want) {
		t.Errorf("wait %d s, not %d", got, want)
	}
	failure = errors.New("away")
	if wait := wait(1); wait != 0 {
		t.Errorf("without the counters: wait %d s", wait)
	}
	failure, c.now = nil, c.now.Add(10*time.Second)
	if wait := wait(0); wait != 0 {
		t.Errorf("in the next minute: wait %d s", wait)
	}
}

// Who waits for as long as the counters of all gateways ask for is let in: a refused change uses up nothing of this one.
func TestRefusedChangesUseUpNothing(t *testing.T) {
	t.Parallel()
	var c clock
	counted := 60
	l := c.limits(LimitsConfig{PerUser: 60})
	l.CountAll = func(_ context.Context, _ string, n int) (int, error) { return counted + n, nil }
	c.now = time.Date(2026, 1, 1, 0, 0, 50, 0, time.UTC)
	follow500 := func() int { return refusedFor(t, l.Write(t.Context(), 7, "followMany", 500)) }
	if wait := follow500(); wait != 10 {
		t.Errorf("wait %d s, not 10", wait)
	}
	counted, c.now = 0, c.now.Add(10*time.Second)
	if wait := follow500(); wait != 0 {
		t.Errorf("after that: wait %d s", wait)
	}
	if wait := follow500(); wait != 40 {
		t.Errorf("one more: wait %d s, not 40", wait)
	}
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
