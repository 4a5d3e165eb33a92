package faults_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
)

// TestLockedAccounts: requests for follows of a locked user are made, accepted, declined, withdrawn, and accepted or left when it unlocks, by
// users of every shard through both gateways, in each mode. Then both sides of each edge are as decided, and so are the counts.
func TestLockedAccounts(t *testing.T) {
	t.Parallel()
	inEach(t, notSimulated(), func(t *testing.T, mode string) {
		d := deploy(t, mode, 100)
		c := d.client(t)
		asked := 0
		ask := func(viewer int64, text string) {
			t.Helper()
			asked++
			a, err := c.ask(t.Context(), d.gateways[asked%2].now.Load().gateway.URL, viewer, "", text, nil)
			var payload struct {
				Changed  bool
				Outcomes []struct{ Changed bool }
			}
			if err != nil || a.code() != "" || json.Unmarshal(a.Data["m"], &payload) != nil || !payload.Changed && len(payload.Outcomes) == 0 {
				t.Fatalf("user %d: %s: %s, %v, %v", viewer, text, a.Data["m"], a.Errors, err)
			}
		}
		do := func(viewer int64, field string, other int64) {
			t.Helper()
			ask(viewer, fmt.Sprintf(`mutation { m: %s { changed } }`, apitest.Call(field, fmt.Sprint(other))))
		}
		const follows, waits, declined, nothing = 1, 3, 4, 0
		want := map[edge]int{}
		for _, unlock := range []struct {
			with string
			left int
		}{{"acceptRequests(kind: FOLLOW, first: 100) { outcomes { changed } }", follows}, {"updateProfile(locked: false) { changed }", waits}} {
			owner := d.onShard(len(want)%len(d.shards), 9)[len(want)%9]
			ask(owner, `mutation { m: updateProfile(locked: true) { changed } }`)
			for shard := range d.shards {
				for i, who := range d.onShard(shard, 14)[9:] {
					do(who, "follow", owner)
					e := edge{who, owner}
					switch i {
					case 0:
						do(owner, "acceptRequest FOLLOW", who)
						want[e] = follows
					case 1:
						do(owner, "declineRequest FOLLOW", who)
						want[e] = declined
					case 2:
						do(who, "unfollow", owner)
						want[e] = nothing
					case 3:
						do(owner, "acceptRequest FOLLOW", who)
						do(owner, "removeFollower", who)
						want[e] = nothing
					default:
						want[e] = unlock.left
					}
				}
			}
			d.settles(t) // the owner's shard has what waits
			ask(owner, `mutation { m: `+unlock.with+` }`)
		}
		d.settles(t)
		for side, rows := range map[string]map[edge]row{"following": d.tables(t).forward, "follower": d.tables(t).inverse} {
			for e, kind := range want {
				check.Equal(t, fmt.Sprintf("the type of %v in %s", e, side), rows[e].kind, kind)
			}
		}
		d.allWell(t)
		d.countsAreExact(t)
		d.friendsAreCounted(t)
	})
}
