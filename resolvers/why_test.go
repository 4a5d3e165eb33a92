package resolvers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// reasonsOf asks why something is not in an answer: each as "path: rule about". An answer without the scope has none.
func reasonsOf(t *testing.T, api *apitest.API, viewer storage.UserID, query string) (apitest.Answer, []string) {
	t.Helper()
	asking := api.Admin().With("Kith-Why", "1")
	answer := asking.As(viewer).Ask(query, nil)
	for _, other := range []*apitest.API{api.With("Kith-Why", "1"), api.As(max(1, viewer)).With("Kith-Why", "1"), api.Admin()} {
		if got := other.Ask(query, nil); got.Extensions["why"] != nil {
			t.Errorf("%s: somebody who may not or does not ask is told %v", query, got.Extensions)
		}
	}
	list, told := answer.Extensions["why"].([]any)
	if !told {
		t.Fatalf("%s: nothing is told: %s", query, answer.Text)
	}
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
				if !hidden && l.id != blocker && slices.ContainsFunc(reasons, func(r string) bool { return !strings.HasPrefix(r, "user.edges") }) {
					t.Errorf("lists of visibility %d, %s: all is shown to %s, and %q told", visibility, s.what, l.name, reasons)
				}
			}
		}
	}
}

// TestWhy: user 1 follows 2, 3, 4, 5 and 6. It is in a block with 2, has muted 3, and 4 is deactivated.
func TestWhy(t *testing.T) {
	store := oracle.New()
	apitest.Users(t, store, 9)
	apitest.Follow(t, store, 1, 2, 3, 4, 5, 6)
	apitest.Follow(t, store, 9, 2, 3, 4, 5)
	for _, author := range []storage.UserID{2, 3, 4, 5} {
		if _, _, err := store.Publish(t.Context(), storage.NewPost{PostID: storage.PostID{Author: author, Number: int64(author)}, Key: "k", Text: "x", At: storage.MicrosOf(time.Now().Add(-time.Hour))}); err != nil {
			t.Fatal(err)
		}
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
		if _, got := reasonsOf(t, api, 9, query); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q,\nwant %q", query, got, want)
		}
	}
	few := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits, Budget: 1})
	if answer, got := reasonsOf(t, few, 1, `{ user(by: {id: 1}) { followSuggestions { complete nodes { id } } } }`); !slices.Contains(got, "user.followSuggestions: budget") {
		t.Errorf("%s: %q", answer.Text, got)
	}
}
