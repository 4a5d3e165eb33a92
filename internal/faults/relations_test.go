package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestRelations has users follow, block and befriend each other, favorite each other's posts, and mute each other, through two gateways.
// Meanwhile the processes that propagate rows are killed and started again. In the end both sides of follows, of requests
// and of favorites agree, nobody follows a user with whom there is a block, all counts are exact, and every home feed is
// right, both on a gateway that copies posts into inboxes and on one that does not.
//
// In the mode sync the gateways propagate rows themselves, and a killed gateway leaves differences to reconcile. So in that
// mode no process is killed.
func TestRelations(t *testing.T) {
	t.Parallel()
	relations(t, 300, 2)
}

// TestLongRelations is the long schedule.
//
//	KITH_TEST_LONG=1 KITH_TEST_SEED=… go test ./internal/faults -run TestLongRelations/stream -v
func TestLongRelations(t *testing.T) {
	testenv.Long(t)
	relations(t, 20_000, 30)
}

// people is how many users there are. They are few, so that everything happens to the same pairs.
const people = 12

func relations(t *testing.T, operations int64, kills int) {
	inEach(t, notSimulated(), func(t *testing.T, mode string) {
		d := deploy(t, mode, people)
		d.copyPosts(t)
		seed := seedOf(t)
		posts := d.publish(t)
		var started, done atomic.Int64
		var writers sync.WaitGroup
		seen := &outcomes{codes: map[string]int{}}
		// Which mutations change something is random. The test goes on until each of them has.
		goesOn := func(n int64) bool { return n <= operations || n <= 10*operations && len(seen.missing()) > 0 }
		for i := range uint64(8) {
			c := d.client(t)
			random := rand.New(rand.NewPCG(seed, i))
			writers.Go(func() {
				for goesOn(started.Add(1)) {
					field, outcome, err := d.relate(t.Context(), c, random, posts)
					seen.note(t, field, outcome, err)
					done.Add(1)
				}
			})
		}
		random := rand.New(rand.NewPCG(seed, 1<<32))
		for i := range kills {
			if len(d.replicators) == 0 {
				break
			}
			until(t, "the writers go on", func() bool { return done.Load() >= operations*int64(i+1)/int64(kills+1) })
			n := d.replicators[random.IntN(len(d.replicators))]
			n.kill(t)
			n.start(t)
		}
		writers.Wait()
		d.settles(t)
		d.allWell(t)
		d.countsAreExact(t)
		d.friendsAreCounted(t)
		d.favoritesAreCounted(t)
		d.feedsAreRight(t)
		// Each mutation must have changed something, otherwise the test shows little.
		check.Equal(t, fmt.Sprintf("what was not changed, of %v", seen.codes), seen.missing(), nil)
		t.Logf("%d operations: %v", done.Load(), seen.codes)
	})
}

// publish has everybody publish a post, and returns their ids, by author.
func (d *deployment) publish(t *testing.T) []string {
	t.Helper()
	posts := make([]string, people+1)
	c := d.client(t)
	for author := int64(1); author <= people; author++ {
		a := d.gateways[0].asks(t, c, author, `mutation { m: publishPost(text: "x", clientKey: "1") { post { id } } }`, nil)
		var payload struct{ Post struct{ ID string } }
		must.OK(t, json.Unmarshal(a.Data["m"], &payload))
		posts[author] = payload.Post.ID
	}
	return posts
}

// relate sends one random mutation between two users, and returns its name and its outcome.
func (d *deployment) relate(ctx context.Context, c *client, random *rand.Rand, posts []string) (field, outcome string, err error) {
	fields := []string{"follow", "follow", "unfollow", "removeFollower", "block", "unblock", "unblock", "unblock",
		"requestFriend", "requestFriend", "requestFriend", "acceptRequest FRIEND", "acceptRequest FRIEND", "declineRequest FRIEND", "withdrawRequest FRIEND", "removeFriend", "removeFriend", "favorite", "favorite", "favorite", "unfavorite", "mute", "mute", "unmute", "publishPost"}
	field = fields[random.IntN(len(fields))]
	viewer := 1 + random.Int64N(people)
	other := 1 + (viewer+random.Int64N(people-1))%people
	if random.IntN(4) > 0 { // a neighbour, so that the same pairs meet often
		other = 1 + viewer%people
		if random.IntN(2) == 0 {
			viewer, other = other, viewer
		}
	}
	l := d.gateways[random.IntN(len(d.gateways))].now.Load()
	text, about := mutation(field, `{ changed }`), id(other)
	if field == "favorite" || field == "unfavorite" {
		text, about = strings.Replace(text, "userId", "postId", 1), posts[other]
	}
	if field == "publishPost" {
		return d.publishAnother(ctx, c, random, l, viewer)
	}
	a, err := c.ask(ctx, l.gateway.URL, viewer, "", text, map[string]any{"id": about})
	if err != nil {
		return field, "", err
	}
	if code := a.code(); code != "" {
		return field, code, nil
	}
	var payload struct{ Changed bool }
	if err := json.Unmarshal(a.Data["m"], &payload); err != nil {
		return field, "", err
	}
	return field, fmt.Sprintf("changed: %v", payload.Changed), nil
}

// outcomes counts the outcomes of operations.
type outcomes struct {
	mu    sync.Mutex
	codes map[string]int
}

