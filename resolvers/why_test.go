package resolvers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/storage"
	"kith/storage/sqlstore"
)

// reasonsOf asks why something is not in an answer: each as "path: rule about". An answer without the scope has none.
func reasonsOf(t *testing.T, api *apitest.API, viewer storage.UserID, query string) (apitest.Answer, []string) {
	t.Helper()
	asking := api.Admin().With("Kith-Why", "1")
	answer := asking.As(viewer).Ask(query, nil)
	for _, other := range []*apitest.API{api.With("Kith-Why", "1"), api.As(max(1, viewer)).With("Kith-Why", "1"), api.Admin()} {
		check.Equal(t, query, other.Ask(query, nil).Extensions["why"], nil)
	}
	list, told := answer.Extensions["why"].([]any)
	must.That(t, told, "%s: nothing is told: %s", query, answer.Text)
	var reasons []string
	for _, one := range list {
		reason := one.(map[string]any)
		path := strings.ReplaceAll(strings.Trim(fmt.Sprint(reason["path"]), "[]"), " ", ".")
		text := path + ": " + reason["rule"].(string)
		if about := reason["about"]; about != nil {
			text += " " + about.(string)
		}
		reasons = append(reasons, text)
	}
	slices.Sort(reasons)
	return answer, reasons
}

// TestWhySomebodySeesNothing: whatever the table of who may see what shows to somebody and not to another has its reason at its path,
// and what is shown has none.
func TestWhySomebodySeesNothing(t *testing.T) {
	for _, visibility := range []storage.Visibility{storage.ToEveryone, storage.ToFollowers, storage.ToNobody, locked} {
		lists, isLocked := visibility, visibility == locked
		if isLocked {
			lists = storage.ToEveryone
		}
		api := sixUsers(t, lists, isLocked)
		for _, s := range seen {
			for _, l := range lookers {
				if strings.HasPrefix(s.what, "`special`") || strings.HasPrefix(s.what, "`muted`") || l.id == owner && strings.HasPrefix(s.what, "`viewerRelationship`") ||
					l.id == 0 && (strings.HasPrefix(s.what, "`viewerRelationship`") || strings.HasPrefix(s.what, "`followersYouKnow`")) {
					continue // these are the viewer's own
				}
				answer, reasons := reasonsOf(t, api, l.id, "{ "+s.query+" }")
				hidden := false
				for at := range strings.FieldsSeq(s.at) {
					if !isNull(answer.Data, strings.Split(at, ".")) {
						continue
					}
					hidden = true
					want := []string{"closed list", "locked"}
					if l.id == blocker && !strings.Contains(s.what, "`seen: ") && !strings.Contains(s.what, "of that kind") || strings.Contains(s.what, "`seen: everyone`") && l.id == blocker {
						want = []string{"block"}
					}
					if !slices.ContainsFunc(reasons, func(reason string) bool {
						path, rule, _ := strings.Cut(reason, ": ")
						return strings.HasPrefix(at+".", path+".") && slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(rule, w) })
					}) {
						t.Errorf("lists of visibility %d, %s: %s is null to %s, and not because of %s: %q", visibility, s.what, at, l.name, want, reasons)
					}
				}
				if !hidden && l.id != blocker && slices.ContainsFunc(reasons, func(r string) bool {
					return !strings.HasPrefix(r, "user.edges") && r != "user.followSuggestions: closed list 6" // from the followings of the friend
				}) {
					t.Errorf("lists of visibility %d, %s: all is shown to %s, and %q told", visibility, s.what, l.name, reasons)
				}
			}
		}
	}
}

