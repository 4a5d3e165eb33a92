package faults_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestWriterCannotReport: a gateway that cannot report its writes to Redis continues to write. Once
// it can, the other gateway soon shows all these writes, although it was reading all the time, and
// may have filled its cache with what Redis still had.
func TestWriterCannotReport(t *testing.T) {
	t.Parallel()
	d, way := deployLinked(t, "sync", 1)
	c := d.client(t)
	user := int64(10)
	for what, interrupt := range map[string]func() (repair func()){
		"no connection": func() func() {
			way.Cut()
			l := d.gateways[0].now.Load()
			until(t, "the gateway misses Redis", func() bool { return l.metric(t, "kith_cache_enabled", "") == 0 })
			return func() { way.Mend(t) }
		},
		// The freeze is too short for the other gateway to give up on Redis, so it still receives messages.
		"no answer": func() func() {
			d.redis.Freeze(t)
			from := time.Now()
			return func() {
				time.Sleep(time.Until(from.Add(1500 * time.Millisecond)))
				d.redis.Thaw(t)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			user++
			d.cannotReport(t, c, user, interrupt)
		})
	}
	d.agreesOn(t, c)
}

// cannotReport changes a user on the first gateway while something is broken. It looks at the user on
// the other gateway until the fault is repaired, and then until it has been right for as long as another report may take.
func (d *cachedDeployment) cannotReport(t *testing.T, c *client, user int64, interrupt func() (repair func())) {
	t.Helper()
	name, follower := fmt.Sprintf("User %d #1", user), user+20
	d.sees(t, c, 1, user) // in the memory of the other gateway, and in Redis
	repair := interrupt()
	d.rename(t, c, 0, user, name)
	d.follows(t, c, 0, follower, user)
	right := func(s seenFollowers) bool {
		return s.Name == name && s.FollowerCount == 1 && slices.Equal(s.followers(), []string{id(follower)})
	}
	got := d.sees(t, c, 0, user)
	check.That(t, right(got), "the gateway that has written shows %v", got)
	repair()
	began := time.Now()
	var last seenFollowers
	var since time.Time // since when the answer is right
	for since.IsZero() && time.Since(began) < patience || !since.IsZero() && time.Since(since) < reportedWithin {
		switch last = d.sees(t, c, 1, user); {
		case !right(last):
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		time.Sleep(5 * time.Millisecond) // often enough to be the reader that fills old rows into the cache
	}
	if since.IsZero() {
		t.Fatalf("%s after Redis could be notified again, the other gateway shows %v, want the name %q and the follower %d", patience, last, name, follower)
	}
	t.Logf("%v after Redis could be notified again, the other gateway showed it", since.Sub(began).Round(time.Millisecond))
}

// reportedWithin is how long after Redis can be reached again changes are reported at the latest: the
// longest pause between attempts, and the same time again for a busy machine.
const reportedWithin = 2500 * time.Millisecond

// deployLinked is deployCached, but the first gateway reaches Redis through a link.
func deployLinked(t testing.TB, mode string, shards int) (*cachedDeployment, *testenv.Link) {
	t.Helper()
	d := prepareCached(t, mode, shards, everybodyThere)
	way := testenv.NewLink(t, d.redis.Addr())
	d.gateways = []*node{
		d.serving("gateway 0", "--no-replicate", "--max-cost", "10000000", "--redis", "redis://"+way.Addr+"/0"),
		d.serving("gateway 1", "--no-replicate", "--max-cost", "10000000"),
	}
	if mode != "sync" {
		d.replicators = []*node{d.serving("replicator")}
	}
	d.start(t)
	d.ready(t)
	return d, way
}

// seenFollowers is what a gateway shows of a user's edges.
type seenFollowers struct {
	seenUser
	FollowingCount, FollowerCount int
}

func (s seenFollowers) String() string {
	return fmt.Sprintf("%q with %d followings, %v, and %d followers, %v", s.Name, s.FollowingCount, s.followings(), s.FollowerCount, s.followers())
}

func (s seenFollowers) followers() []string  { return idsIn(s.Followers.Nodes) }
func (s seenFollowers) followings() []string { return idsIn(s.Followings.Nodes) }

func idsIn(nodes []*struct{ ID string }) (list []string) {
	for _, n := range nodes {
		list = append(list, n.ID)
	}
	return list
}

// sees asks a gateway about a user.
func (d *cachedDeployment) sees(t testing.TB, c *client, on int, user int64) (seen seenFollowers) {
	t.Helper()
	a := d.gateways[on].asks(t, c, 5,
		`query($id: ID!) { user(by: {id: $id}) { name followingCount followerCount followings(first: 100) { nodes { id } } followers(first: 100) { nodes { id } } } }`,
		map[string]any{"id": id(user)})
	must.OK(t, json.Unmarshal(a.Data["user"], &seen))
	return seen
}

func (d *cachedDeployment) rename(t testing.TB, c *client, on int, user int64, name string) {
	t.Helper()
	d.gateways[on].asks(t, c, user, `mutation($name: String!) { updateProfile(name: $name) { viewer { user { name } } } }`, map[string]any{"name": name})
}

func (d *cachedDeployment) follows(t testing.TB, c *client, on int, from, to int64) {
	t.Helper()
	o := operation{field: "follow", viewer: from, targets: []int64{to}}
	r := o.send(t.Context(), c, d.gateways[on].now.Load())
	must.That(t, r.err == nil && r.code == "" && len(r.changes) == 1, "%v: %+v", o, r)
}

// agreesOn is agree for the users of these tests.
func (d *cachedDeployment) agreesOn(t *testing.T, c *client) {
	t.Helper()
	cold := d.cold(t)
	var ids []string
	for u := range int64(60) {
		ids = append(ids, id(1+u))
	}
	for _, n := range d.gateways {
		variables := map[string]any{"ids": ids, "me": "5"}
		if got, want := d.answerTo(t, c, n.now.Load(), 5, everything, variables), d.answerTo(t, c, cold, 5, everything, variables); got != want {
			t.Errorf("%s shows something else than the tables: %s", n.name, difference(got, want))
		}
	}
}
