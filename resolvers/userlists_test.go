package resolvers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/sqlstore"
)

const listPayload = `{ changed list { id name public memberCount members { totalCount nodes { id } } owner { id } } outcomes { userId changed error { reason } } }`

// list is what listPayload selects of a list whose members were added in one call.
func listNow(name string, public bool, owner storage.UserID, id string, members ...storage.UserID) string {
	nodes := storage.Each(members, func(m storage.UserID) string { return fmt.Sprintf(`{"id": "%s"}`, m) })
	return fmt.Sprintf(`{"id": %q, "name": %q, "public": %t, "memberCount": %d, "members": {"totalCount": %d, "nodes": [%s]}, "owner": {"id": "%s"}}`,
		id, name, public, len(members), len(members), strings.Join(nodes, ", "), owner)
}

func (v *village) createList(owner storage.UserID, public bool, members ...storage.UserID) (id string) {
	v.t.Helper()
	texts := storage.Each(members, storage.UserID.String)
	return apitest.Into[string](v.api.As(owner).Ask(`mutation($public: Boolean!, $ids: [ID!]!) { createList(name: "list", public: $public, userIds: $ids) { list { id } } }`,
		apitest.Vars{"public": public, "ids": texts}).Whole(), "createList.list.id")
}

// Each member has its own outcome, and only the owner changes the list.
func TestListsAreChanged(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		me := v.api.As(v.a)
		made := me.Ask(fmt.Sprintf(`mutation($ids: [ID!]!) { createList(name: " Neighbours ", userIds: $ids) %s }`, listPayload),
			apitest.Vars{"ids": []string{v.b.String(), "x", v.a.String(), v.b.String(), "999999"}}).Whole()
		id := apitest.Into[string](made, "createList.list.id")
		made.Is(fmt.Sprintf(`{"createList": {"changed": true, "list": %s, "outcomes": [{"userId": "%s", "changed": true, "error": null},
			{"userId": "x", "changed": false, "error": {"reason": "ID_MALFORMED"}}, {"userId": "%s", "changed": false, "error": {"reason": "SELF"}},
			{"userId": "%s", "changed": false, "error": null}, {"userId": "999999", "changed": false, "error": {"reason": "USER_NOT_FOUND"}}]}}`,
			listNow("Neighbours", false, v.a, id, v.b), v.b, v.a, v.b))
		change := func(call, list, outcomes string, changed bool) {
			t.Helper()
			name, _, _ := strings.Cut(call, "(")
			me.Ask(fmt.Sprintf(`mutation($id: ID!) { %s %s }`, call, listPayload), apitest.Vars{"id": id}).
				Is(fmt.Sprintf(`{%q: {"changed": %t, "list": %s, "outcomes": [%s]}}`, name, changed, list, outcomes))
		}
		outcome := func(user storage.UserID, changed bool) string {
			return fmt.Sprintf(`{"userId": "%s", "changed": %t, "error": null}`, user, changed)
		}
		change(fmt.Sprintf(`addToList(listId: $id, userIds: ["%s"])`, v.b), listNow("Neighbours", false, v.a, id, v.b), outcome(v.b, false), false)
		change(fmt.Sprintf(`addToList(listId: $id, userIds: ["%s"])`, v.c), listNow("Neighbours", false, v.a, id, v.c, v.b), outcome(v.c, true), true)
		change(fmt.Sprintf(`removeFromList(listId: $id, userIds: ["%s", "%s"])`, v.b, v.d), listNow("Neighbours", false, v.a, id, v.c), outcome(v.b, true)+", "+outcome(v.d, false), true)
		change(`updateList(listId: $id, name: "N", public: true)`, listNow("N", true, v.a, id, v.c), "", true)
		change(`updateList(listId: $id, public: true)`, listNow("N", true, v.a, id, v.c), "", false)

		other := v.api.As(v.b)
		for _, call := range []string{`updateList(listId: $id, name: "x")`, `deleteList(listId: $id)`, fmt.Sprintf(`addToList(listId: $id, userIds: ["%s"])`, v.c), `removeFromList(listId: $id, userIds: [])`} {
			other.Ask(fmt.Sprintf(`mutation($id: ID!) { %s { changed } }`, call), apitest.Vars{"id": id}).Refused("NOT_FOUND")
			v.api.Ask(fmt.Sprintf(`mutation($id: ID!) { %s { changed } }`, call), apitest.Vars{"id": id}).Refused("UNAUTHENTICATED")
		}
		for _, name := range []string{"", "\u202e", strings.Repeat("n", storage.MaxListName+1)} {
			me.Ask(`mutation($name: String!) { createList(name: $name) { changed } }`, apitest.Vars{"name": name}).Refused("BAD_USER_INPUT")
		}
		me.Ask(`mutation($ids: [ID!]!) { createList(name: "x", userIds: $ids) { changed } }`, apitest.Vars{"ids": make([]string, 501)}).Refused("BAD_USER_INPUT")
		me.Ask(`mutation($id: ID!) { deleteList(listId: $id) { changed list { id } outcomes { changed } } }`, apitest.Vars{"id": id}).
			Is(`{"deleteList": {"changed": true, "list": null, "outcomes": []}}`)
		me.Ask(`mutation($id: ID!) { deleteList(listId: $id) { changed list { id } outcomes { changed } } }`, apitest.Vars{"id": id}).
			Is(`{"deleteList": {"changed": false, "list": null, "outcomes": []}}`)
		me.Ask(`mutation($id: ID!) { updateList(listId: $id, name: "x") { changed } }`, apitest.Vars{"id": id}).Refused("NOT_FOUND")
		me.Ask(`query($id: ID!, $me: ID!) { node(id: $id) { id } user(by: {id: $me}) { lists { nodes { id } } } }`, apitest.Vars{"id": id, "me": v.a.String()}).
			Is(`{"node": null, "user": {"lists": {"nodes": []}}}`)
		counts := storage.KindLookups.Read(t.Context(), v.store, storage.OwnerKind{Owner: v.a, Kind: listID(t, id).Kind()})[0]
		check.Equal(t, "members of a deleted list", counts.Value, (storage.KindCount{}))
	})
}