// TestWhy: user 1 follows 2, 3, 4, 5 and 6. It is in a block with 2, has muted 3, and 4 is deactivated.
func TestWhy(t *testing.T) {
	store := storeOf(t, 9)
	apitest.Follow(t, store, 1, 2, 3, 4, 5, 6)
	apitest.Follow(t, store, 9, 2, 3, 4, 5)
	for _, author := range []storage.UserID{2, 3, 4, 5} {
		_, _, err := store.Publish(t.Context(), storage.PostRow{PostID: storage.PostID{Author: author, Number: int64(author)}, Key: "k", Text: "x", At: storage.MicrosOf(time.Now().Add(-time.Hour))})
		must.OK(t, err)
	}
	apitest.Block(t, store, 2, 9)
	api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits})
	api.As(9).Ask(`mutation { mute(userId: 3) { changed } }`, nil).Is(`{"mute": {"changed": true}}`)
	api.As(4).Ask(`mutation { deactivateAccount { changed } }`, nil).Is(`{"deactivateAccount": {"changed": true}}`)
	for query, want := range map[string][]string{
		`{ a: user(by: {id: 4}) { name } users(by: {ids: [5, 4]}) { id } }`:                                                            {"a: hidden 4", "users.1: hidden 4"},
		`{ user(by: {id: 1}) { l: followings(first: 9) { nodes { id } } again: followings(first: 9) { nodes { id } } } }`:              {"user.again: block 2", "user.again: hidden 4", "user.l: block 2", "user.l: hidden 4"},
		`{ user(by: {id: 1}) { commonFollowings(with: 9) { nodes { id } } } }`:                                                         {"user.commonFollowings: hidden 4"},
		`{ people(where: {and: [{followedBy: 1}, {followedBy: 5}]}) { totalCount } latestPosts { nodes { id } } }`:                     {"latestPosts: block 2", "latestPosts: hidden 4"},
		`{ viewer { feed(first: 9) { nodes { id } } } }`:                                                                               {"viewer.feed: hidden 4", "viewer.feed: mute 3"},
		`{ nodes(ids: ["post_4_4", "post_5_5"]) { id } }`:                                                                              {"nodes: hidden 4"},
		`{ user(by: {id: 5}) { relationship(to: 4) { status } followings { nodes { id } } } }`:                                         {"user.relationship: hidden 4"},
		`mutation { a: follow(userId: 5) { user { id } } b: mute(userId: 3) { relationship { to { followings { nodes { id } } } } } }`: nil,
	} {
		_, got := reasonsOf(t, api, 9, query)
		check.Equal(t, query, got, want)
	}
	few := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits, Budget: 1})
	answer, got := reasonsOf(t, few, 1, `{ user(by: {id: 1}) { followSuggestions { complete nodes { id } } } }`)
	check.That(t, slices.Contains(got, "user.followSuggestions: budget"), "%s: %q", answer.Text, got)
}

