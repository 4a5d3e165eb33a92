package resolvers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/accounts"
	"kith/graph/declared"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
)

// A mute leaves posts out of the feed and, of everything, the user out of suggestions and searches; lists, and what others see, stay.
func TestMutes(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		me, loud := v.api.As(v.a), v.b
		v.does(v.a, "follow", loud)
		v.does(v.a, "follow", v.c)
		v.does(v.c, "follow", v.d)
		for _, author := range []storage.UserID{loud, v.c} {
			v.api.As(author).Ask(`mutation { publishPost(text: "hello", clientKey: "k") { changed } }`, nil).Is(`{"publishPost": {"changed": true}}`)
		}
		feed := func() string {
			return fmt.Sprint(me.Ask(`{ viewer { feed(first: 9) { nodes { author { id } } } } }`, nil).Whole().At("viewer.feed.nodes"))
		}
		suggested := func(id storage.UserID) bool {
			return strings.Contains(fmt.Sprint(me.Ask(fmt.Sprintf(`{ user(by: {id: "%s"}) { followSuggestions(first: 50) { nodes { id } } } }`, v.a), nil).Whole().At("user.followSuggestions")), "id:"+id.String()+"]")
		}
		finds := func(id storage.UserID) bool {
			return strings.Contains(fmt.Sprint(me.Ask(fmt.Sprintf(`{ searchUsers(text: "u%s", first: 50) { nodes { id } } }`, id), nil).Whole().At("searchUsers")), "id:"+id.String()+"]")
		}
		has := func(text string, id storage.UserID) bool { return strings.Contains(text, "id:"+id.String()+"]") }
		wantEqual := func(what string, got, want bool) {
			t.Helper()
			check.Equal(t, what, got, want)
		}
		muted := func(asker *apitest.API, id storage.UserID) string {
			return fmt.Sprint(asker.Ask(fmt.Sprintf(`{ user(by: {id: "%s"}) { viewerRelationship { muted mutedUntil status } followerCount } }`, id), nil).Whole().At("user"))
		}
		wantEqual("in the feed before", has(feed(), loud), true)
		before := muted(v.api.As(loud), v.a)

		me.Ask(`mutation($id: ID!) { mute(userId: $id, scope: POSTS) { changed relationship { muted mutedUntil } } }`, apitest.Vars{"id": loud.String()}).
			Is(`{"mute": {"changed": true, "relationship": {"muted": "POSTS", "mutedUntil": null}}}`)
		wantEqual("in the feed", has(feed(), loud), false)
		wantEqual("another in the feed", has(feed(), v.c), true)
		wantEqual("found", finds(loud), true)
		list := fmt.Sprint(me.Ask(fmt.Sprintf(`{ user(by: {id: "%s"}) { followings(first: 9) { nodes { id } } } }`, v.a), nil).Whole().At("user.followings"))
		wantEqual("on the list", has(list, loud), true)
		check.Equal(t, "what the other sees", muted(v.api.As(loud), v.a), before)

		me.Ask(`mutation($id: ID!) { mute(userId: $id) { changed relationship { muted } } }`, apitest.Vars{"id": loud.String()}).
			Is(`{"mute": {"changed": true, "relationship": {"muted": "EVERYTHING"}}}`)
		wantEqual("found when all is muted", finds(loud), false)
		wantEqual("suggested before", suggested(v.d), true)
		v.does(v.a, "mute", v.d)
		v.doesNothing(v.a, "mute", v.d)
		wantEqual("suggested when muted", suggested(v.d), false)
		me.Ask(`{ viewer { mutedUsers(first: 9) { totalCount complete nodes { id viewerRelationship { muted } } } posts: mutedUsers(scope: POSTS) { totalCount } } }`, nil).Is(fmt.Sprintf(
			`{"viewer": {"mutedUsers": {"totalCount": 2, "complete": true, "nodes": [{"id": "%s", "viewerRelationship": {"muted": "EVERYTHING"}}, {"id": "%s", "viewerRelationship": {"muted": "EVERYTHING"}}]}, "posts": {"totalCount": 0}}}`, v.d, loud))

		v.does(v.a, "unmute", loud)
		v.doesNothing(v.a, "unmute", loud)
		wantEqual("in the feed again", has(feed(), loud), true)
		wantEqual("found again", finds(loud), true)

		v.do(v.a, "mute", v.a).Refused("BAD_USER_INPUT")
		v.do(v.a, "mute", 77).Refused("NOT_FOUND")
		v.doesNothing(v.a, "unmute", 77)
		v.do(0, "mute", v.a).Refused("UNAUTHENTICATED")
		for _, until := range []string{"2001-01-01T00:00:00Z", "2199-01-01T00:00:00Z"} {
			me.Ask(`mutation($id: ID!, $until: DateTime) { mute(userId: $id, until: $until) { changed } }`, apitest.Vars{"id": loud.String(), "until": until}).Refused("BAD_USER_INPUT")
		}
	})
}

// A write that only its writer sees has a token too: the writer may read it on another gateway.
func TestWhatIsKeptBesideFollowsHasAToken(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		v.does(v.a, "follow", v.b)
		for _, call := range []string{
			`mute(userId: $id, scope: POSTS) { changed }`, `mute(userId: $id) { changed }`, `mute(userId: $id, until: "` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `") { changed }`,
			`unmute(userId: $id) { changed }`, `setFollowMark(userId: $id, remark: "r") { changed }`,
		} {
			token := v.api.As(v.a).Ask(`mutation($id: ID!) { `+call+` }`, apitest.Vars{"id": v.b.String()}).Whole().Token()
			check.That(t, token != "", "%s has no token", call)
		}
	})
}