func listID(t *testing.T, text string) (id storage.ListID) {
	t.Helper()
	_, err := fmt.Sscanf(text, "list_%d_%d", &id.Owner, &id.Number)
	must.OK(t, err)
	return id
}

// A change of a list shows at once in whether a user is on it. Who is hidden from the viewer, or is not there, is on none.
func TestWhoIsOnAList(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		id := v.createList(v.a, true, v.b, v.d)
		v.does(v.c, "block", v.d)
		has := func(who *apitest.API, want string) {
			t.Helper()
			who.Ask(`query($id: ID!, $b: ID!, $c: ID!, $d: ID!) { node(id: $id) { ... on List { b: has(userId: $b) c: has(userId: $c) d: has(userId: $d) none: has(userId: "999999") } } }`,
				apitest.Vars{"id": id, "b": v.b.String(), "c": v.c.String(), "d": v.d.String()}).Is(`{"node": ` + want + `}`)
		}
		change := func(name string, user storage.UserID) {
			t.Helper()
			v.api.As(v.a).Ask(fmt.Sprintf(`mutation($id: ID!) { %s(listId: $id, userIds: ["%s"]) { changed } }`, name, user), apitest.Vars{"id": id}).Whole()
		}
		has(v.api.As(v.a), `{"b": true, "c": false, "d": true, "none": false}`)
		has(v.api.As(v.c), `{"b": true, "c": false, "d": false, "none": false}`)
		change("addToList", v.c)
		change("removeFromList", v.b)
		has(v.api.As(v.a), `{"b": false, "c": true, "d": true, "none": false}`)
		v.api.Ask(`query($id: ID!) { node(id: $id) { ... on List { has(userId: "x") } } }`, apitest.Vars{"id": id}).Refused("BAD_USER_INPUT")
		v.api.As(v.a).Ask(`mutation($id: ID!) { updateList(listId: $id, public: false) { changed } }`, apitest.Vars{"id": id}).Whole()
		has(v.api.As(v.c), `null`)
	})
}