// TestWhyOfEveryKind has a row for each rule and kind of place. The viewer, 1, follows 6, 7 and 16. Of whom 7 follows, 2 blocks 1, 3 is muted, 4 is
// deactivated, 5 is locked, 8 is undiscoverable, 9 is dismissed, 10 has been asked; nobody sees whom 6 follows, and who follows it.
// An answer is the same if somebody asks why.
func TestWhyOfEveryKind(t *testing.T) {
	for _, isWarm := range []bool{false, true} {
		sql := opened.Store(t, sqlstore.Config{Location: apitest.Location(t, 1), StatementTimeout: generous})
		var store storage.Store = sql
		if isWarm {
			store = newWarmStore(t, sql)
		}
		apitest.Users(t, store, 400)
		api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits, Declared: declare(t, someKinds)})
		does := func(by storage.UserID, mutation string) apitest.Answer {
			return api.As(by).Ask("mutation { "+mutation+" }", nil).Whole()
		}
		for _, author := range []storage.UserID{2, 3, 4, 5, 8} {
			does(author, `publishPost(text: "@u1", clientKey: "k") { changed }`)
		}
		mine := apitest.Into[string](does(1, `publishPost(text: "x", clientKey: "k") { post { id } }`), "publishPost.post.id")
		apitest.Follow(t, store, 7, 1, 2, 3, 4, 5, 8, 9, 10, 12)
		for _, by := range []storage.UserID{2, 3, 4, 6, 9, 12} { // who follows 7, and is followed by it, or is not
			apitest.Follow(t, store, by, 7)
		}
		for _, follow := range []storage.UserID{6, 7, 16} {
			apitest.Follow(t, store, 1, follow)
		}
		many := []storage.UserID{2, 4} // lists so long that whoever is hidden is only counted
		for by := storage.UserID(52); by < 400; by++ {
			many = append(many, by)
			apitest.Follow(t, store, by, 17)
		}
		apitest.Follow(t, store, 4, 17)
		apitest.Follow(t, store, 17, many...)
		apitest.Follow(t, store, 18, many...)
		for _, by := range []storage.UserID{2, 3, 4} { // after 1 has followed: of what concerns it
			does(by, fmt.Sprintf(`favorite(postId: %q) { changed } addComment(postId: %q, text: "x", clientKey: "k") { changed }`, mine, mine))
		}
		members := `"2", "3", "4", "8"`
		public := apitest.Into[string](does(7, `createList(name: "public", public: true, userIds: [`+members+`]) { list { id } }`), "createList.list.id")
		private := apitest.Into[string](does(7, `createList(name: "private", userIds: ["8"]) { list { id } }`), "createList.list.id")
		does(7, `relate(kind: ADMIRES, ids: ["8"]) { outcomes { changed } }`)
		does(8, `follow(userId: 9) { changed } requestFriend(userId: 9) { changed }`)
		for _, one := range []struct {
			by       storage.UserID
			mutation string
		}{
			{1, `mute(userId: 15) { changed }`}, {1, `mute(userId: 3) { changed }`}, {1, `dismissSuggestion(userId: 9) { changed }`}, {1, `requestFriend(userId: 10) { changed }`},
			{8, `updateProfile(discoverable: false) { changed }`}, {6, `updateProfile(listVisibility: {followings: NOBODY, followers: NOBODY}) { changed }`},
			{2, `block(userId: 1) { changed }`}, {16, `mute(userId: 3) { changed } block(userId: 8) { changed } dismissSuggestion(userId: 5) { changed }`}, {4, `deactivateAccount { changed }`}, {5, `updateProfile(locked: true) { changed }`},
		} {
			does(one.by, one.mutation)
		}
		api.Admin().Ask(`mutation { suspendUser(userId: 15, reason: "x") { changed } }`, nil).Whole()
		all := func(path string) []string { return []string{path + ": block 2", path + ": hidden 4"} }
		for _, row := range []struct {
			what, query string
			want        []string
		}{
			{"mutes in a search", `{ searchUsers(text: "u", first: 50) { nodes { id } } }`, []string{"searchUsers: block 2", "searchUsers: hidden 4", "searchUsers: mute 15", "searchUsers: mute 3"}},
			{"a search of two words finds none of the others", `{ searchUsers(text: "user 7") { nodes { id } } }`, nil},
			{"in each alias", `{ a: searchUsers(text: "u3") { nodes { id } } b: searchUsers(text: "u3") { nodes { id } } }`, []string{"a: mute 3", "b: mute 3"}},
			{"a filter of a list", `{ user(by: {id: 7}) { followings(filter: {match: "u"}) { nodes { id } } } }`, all("user.followings")},
			{"suggestions", `{ user(by: {id: 1}) { followSuggestions(first: 50) { nodes { id } } } }`, []string{
				"user.followSuggestions: block 2", "user.followSuggestions: closed list 6", "user.followSuggestions: hidden 4", "user.followSuggestions: mute 3",
				"user.followSuggestions: not suggested 10", "user.followSuggestions: not suggested 8", "user.followSuggestions: not suggested 9",
			}},
			{"similar users", `{ user(by: {id: 12}) { similarUsers { nodes { id } } } }`, append(all("user.similarUsers"), "user.similarUsers: not suggested 8")},
			{"a total alone", `{ user(by: {id: 7}) { followings { totalCount } followers { totalCount } } }`, append(all("user.followers"), all("user.followings")...)},
			{"a total beside a page", `{ user(by: {id: 7}) { followings(first: 1) { totalCount nodes { id } } } }`, all("user.followings")},
			{"a total of friends", `{ user(by: {id: 7}) { friends(first: 0) { totalCount } } }`, all("user.friends")},
			{"a total of whom it does not follow back", `{ user(by: {id: 7}) { notFollowedBack { totalCount } } }`, nil},
			{"a total of whom does not follow back", `{ user(by: {id: 7}) { notFollowingBack { totalCount } } }`, nil},
			{"a total of a common list", `{ people(where: {and: [{followedBy: 7}, {followersOf: 7}]}, first: 0) { totalCount } }`, all("people")},
			{"a total of a long list", `{ user(by: {id: 17}) { followings { totalCount } } }`, all("user.followings")},
			{"a total of a long common list", `{ user(by: {id: 17}) { commonFollowings(with: 18) { totalCount } } }`, all("user.commonFollowings")},
			{"totals of long matches", `{ user(by: {id: 17}) { friends(first: 0) { totalCount } notFollowingBack(first: 0) { totalCount } } }`, []string{"user.friends: hidden 4", "user.notFollowingBack: block 2"}},
			{"a total of an own list", `{ viewer { mutedUsers { totalCount } } }`, []string{"viewer.mutedUsers: hidden 15"}},
			{"totals of a list that a user has made", fmt.Sprintf(`{ node(id: %q) { ... on List { memberCount a: members { totalCount } b: members { nodes { id } } } } }`, public),
				append(append(all("node.a"), all("node.b")...), all("node.memberCount")...)},
			{"whether somebody is on it", fmt.Sprintf(`{ node(id: %q) { ... on List { has(userId: 4) } } }`, public), []string{"node.has: hidden 4"}},
			{"private lists", `{ user(by: {id: 7}) { lists { nodes { id } } } }`, []string{"user.lists: closed list 7"}},
			{"a private list", fmt.Sprintf(`{ nodes(ids: [%q]) { id } people(where: {list: %q}) { totalCount } }`, private, private), []string{"nodes: closed list 7", "people: closed list 7"}},
			{"posts by its members", fmt.Sprintf(`{ viewer { feed(only: {list: %q}) { nodes { id } } } }`, public), append(all("viewer.feed"), "viewer.feed: mute 3")},
			{"edges that are for both ends", `{ people(where: {relatedTo: {kind: ADMIRES, userId: 7}}) { totalCount } }`, []string{"people: closed list 7"}},
			{"the special follows of others", `{ user(by: {id: 7}) { followings(filter: {special: true}) { totalCount } } }`, []string{"user.followings: closed list 7"}},
			{"a request between others", `{ node(id: "req_8_9") { id } }`, []string{"node: closed list 8"}},
			{"the count of friends of one of two", `{ users(by: {ids: [6, 7]}) { friendCount } }`, []string{"users.0: closed list 6"}},
			{"activity", `{ viewer { activity { nodes { kind } } } }`, append(all("viewer.activity"), "viewer.activity: locked 5", "viewer.activity: mute 3")},
			{"a post that is refused", `mutation { favorite(postId: "post_5_4") { changed } }`, []string{"favorite: locked 5"}},
			{"a comment that is refused", `mutation { addComment(postId: "post_2_1", text: "x", clientKey: "c") { changed } }`, []string{"addComment: block 2"}},
			{"a follow that is refused", `mutation { follow(userId: 2) { changed } }`, []string{"follow: block"}},
		} {
			api.As(1).Ask(row.query, nil) // caches have it now
			api.As(1).Ask(row.query, nil)
			answer, got := reasonsOf(t, api, 1, row.query)
			slices.Sort(row.want)
			check.Equal(t, fmt.Sprintf("%s, warm: %t: %s\n%.300s", row.what, isWarm, row.query, answer.Text), got, row.want)
			check.Equal(t, row.query+", if somebody asks why", api.Admin().As(1).Ask(row.query, nil).Data, answer.Data)
		}
		const popular = `{ user(by: {id: 16}) { f: followSuggestions(first: 50) { nodes { id } } } }`
		_, got := reasonsOf(t, api, 16, popular)
		check.Equal(t, fmt.Sprintf("suggestions to whoever follows nobody, warm: %t", isWarm), got, []string{"user.f: block 8", "user.f: hidden 4", "user.f: mute 3", "user.f: not suggested 5"})
		few := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits, Budget: 1})
		_, got = reasonsOf(t, few, 1, `{ edgesAmong(ids: [7, 2, 3, 12]) { complete } }`)
		check.That(t, isWarm || slices.Contains(got, "edgesAmong: budget"), "edges left out for the budget: %q", got)
	}
}

