package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

func TestGatewaysCountEachOther(t *testing.T) {
	store := oracle.New()
	first, second := newPresence(store), newPresence(store)
	check.That(t, first.enter(t.Context()), "the first one is not alone")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var mu sync.Mutex
	var reported []bool
	var watching sync.WaitGroup
	watching.Go(func() {
		first.watch(ctx, func(alone bool) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, alone)
		})
	})
	heard := func(want bool) bool {
		mu.Lock()
		defer mu.Unlock()
		return len(reported) > 0 && reported[len(reported)-1] == want
	}
	check.That(t, !second.enter(t.Context()), "the second one is alone")
	check.That(t, heard(false), "the second one serves before the first one has counted it")
	second.leave()
	must.Soon(t, "the first one notices that the second one has left", func() bool { return heard(true) })
	leave()
	watching.Wait()
	first.leave()
	left, err := store.Holders(t.Context(), presenceKind)
	check.That(t, len(left) == 0 && err == nil, "leases are left: %v, %v", left, err)
}

// Gateways count one another whatever their clocks say, and forget one that has been killed once its lease has not been renewed
// for as long as it lasts.
func TestGatewaysCountEachOtherWithWrongClocks(t *testing.T) {
	for name, location := range map[string]string{
		"SQLite": "sqlite:" + filepath.Join(t.TempDir(), "kith.db"), "MariaDB": "mysql:" + testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0],
	} {
		store := opened.Store(t, sqlstore.Config{Location: location})
		for _, ahead := range []time.Duration{15 * time.Second, -15 * time.Second, time.Hour} {
			right, wrong, later := newPresence(store), newPresence(store), newPresence(store)
			began, passed := time.Now(), time.Duration(0)
			right.now = func() time.Time { return began.Add(passed) }
			wrong.now = func() time.Time { return began.Add(passed + ahead) }
			right.alone(t.Context())
			for range 20 {
				passed += time.Second
				must.That(t, !wrong.alone(t.Context()) && !right.alone(t.Context()), "%s: with a clock that is %s ahead, a gateway thinks that it is alone", name, ahead)
			}
			for range 12 { // the other has been killed
				passed += time.Second
				right.alone(t.Context())
			}
			check.That(t, right.alone(t.Context()), "%s: one that has been killed is still counted", name)
			right.leave()
			check.That(t, later.alone(t.Context()), "%s: the next gateway still counts one that was killed", name)
			later.leave()
		}
	}
}

// A gateway that stood still, and renews its lease at the moment at which another one takes it for dead, is not forgotten.
func TestAGatewayThatRenewsItsLeaseKeepsIt(t *testing.T) {
	store, meanwhile := double.Of(oracle.New()), func() {} // between a look at the leases and a release
	store.Instead.Release = func(ctx context.Context, kind, owner string, until storage.Micros) error {
		now := meanwhile
		meanwhile = func() {}
		now()
		return store.Store.Release(ctx, kind, owner, until)
	}
	first, second := newPresence(store), newPresence(store)
	began, passed := time.Now(), time.Duration(0)
	first.now = func() time.Time { return began.Add(passed) }
	second.now = first.now
	second.alone(t.Context())
	first.alone(t.Context())
	passed = presenceLease
	meanwhile = func() { second.alone(t.Context()) }
	first.alone(t.Context())
	passed += presenceEvery
	check.That(t, !first.alone(t.Context()), "it thinks that it is alone, beside one that has just renewed its lease")
}

// While a gateway stands still, another one may come, take it for dead, and go: then it must not think that it was alone.
func TestAGatewayThatStoodStillMayNotHaveBeenAlone(t *testing.T) {
	store := oracle.New()
	first, second := newPresence(store), newPresence(store)
	began, passed := time.Now(), time.Duration(0)
	first.now = func() time.Time { return began.Add(passed) }
	for _, stands := range []time.Duration{0, presenceRenew, presenceLease - 1, presenceLease, time.Hour} {
		passed += stands
		second.alone(t.Context())
		second.leave()
		check.Equal(t, fmt.Sprintf("after %s it thinks that it is alone", stands), first.alone(t.Context()), stands < presenceLease)
		passed += presenceEvery
		check.That(t, first.alone(t.Context()), "after %s it does not know that it is alone now", stands)
	}
}

// What a gateway has said ends with its lease, whether it has left or was killed.
func TestNothingIsLeftOfGatewaysThatWereUnheard(t *testing.T) {
	store, began, passed := oracle.New(), time.Now(), time.Duration(0)
	gateway := func(unheard bool) *presence {
		r := newPresence(store)
		r.now, r.unheard = func() time.Time { return began.Add(passed) }, func() bool { return unheard }
		r.alone(t.Context())
		return r
	}
	left := func() int {
		leases, err := store.Holders(t.Context(), presenceKind)
		must.OK(t, err)
		return len(leases)
	}
	gateway(true).leave()
	check.Equal(t, "leases of the one that has left", left(), 0)
	gateway(true) // and is killed
	stays := gateway(true)
	for range 12 {
		passed += time.Second
		stays.alone(t.Context())
	}
	check.Equal(t, "leases beside one that was killed: two of the one that is left", left(), 2)
}

// A command that has changed the store beside a gateway, of which nothing tells the gateway without a Redis, makes it forget
// what it keeps.
func TestGatewaysForgetWithoutRedis(t *testing.T) {
	d, of := Config{Redundancy: Sync}, sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")}
	g := openFeedGatewayOf(t, d, of, 0)
	beside := opened.Store(t, of)
	must.OK(t, beside.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "anna", Name: "Anna"}})[0].Err)
	name := func() string { return storage.UserLookups.Read(t.Context(), g.caches.Reader(), 1)[0].Value.Name }
	must.Soon(t, "the gateway keeps something", func() bool { return g.caches.local.IsOn() && name() != "" })
	berta := "Berta"
	_, _, err := beside.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &berta}, storage.MicrosOf(time.Now()))
	must.OK(t, err)
	check.Equal(t, "the user that the gateway keeps, and does not hear of", name(), "Anna")
	must.OK(t, d.ForgetAll(t.Context(), beside))
	check.Equal(t, "what the gateway answers", name(), "Berta")
	left, err := beside.Holders(t.Context(), presenceKind)
	check.That(t, len(left) == 1 && err == nil, "leases are left: %v, %v", left, err)
}