// TestListsWith: a viewer reads on which of its lists a user is. Who is hidden from it is on none.
func TestListsWith(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		me := v.api.As(v.a)
		ids := map[string]string{}
		for _, name := range []string{"Near", "Far", "None"} {
			ids[name] = apitest.Into[string](me.Ask(`mutation($name: String!) { createList(name: $name) { list { id } } }`, apitest.Vars{"name": name}).Whole(), "createList.list.id")
		}
		change := func(name, list string, user storage.UserID) {
			t.Helper()
			me.Ask(`mutation($id: ID!, $user: ID!) { `+name+`(listId: $id, userIds: [$user]) { changed } }`, apitest.Vars{"id": ids[list], "user": user.String()}).Whole()
		}
		with := func(who *apitest.API, user, want string) {
			t.Helper()
			who.Ask(`query($with: ID!) { viewer { lists(with: $with) { name memberCount has(userId: $with) owner { id } } } }`, apitest.Vars{"with": user}).Is(strings.ReplaceAll(`{"viewer": {"lists": [`+want+`]}}`, "OWNER", v.a.String()))
		}
		change("addToList", "Near", v.b)
		change("addToList", "Far", v.b)
		change("addToList", "Far", v.d)
		const near, far = `{"name": "Near", "memberCount": 1, "has": true, "owner": {"id": "OWNER"}}`, `{"name": "Far", "memberCount": 2, "has": true, "owner": {"id": "OWNER"}}`
		with(me, v.b.String(), far+`, `+near)
		with(me, v.d.String(), far)
		with(me, v.c.String(), ``)
		with(me, "999999", ``)
		with(v.api.As(v.b), v.d.String(), ``)
		change("removeFromList", "Near", v.b)
		with(me, v.b.String(), far)
		v.does(v.b, "block", v.a)
		with(me, v.b.String(), ``)
		me.Ask(`{ viewer { lists(with: "x") { name } } }`, nil).FailsAt("BAD_USER_INPUT", "viewer.lists")
	})
}

// Whoever does not see a list learns from no answer that it exists; a public one shows nobody who is hidden from the viewer.
func TestWhoSeesLists(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		private, public := v.createList(v.a, false, v.c), v.createList(v.a, true, v.c, v.d)
		unknown := private + "7"
		other := v.api.As(v.b)
		v.does(v.b, "block", v.d)
		ask := func(who *apitest.API, id string) string {
			looks := []string{
				who.Ask(`query($id: ID!) { node(id: $id) { ... on List { name memberCount members { totalCount nodes { id } } } } people(where: {list: $id}) { totalCount nodes { id } } }`, apitest.Vars{"id": id}).Text,
				who.Ask(`query($id: ID!) { viewer { feed(only: {list: $id}) { nodes { id } } } }`, apitest.Vars{"id": id}).Text,
				who.Ask(`mutation($id: ID!) { followList(listId: $id) { outcomes { userId } } }`, apitest.Vars{"id": id}).Text,
				who.Ask(fmt.Sprintf(`{ user(by: {id: "%s"}) { lists { nodes { name public } edges { cursor } pageInfo { hasNextPage } } } }`, v.a), nil).Text,
			}
			return strings.ReplaceAll(strings.Join(looks, "\n"), id, "ID")
		}
		check.Equal(t, "a private list, beside an unknown one", ask(other, private), ask(other, unknown))
		other.Ask(`query($id: ID!) { node(id: $id) { ... on List { memberCount members { totalCount nodes { id } } } } people(where: {list: $id}) { totalCount nodes { id } } }`, apitest.Vars{"id": public}).
			Is(fmt.Sprintf(`{"node": {"memberCount": 1, "members": {"totalCount": 1, "nodes": [{"id": "%s"}]}}, "people": {"totalCount": 1, "nodes": [{"id": "%s"}]}}`, v.c, v.c))
		v.does(v.a, "block", v.b)
		check.Equal(t, "a list of a user in a block, beside an unknown one", ask(other, public), ask(other, unknown))
		v.api.As(v.a).Ask(fmt.Sprintf(`mutation { addToList(listId: %q, userIds: ["%s"]) { outcomes { error { reason } } } }`, public, v.b), nil).
			Is(`{"addToList": {"outcomes": [{"error": {"reason": "BLOCKING"}}]}}`)
	})
}