// TestWhyOfEachEvent: an answer of a subscription has its own reasons, and none of the answers before.
func TestWhyOfEachEvent(t *testing.T) {
	api, store := withUsers(t, 9, apitest.Options{Limits: apitest.NoLimits})
	apitest.Follow(t, store, 5, 3, 4)
	apitest.Follow(t, store, 6, 3)
	api.As(4).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
	for _, over := range apitest.Transports {
		answers := api.Admin().As(9).With("Kith-Why", "1").Subscribe(t.Context(), over, `subscription { f: followerAdded { edge { node { id followings { nodes { id } } } } } }`, nil)
		follows := func(by storage.UserID, i int) {
			api.As(by).Ask(fmt.Sprintf(`mutation { %s(userId: 9) { changed } }`, []string{"follow", "unfollow"}[i%2]), nil).Whole()
		}
		until(t, answers, func(i int) { follows(5, i) })
		follows(6, 1)
		follows(5, 1)
		follows(5, 0) // whether it followed at last or not, there is one more answer
		follows(6, 0)
		seen := map[string]string{}
		for seen["6"] == "" {
			select {
			case text := <-answers:
				for _, by := range []string{"5", "6"} {
					if strings.Contains(text, `"node":{"id":"`+by+`"`) {
						seen[by] = text
					}
				}
			case <-time.After(generous):
				t.Fatalf("%s: no answer about 6: %v", over, seen)
			}
		}
		check.Has(t, over, seen["5"], `"rule":"hidden","about":"4"`)
		check.Has(t, over, seen["6"], `"why":[]`)
	}
}