// note counts an outcome. Only refusals by the rules are not failures.
func (o *outcomes) note(t *testing.T, field, outcome string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.codes[field+" "+outcome]++
	switch {
	case err != nil:
		t.Errorf("%s: %v", field, err)
	case outcome == "RATE_LIMITED" && (strings.HasSuffix(field, "favorite") || strings.HasSuffix(field, "Post")): // happens in a long schedule
	case outcome != "changed: true" && outcome != "changed: false" && outcome != "FORBIDDEN" && outcome != "NOT_FOUND":
		t.Errorf("%s: %s", field, outcome)
	}
}

// missing returns the mutations that have changed nothing so far.
func (o *outcomes) missing() (list []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, field := range []string{"follow", "unfollow", "removeFollower", "block", "unblock", "requestFriend", "acceptRequest FRIEND", "withdrawRequest FRIEND", "removeFriend", "favorite", "unfavorite", "mute", "unmute"} {
		if o.codes[field+" changed: true"] == 0 {
			list = append(list, field)
		}
	}
	return list
}

// settles waits until everything in the tables is as it should be.
func (d *deployment) settles(t testing.TB) {
	t.Helper()
	must.OKSoon(t, func() error { return d.related(t) })
}

// related reports what is wrong in the tables.
func (d *deployment) related(t testing.TB) error {
	t.Helper()
	found := d.tables(t)
	if list := found.different(); len(list) > 0 {
		return fmt.Errorf("%d follows differ, the first is %v: %+v, %+v", len(list), list[0], found.forward[list[0]], found.inverse[list[0]])
	}
	requests := d.rows(t, "friend_request", func(e edge) int64 { return e.from })
	inboxes := d.rows(t, "friend_request_inbox", func(e edge) int64 { return e.to })
	if !maps.Equal(requests, inboxes) {
		return fmt.Errorf("requests are %v, the inboxes hold %v", requests, inboxes)
	}
	favorites := d.rows(t, "favorite", func(e edge) int64 { return e.from }) // everybody has one post
	if theirs := d.rows(t, "favorite_inbox", func(e edge) int64 { return e.to }); !maps.Equal(favorites, theirs) {
		return fmt.Errorf("favorites are %v, the inboxes hold %v", favorites, theirs)
	}
	mutes := d.rows(t, "relation", func(e edge) int64 { return e.from }) // of one kind
	if theirs := d.rows(t, "relation_inbox", func(e edge) int64 { return e.to }); !maps.Equal(mutes, theirs) {
		return fmt.Errorf("relations are %v, the inboxes hold %v", mutes, theirs)
	}
	for e, r := range found.forward {
		back := edge{e.to, e.from}
		if r.kind == 2 && (found.forward[back].kind == 1 || requests[back].kind == 1 || requests[e].kind == 1) {
			return fmt.Errorf("%v is a block; in return there are %+v and the request %+v, beside it the request %+v", e, found.forward[back], requests[back], requests[e])
		}
	}
	for e, r := range requests {
		if r.kind == 1 && requests[edge{e.to, e.from}].kind == 1 && !expired(r) {
			return fmt.Errorf("both of %v have asked, and neither has been accepted", e)
		}
	}
	return nil
}

// expired reports whether a request has been pending for longer than is allowed.
func expired(r row) bool { return time.Since(time.UnixMicro(r.version)) > 90*24*time.Hour }

// favoritesAreCounted compares all counts of favorites and of relations with the rows that they count.
func (d *deployment) favoritesAreCounted(t testing.TB) {
	t.Helper()
	for _, query := range []string{
		`SELECT c.user_id, c.favorite_count, (SELECT COUNT(*) FROM favorite f WHERE f.from_user_id = c.user_id AND f.type = 1) AS rows_there
			FROM user_counts c HAVING favorite_count <> rows_there`,
		`SELECT c.user_id, c.total_favorited, (SELECT COUNT(*) FROM favorite_inbox f WHERE f.to_user_id = c.user_id AND f.type = 1) AS rows_there
			FROM user_counts c HAVING total_favorited <> rows_there`,
		`SELECT c.author_id, c.favorite_count, (SELECT COUNT(*) FROM favorite_inbox f WHERE f.to_user_id = c.author_id AND f.post_id = c.post_id AND f.type = 1) AS rows_there
			FROM post_counts c HAVING favorite_count <> rows_there`,
		`SELECT c.owner, c.outgoing, (SELECT COUNT(*) FROM relation r WHERE r.from_user_id = c.owner AND r.kind = c.kind AND r.type = 1) AS rows_there
			FROM relation_counts c HAVING outgoing <> rows_there`,
		`SELECT c.owner, c.incoming, (SELECT COUNT(*) FROM relation_inbox r WHERE r.to_user_id = c.owner AND r.kind = c.kind AND r.type = 1) AS rows_there
			FROM relation_counts c HAVING incoming <> rows_there`,
	} {
		d.noneIsWrong(t, query, query)
	}
}

// friendsAreCounted compares every friend_count with the rows that it counts.
func (d *deployment) friendsAreCounted(t testing.TB) {
	t.Helper()
	d.noneIsWrong(t, "friend_count", `SELECT c.user_id, c.friend_count, COUNT(b.from_user_id) AS rows_there FROM user_counts c
		LEFT JOIN following f ON f.from_user_id = c.user_id AND f.type = 1
		LEFT JOIN follower b ON b.to_user_id = c.user_id AND b.from_user_id = f.to_user_id AND b.type = 1
		GROUP BY c.user_id HAVING c.friend_count <> rows_there`)
}