// Lists are sets of people(where:), with each other and with follows, and are followed as a whole.
func TestListsAreCombinedAndFollowed(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		one, two := v.createList(v.a, true, v.b, v.c, v.d), v.createList(v.b, true, v.d, v.a)
		v.api.As(v.b).Ask(fmt.Sprintf(`mutation { addToList(listId: %q, userIds: ["%s"]) { changed } }`, two, v.c), nil).Is(`{"addToList": {"changed": true}}`)
		me := v.api.As(v.a)
		people := func(where string, want ...storage.UserID) {
			t.Helper()
			slices.Sort(want)
			nodes := storage.Each(want, func(id storage.UserID) string { return fmt.Sprintf(`{"id": "%s"}`, id) })
			me.Ask(fmt.Sprintf(`{ people(where: %s) { totalCount complete nodes { id } } }`, where), nil).
				Is(fmt.Sprintf(`{"people": {"totalCount": %d, "complete": true, "nodes": [%s]}}`, len(want), strings.Join(nodes, ", ")))
		}
		both := fmt.Sprintf(`{list: %q}, {list: %q}`, one, two)
		people(fmt.Sprintf(`{list: %q}`, one), v.b, v.c, v.d)
		people(fmt.Sprintf(`{and: [%s]}`, both), v.c, v.d)
		people(fmt.Sprintf(`{or: [%s]}`, both), v.a, v.b, v.c, v.d)
		v.does(v.a, "follow", v.c)
		people(fmt.Sprintf(`{and: [{list: %q}, {followedBy: "%s"}]}`, one, v.a), v.c)
		people(fmt.Sprintf(`{and: [{list: %q}, {not: {followedBy: "%s"}}]}`, one, v.a), v.b, v.d)
		many := strings.Repeat(fmt.Sprintf(`{list: %q}, `, one), 17)
		me.Ask(fmt.Sprintf(`{ people(where: {or: [%s]}) { totalCount } }`, many), nil).Refused("BAD_USER_INPUT")
		me.Ask(fmt.Sprintf(`{ people(where: {list: "%s"}) { totalCount } }`, v.b), nil).Refused("BAD_USER_INPUT")

		me.Ask(`mutation($id: ID!) { followList(listId: $id) { outcomes { userId changed relationship { status } error { reason } } pageInfo { hasNextPage } viewer { user { followingCount } } } }`, apitest.Vars{"id": two}).
			Is(fmt.Sprintf(`{"followList": {"outcomes": [{"userId": "%s", "changed": false, "relationship": {"status": "FOLLOWING"}, "error": null},
				{"userId": "%s", "changed": true, "relationship": {"status": "FOLLOWING"}, "error": null}], "pageInfo": {"hasNextPage": false}, "viewer": {"user": {"followingCount": 2}}}}`, v.c, v.d))
	})
}

// The feed of a list has posts of its members alone, and that of the special follows theirs; whom the viewer mutes or blocks is in neither.
func TestFeedsOfListsAndSpecialFollows(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		me := v.api.As(v.a)
		for _, author := range []storage.UserID{v.b, v.c, v.d} {
			v.api.As(author).Ask(`mutation { publishPost(text: "hello", clientKey: "k") { changed } }`, nil).Whole()
		}
		list := v.createList(v.b, true, v.c, v.d)
		feed := func(arguments string, want ...storage.UserID) {
			t.Helper()
			nodes := storage.Each(want, func(id storage.UserID) string { return fmt.Sprintf(`{"author": {"id": "%s"}}`, id) })
			me.Ask(fmt.Sprintf(`{ viewer { feed(only: {%s}, first: 9) { nodes { author { id } } } } }`, arguments), nil).
				Is(fmt.Sprintf(`{"viewer": {"feed": {"nodes": [%s]}}}`, strings.Join(nodes, ", ")))
		}
		ofList := fmt.Sprintf("list: %q", list)
		feed(ofList, v.d, v.c)
		feed("special: true")
		v.does(v.a, "follow", v.b)
		v.does(v.a, "follow", v.c)
		me.Ask(fmt.Sprintf(`mutation { setFollowMark(userId: "%s", special: true) { changed } }`, v.c), nil).Whole()
		feed("special: true", v.c)
		feed("special: false", v.c, v.b)
		v.does(v.a, "mute", v.c)
		feed(ofList, v.d)
		feed("special: true")
		v.does(v.a, "block", v.d)
		feed(ofList)
		me.Ask(fmt.Sprintf(`{ viewer { feed(only: {%s, special: true}) { nodes { id } } } }`, ofList), nil).Refused("BAD_USER_INPUT")
	})
}

