package faults_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
)

// followers asks for everything that comes from the inverse side of a user.
const followers = `query($id: ID!, $follower: ID!) {
	user(by: {id: $id}) { followerCount followers(first: 100) { totalCount nodes { id } } }
	relationship(from: $id, to: $follower) { followedBy followedByAt }
}`

// TestTokens follows on one gateway, and reads the followers on another with the token, many times.
// Either the answer shows what was written, or it says that it may be stale. KITH_TEST_LONG=1 does
// this 1,000 times in each mode.
// In sync and stream internal/sim does it ("with token" of its properties).
func TestTokens(t *testing.T) {
	t.Parallel()
	times := 60
	if os.Getenv("KITH_TEST_LONG") == "1" {
		times = 1000
	}
	inEach(t, notSimulated(), func(t *testing.T, mode string) {
		d := deploy(t, mode, 100)
		asked, stale := d.readFollowers(t, times)
		t.Logf("%d times, %d of them stale and said so", asked, stale)
		check.Most(t, "answers that were stale", stale, asked/4)
		if mode == "sync" {
			return
		}
		// Nothing is propagated now, so every answer must say that it is stale.
		for _, n := range d.replicators {
			n.kill(t)
		}
		asked, stale = d.readFollowers(t, 8)
		check.Equal(t, "without a replicator, answers that say that they are stale", stale, asked)
		for _, n := range d.replicators {
			n.start(t)
		}
		d.quiet(t, newHistory())
		d.countsAreExact(t)
	})
}

// readFollowers follows, unfollows and reads on four connections. Each connection has its own idol.
func (d *deployment) readFollowers(t *testing.T, times int) (asked, stale int) {
	t.Helper()
	const lanes = 4
	seed := seedOf(t)
	var late atomic.Int64
	var readers sync.WaitGroup
	for lane := range lanes {
		l := &idol{deployment: d, client: d.client(t), user: int64(1 + lane), random: rand.New(rand.NewPCG(seed, uint64(lane)))}
		l.load(t)
		readers.Go(func() {
			for range (times + lanes - 1) / lanes {
				ok, isStale := l.once(t)
				if !ok {
					return
				}
				if isStale {
					late.Add(1)
				}
			}
		})
	}
	readers.Wait()
	return lanes * ((times + lanes - 1) / lanes), int(late.Load())
}

// idol is a user whose followers change, and what is known of them.
type idol struct {
	*deployment
	*client
	user      int64
	followers []int64 // newest first
	random    *rand.Rand
}

// load reads the existing followers.
func (l *idol) load(t *testing.T) {
	t.Helper()
	at := map[int64]int64{}
	for _, db := range l.shards {
		rows, err := db.Query("SELECT from_user_id, update_time FROM following WHERE to_user_id = ? AND type = 1", l.user)
		must.OK(t, err)
		for rows.Next() {
			var follower, version int64
			must.OK(t, rows.Scan(&follower, &version))
			at[follower] = version
			l.followers = append(l.followers, follower)
		}
		must.OK(t, rows.Err())
	}
	slices.SortFunc(l.followers, func(a, b int64) int { return int(at[b] - at[a]) })
}

// once changes one follower on one gateway and reads all of them on the other.
func (l *idol) once(t *testing.T) (ok, stale bool) {
	follower := int64(11 + l.random.IntN(12))
	there := slices.Contains(l.followers, follower)
	o := operation{field: "follow", viewer: follower, targets: []int64{l.user}}
	if there {
		o.field = "unfollow"
	}
	first := l.random.IntN(2)
	var payload followed
	a, err := l.ask(t.Context(), l.gateways[first].now.Load().gateway.URL, follower, "", mutation(o.field, lean), map[string]any{"id": id(l.user)})
	if err == nil {
		payload, err = a.followed()
	}
	if err != nil || a.code() != "" || !payload.Changed || payload.token == "" {
		t.Errorf("%v: %+v %v", o, a, err)
		return false, false
	}
	l.followers = slices.DeleteFunc(l.followers, func(u int64) bool { return u == follower })
	if !there {
		l.followers = append([]int64{follower}, l.followers...)
	}

	a, err = l.ask(t.Context(), l.gateways[1-first].now.Load().gateway.URL, follower, payload.token, followers, map[string]any{"id": id(l.user), "follower": id(follower)})
	if err != nil || a.code() != "" {
		t.Errorf("read followers: %+v %v", a, err)
		return false, false
	}
	if a.Extensions.Stale {
		return true, true
	}
	return l.judge(t, o, a), false
}

// judge compares an answer that does not say that it is stale.
func (l *idol) judge(t *testing.T, o operation, a answer) bool {
	var user struct {
		FollowerCount int
		Followers     struct {
			TotalCount int
			Nodes      []struct{ ID string }
		}
	}
	var relationship struct {
		FollowedBy   bool
		FollowedByAt *time.Time
	}
	must.OK(t, json.Unmarshal(a.Data["user"], &user))
	must.OK(t, json.Unmarshal(a.Data["relationship"], &relationship))
	var got, want []string
	for _, node := range user.Followers.Nodes {
		got = append(got, node.ID)
	}
	for _, follower := range l.followers {
		want = append(want, id(follower))
	}
	follows := o.field == "follow"
	if !slices.Equal(got, want) || user.FollowerCount != len(want) || user.Followers.TotalCount != len(want) ||
		relationship.FollowedBy != follows || (relationship.FollowedByAt != nil) != follows {
		t.Errorf("after %v, with its token: %s %s, want the followers %v", o, a.Data["user"], a.Data["relationship"], want)
		return false
	}
	return true
}