// A mute ends by itself, on its shard, at its other end, and in its counts.
func TestMutesEnd(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.Users(t, store, 4)
		api := apitest.New(t, store, apitest.Options{})
		until := time.Now().Add(time.Hour)
		for id := storage.UserID(2); id < 5; id++ {
			vars := apitest.Vars{"id": id.String()}
			if id != 3 { // this one does not end
				vars["until"] = until.Format(time.RFC3339Nano)
			}
			api.As(1).Ask(`mutation($id: ID!, $until: DateTime) { mute(userId: $id, until: $until) { changed } }`, vars).Is(`{"mute": {"changed": true}}`)
		}
		api.As(1).Ask(`mutation($id: ID!, $until: DateTime) { mute(userId: $id, until: $until) { changed } }`,
			apitest.Vars{"id": "4", "until": until.Add(time.Hour).Format(time.RFC3339Nano)}).Is(`{"mute": {"changed": true}}`)

		later := func() time.Time { return until.Add(time.Second) }
		relations := social.NewRelations(social.Relations{Store: store, Redundancy: nobodyElse{}, Now: later})
		states := &accounts.States{
			Store: store, Relations: relations, Now: later,
			HiddenUsers: accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), later),
		}
		sweeper := &accounts.Sweeper{States: states, Leaser: store, Shards: store.Shards, Due: []func(context.Context, int, func() bool) error{relations.EndDue}}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { sweeper.Run(ctx); close(ended) }()
		defer func() { stop(); <-ended }()
		left := func() []storage.UserID {
			page := storage.PageLookups[storage.Relations].Read(t.Context(), store, storage.PageQuery{Owner: 1, Item: declared.Mutes.Number, Limit: 9})[0]
			return storage.Each(page.Value, func(e storage.Edge) storage.UserID { return e.To })
		}
		must.Soon(t, "a mute ends", func() bool { return len(left()) != 3 })
		check.Equal(t, "mutes that are left", left(), []storage.UserID{4, 3})
		counts := storage.KindLookups.Read(t.Context(), store, storage.OwnerKind{Owner: 1, Kind: declared.Mutes.Number})[0].Value
		check.Equal(t, "mutes that are counted", counts.Outgoing, 2)
	})
}

// A mute that only lasts longer leaves its row as it is. In the mode binlog the event of the user is all that tells of it.
func TestRelationshipChangedReportsThatAMuteLastsLonger(t *testing.T) {
	store, hub := oracle.New(), events.NewHub(nil)
	apitest.Users(t, store, 2)
	api := apitest.New(t, store, apitest.Options{Hub: hub})
	answers := subscribe(t, api, hub, 1, `subscription { relationshipChanged(userIds: [2]) { relationship { muted mutedUntil } } }`)
	until(t, answers, func(i int) {
		api.As(1).Ask(`mutation { `+apitest.Call([]string{"mute", "unmute"}[i%2], "2")+` { changed } }`, nil).Whole()
	})
	ends := time.Now().UTC().AddDate(1, 0, 0).Truncate(time.Second)
	api.As(1).Ask(`mutation($until: DateTime) { mute(userId: 2, scope: EVERYTHING, until: $until) { changed } }`, apitest.Vars{"until": ends.Format(time.RFC3339)}).Whole()
	comes(t, answers, `"mutedUntil":"`+ends.Format("2006-01-02"))
	ends = ends.AddDate(1, 0, 0)
	longer := storage.EdgeChange{To: 2, Item: declared.Mutes.Number, Type: storage.Related, At: 1, Detail: storage.DetailChange{EndsAt: storage.MicrosOf(ends)}}
	changed := store.ChangeEdges(t.Context(), storage.Relations, 1, []storage.EdgeChange{longer}, storage.ChangeOptions{})[0]
	must.That(t, changed.Value.Kept, "%+v", changed)
	hub.Publish(events.Event{Kind: events.UserChanged, User: &storage.UserChange{User: 1, What: storage.Beside}})
	comes(t, answers, `"mutedUntil":"`+ends.Format("2006-01-02"))
}

// nobodyElse is a mode that writes both sides at once.
type nobodyElse struct{}

func (nobodyElse) Inline() bool                                       { return true }
func (nobodyElse) Propagate(context.Context, []storage.Written) error { return nil }

// An import has left mutes of both scopes: the wider one is shown, and what follows ends both.
func TestOfTwoMutesTheWiderIsShown(t *testing.T) {
	all, store := withUsers(t, 2, apitest.Options{})
	api := all.As(1)
	var both []storage.EdgeChange
	for _, kind := range []declared.Kind{declared.Mutes, declared.PostMutes} {
		both = append(both, storage.EdgeChange{To: 2, Item: kind.Number, Type: storage.Related, At: apitest.Epoch})
	}
	for range 20 { // an order by chance would differ
		store.ChangeEdges(t.Context(), storage.Relations, 1, both, storage.ChangeOptions{Inverse: true})
		api.Ask(`{ user(by: {id: 2}) { viewerRelationship { muted } } }`, nil).Is(`{"user": {"viewerRelationship": {"muted": "EVERYTHING"}}}`)
		api.Ask(`mutation { unmute(userId: 2) { changed relationship { muted } } }`, nil).Is(`{"unmute": {"changed": true, "relationship": {"muted": null}}}`)
	}
}