// postAdded sends posts of a list's members, or of the special follows, also of those who are added while it runs.
func TestPostsOfListsAndSpecialFollowsAreSent(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		list := v.createList(v.b, true, v.c)
		v.does(v.a, "follow", v.d)
		ofList := subscribe(t, v.api, v.hub, v.a, fmt.Sprintf(`subscription { postAdded(only: {list: %q}) { edge { node { author { id } } } } }`, list))
		special := subscribe(t, v.api, v.hub, v.a, `subscription { postAdded(only: {special: true}) { edge { node { author { id } } } } }`)
		n := 0
		publishes := func(author storage.UserID) func(int) {
			return func(int) {
				n++
				publish(t, v.api, author, "x", fmt.Sprint("k", n))
			}
		}
		wantOnly := func(answers <-chan string, authors ...storage.UserID) {
			t.Helper()
			for {
				select {
				case answer := <-answers:
					check.That(t, slices.ContainsFunc(authors, func(id storage.UserID) bool { return strings.Contains(answer, fmt.Sprintf(`{"id":"%s"}`, id)) }), "%s came, not a post of one of %v", answer, authors)
				default:
					return
				}
			}
		}
		publishes(v.d)(0) // neither special nor on the list
		until(t, ofList, publishes(v.c))
		wantOnly(ofList, v.c)
		v.api.As(v.b).Ask(fmt.Sprintf(`mutation { addToList(listId: %q, userIds: ["%s"]) { changed } }`, list, v.d), nil).Whole()
		v.api.As(v.b).Ask(fmt.Sprintf(`mutation { removeFromList(listId: %q, userIds: ["%s"]) { changed } }`, list, v.c), nil).Whole()
		until(t, ofList, publishes(v.d))
		v.api.As(v.a).Ask(fmt.Sprintf(`mutation { setFollowMark(userId: "%s", special: true) { changed } }`, v.d), nil).Whole()
		until(t, special, publishes(v.d))
		publishes(v.c)(0)
		until(t, special, publishes(v.d))
		wantOnly(special, v.d)
		wantOnly(ofList, v.c, v.d)
	})
}

// countedLists is a store that counts the reads of lists.
type countedLists struct {
	storage.Store
	reads atomic.Int64
}

func (c *countedLists) userLists(ctx context.Context, queries []storage.ListsQuery) []storage.Result[[]storage.UserList] {
	c.reads.Add(1)
	return storage.ListLookups.Read(ctx, c.Store, queries...)
}

func (c *countedLists) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ListLookups.Instead(ctx, b, c.userLists)
	c.Store.Bundle(ctx, b)
}

// A list that is private for a while is silent for that while.
func TestPostsOfAListThatIsPublicAgainAreSent(t *testing.T) {
	for name, store := range map[string]storage.Store{
		"memory": oracle.New(),
		"SQLite": opened.Store(t, sqlstore.Config{Location: apitest.Location(t, 2), StatementTimeout: generous}),
	} {
		t.Run(name, func(t *testing.T) {
			counted := &countedLists{Store: store}
			v := settle(t, counted, apitest.Options{})
			list := v.createList(v.b, true, v.c)
			answers := v.api.As(v.a).Subscribe(t.Context(), apitest.WebSocket, fmt.Sprintf(`subscription { postAdded(only: {list: %q}) { edge { node { text } } } }`, list), nil)
			until(t, answers, func(i int) { publish(t, v.api, v.c, "open", fmt.Sprint(i)) })
			makes := func(public bool) {
				v.api.As(v.b).Ask(fmt.Sprintf(`mutation { updateList(listId: %q, public: %t) { changed } }`, list, public), nil).Is(`{"updateList": {"changed": true}}`)
			}
			sent := func(text string) {
				t.Helper()
				publish(t, v.api, v.c, text, strings.ReplaceAll(text, " ", "-"))
				for {
					select {
					case got := <-answers:
						if strings.Contains(got, fmt.Sprintf("%q", text)) {
							return
						}
						must.That(t, strings.Contains(got, `"open"`) || strings.Contains(got, `"either"`), "%s came, not %s", got, text) // posts from the beginning may come late
					case <-time.After(generous):
						t.Fatalf("%s is not sent", text)
					}
				}
			}
			for _, round := range []string{"first", "second"} {
				sent("before the " + round)
				makes(false)
				before := counted.reads.Load()
				publish(t, v.api, v.c, "private", "private"+round)
				// Each post reads the list once, in order, and so may the change: the first of three more reads is that of the private post at the latest
				// if two posts follow, which may be looked at when the list is public again.
				for i, deadline := 0, time.Now().Add(generous); counted.reads.Load() < before+3 && time.Now().Before(deadline); i++ {
					publish(t, v.api, v.c, "either", fmt.Sprint(round, i))
					time.Sleep(time.Millisecond)
				}
				makes(true)
				sent("after the " + round)
			}
		})
	}
}

// Posts of a locked user are for its followers: not for whoever has put it on a list.
func TestAListShowsNoClosedPosts(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		for _, author := range []storage.UserID{v.b, v.c} {
			v.api.As(author).Ask(`mutation { publishPost(text: "hello", clientKey: "k") { changed } }`, nil).Is(`{"publishPost": {"changed": true}}`)
		}
		v.api.As(v.b).Ask(`mutation { updateProfile(locked: true) { changed } }`, nil).Is(`{"updateProfile": {"changed": true}}`)
		me := v.api.As(v.a)
		list := me.Ask(fmt.Sprintf(`mutation { createList(name: "Both", userIds: ["%s", "%s"]) { list { id } } }`, v.b, v.c), nil).Whole().At("createList.list.id")
		shows := func(want ...storage.UserID) {
			t.Helper()
			var nodes []string
			for _, id := range want {
				nodes = append(nodes, fmt.Sprintf(`{"author": {"id": "%s"}}`, id))
			}
			me.Ask(fmt.Sprintf(`{ viewer { feed(only: {list: %q}) { nodes { author { id } } } } }`, list), nil).Is(`{"viewer": {"feed": {"nodes": [` + strings.Join(nodes, ", ") + `]}}}`)
		}
		shows(v.c)
		v.does(v.a, "follow", v.b) // waits
		shows(v.c)
		v.does(v.b, "acceptRequest FOLLOW", v.a)
		shows(v.c, v.b)
	})
}

// However many users are hidden, short lists are counted by reading them: to look all of the hidden up on each took a thousand keys a list.
func TestShortListsAreCountedByReadingThem(t *testing.T) {
	recorder := &apitest.Recorder{}
	store := opened.Store(t, sqlstore.Config{Location: apitest.Location(t, 1), OnStatement: recorder.Observe})
	const visible, hidden, lists = 3, 300, 20
	apitest.Users(t, store, visible+hidden)
	api := apitest.New(t, store, apitest.Options{})
	for i := range lists {
		api.As(1).Ask(`mutation($name: String!) { createList(name: $name, public: true, userIds: [2, 3, 4]) { changed } }`, apitest.Vars{"name": fmt.Sprint(i)}).Whole()
	}
	for id := storage.UserID(visible + 1); id <= visible+hidden; id++ {
		_, err := store.SetState(t.Context(), id, storage.Deactivated, storage.MicrosOf(time.Now()))
		must.OK(t, err)
	}
	api = apitest.New(t, store, apitest.Options{}).As(1)
	recorder.Take()
	counts := apitest.Into[[]struct{ MemberCount int }](api.Ask(`{ user(by: {id: 1}) { lists(first: 100) { nodes { memberCount } } } }`, nil).Whole(), "user.lists.nodes")
	for _, l := range counts {
		check.Equal(t, "members of a list of two and one who is hidden", l.MemberCount, 2)
	}
	asked := recorder.Take()
	check.That(t, len(counts) == lists && len(asked) <= 8, "%d lists take %s", len(counts), asked)
}

// What a request may read for its counts has a bound: of other lists it is not known how many users are hidden.
func TestListsAreCountedAsFarAsTheBudgetGoes(t *testing.T) {
	const hidden, members = 60, 100
	store := storeOf(t, members+1)
	for id := storage.UserID(2); id < hidden+2; id++ {
		deactivate(t, store, id)
	}
	var lists []string
	for n := int64(1); n <= 3; n++ {
		list, _, err := store.CreateList(t.Context(), storage.UserList{ListID: storage.ListID{Owner: 1, Number: n}, Name: fmt.Sprint(n), Public: true})
		must.OK(t, err)
		lists = append(lists, fmt.Sprintf(`"list_1_%d"`, n))
		var edges []storage.Edge
		for id := storage.UserID(2); id < members+2; id++ {
			edges = append(edges, storage.Pair{From: 1, To: id, Item: list.Kind()}.Edge(storage.Related, apitest.Epoch))
		}
		apitest.ApplyTo(t, store, storage.Relations, edges...)
	}
	api := apitest.New(t, store, apitest.Options{Budget: 2*hidden + 50})
	answer := api.Ask(`{ nodes(ids: [`+strings.Join(lists, ", ")+`]) { ... on List { memberCount } } }`, nil)
	check.Equal(t, "lists that are counted", strings.Count(answer.Text, `{"memberCount":40}`), 2)
	answer.Refused("QUERY_TOO_COSTLY")
	answer = api.Ask(`{ nodes(ids: [`+strings.Join(lists, ", ")+`]) { ... on List { members(first: 0) { totalCount complete } } } }`, nil).Whole()
	for complete, lists := range map[bool]int{true: 2, false: 1} {
		check.Equal(t, fmt.Sprint("lists of which that is ", complete), strings.Count(answer.Text, fmt.Sprintf(`{"totalCount":40,"complete":%t}`, complete)), lists)
	}
}
