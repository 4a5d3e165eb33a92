package resolvers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/apitest"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Every list and every relationship is what the viewer may see of it. Hidden users are left out of
// pages and totals. Lists that are not open are null, and so is everything that is derived from such a list.
func TestEverybodySeesWhatIsOpenToThem(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		properties.Check(t, cases, func(t *rapid.T) {
			w := drawWorld(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(8, 16).Draw(t, "users"))
			store := oracle.New()
			must.OK(t, w.fill(store))
			w.check(t, w.api(t, store))
		})
	})
	seed := uint64(1)
	one := func(t *testing.T, store storage.Store) {
		w := drawWorld(seed, 24)
		seed++
		must.OK(t, w.fill(store))
		for viewer := range storage.UserID(4) { // 0 is nobody
			w.viewer = viewer
			w.check(t, w.api(t, store))
		}
	}
	onEngines(t, one)
}

// An edge that is in no open list shows only in the counts of its two ends. If it changes, no other
// answer changes.
func TestHiddenEdgesShowInCountsOnly(t *testing.T) {
	properties.Check(t, cases, func(t *rapid.T) {
		w := drawWorld(rapid.Uint64().Draw(t, "seed"), 8)
		isRequest := rapid.Bool().Draw(t, "a request for a follow")
		edge, found := w.hiddenEdge(rapid.IntRange(0, 1<<20).Draw(t, "which edge"), isRequest)
		if !found {
			t.Skip("every edge may be seen")
		}
		before := w.answers(t)
		switch {
		case isRequest:
			w.waits[edge] = !w.waits[edge]
		case w.follows[edge] == 0:
			delete(w.waits, edge)
			w.follows[edge] = apitest.Epoch + storage.Micros(rapid.IntRange(0, w.n).Draw(t, "time"))
		default:
			delete(w.follows, edge)
		}
		after := w.answers(t)
		for i := range before {
			// The counts may change; everything else is compared.
			b, a := withoutCounts(decoded(t, before[i])), withoutCounts(decoded(t, after[i]))
			difference := differs("", b, a)
			must.That(t, difference == "", "viewer %d, edge %d → %d: %s", w.viewer, edge.From, edge.To, difference)
		}
	})
}

// hiddenEdge returns an edge, or a pair that might have one, that the viewer may not see. A request is seen by its two users alone.
func (w *world) hiddenEdge(which int, isRequest bool) (storage.Pair, bool) {
	var hidden []storage.Pair
	for _, a := range w.users() {
		for _, b := range w.users() {
			p := storage.Pair{From: a, To: b}
			unseen := !w.sees(p)
			if isRequest {
				unseen = w.viewer != a && w.viewer != b && w.follows[p] == 0
			}
			if a != b && !w.inBlock(a, b) && !w.absent[a] && !w.absent[b] && unseen {
				hidden = append(hidden, p)
			}
		}
	}
	if len(hidden) == 0 {
		return storage.Pair{}, false
	}
	return hidden[which%len(hidden)], true
}

// answers asks a fresh store for everything that shows relations, for several users, nested.
func (w *world) answers(t *rapid.T) []string {
	store := oracle.New()
	must.OK(t, w.fill(store))
	api := w.api(t, store)
	const page = `totalCount complete pageInfo { hasNextPage endCursor } nodes { id }`
	user := `id followingCount followerCount friendCount
		followings(first: 3) { ` + page + ` } followers(last: 3) { ` + page + ` } all: followers(first: 100) { edges { cursor followedAt node { id } } }
		mutual: followings(filter: {mutual: true}, orderBy: CLOSEST) { ` + page + ` } named: followers(filter: {match: "user"}, orderBy: CLOSEST, last: 3) { ` + page + ` }
		friends { ` + page + ` } notFollowingBack { ` + page + ` } notFollowedBack { ` + page + ` } followersYouKnow { ` + page + ` }
		followSuggestions { complete nodes { id } excluded { followed blocked dismissed } edges { score sharedCount via { id } } }
		viewerRelationship { status followedAt followedByAt blocking blockedBy followRequested followRequestedBy } locked`
	for _, other := range []int{1, 2, 5} {
		user += strings.ReplaceAll(fmt.Sprintf(` c@: commonFollowings(with: @) { %[1]s } f@: commonFollowers(with: @) { %[1]s }
			r@: commonFollowings(with: @, orderBy: RECENT) { %[1]s } s@: commonFollowers(with: @, orderBy: RECENT) { %[1]s }
			t@: relationship(to: @) { status followedAt followedByAt }`, page), "@", fmt.Sprint(other))
	}
	ids := w.users()
	var people strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&people, `a%[1]d: people(where: {followersOf: %[1]d}) { %[2]s } b%[1]d: people(where: {followedBy: %[1]d}) { %[2]s }
			c%[1]d: people(where: {and: [{or: [{friendsOf: %[1]d}, {followedBy: %[3]d}]}, {not: {followersOf: %[1]d}}]}) { %[2]s }
			d%[1]d: searchUsers(text: "u%[1]d") { nodes { `+user+` } }
			`, id, page, id%8+1)
	}
	var answers []string
	for query, vars := range map[string]apitest.Vars{
		`query($ids: [ID!]!) { users(by: {ids: $ids}) { ` + user + ` } }`: {"ids": ids},
		`query($ids: [ID!]!) { users(by: {ids: $ids}) { followings { nodes { ` + user + ` theirs: followers { nodes { friends { totalCount } } } } } friends { nodes { ` + user + ` } } } }`: {"ids": ids},
		`query($ids: [ID!]!) { relationships(from: $ids, to: $ids) { id status following followedBy followedAt followedByAt from { friendCount } to { followers { totalCount } } } }`:        {"ids": ids},
		edgesAmong: {"ids": ids},
		`query($ids: [ID!]!) { viewer { r: requests(kind: FOLLOW) { ` + page + ` } s: requests(kind: FOLLOW, direction: SENT) { ` + page + ` } } relationships(from: $ids, to: $ids) { followRequested followRequestedBy } }`: {"ids": ids},
		`{ ` + people.String() + `}`: nil,
	} {
		answers = append(answers, query+"\x00"+api.Ask(query, vars).Whole().Text)
	}
	slices.Sort(answers)
	for i, a := range answers {
		_, answers[i], _ = strings.Cut(a, "\x00")
	}
	return answers
}

// withoutCounts removes the counts, which are public.
func withoutCounts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		v = maps.Clone(v)
		delete(v, "followingCount")
		delete(v, "followerCount")
		for key, below := range v {
			v[key] = withoutCounts(below)
		}
		return v
	case []any:
		list := make([]any, len(v))
		for i, below := range v {
			list[i] = withoutCounts(below)
		}
		return list
	}
	return v
}

// differs returns the first path at which two values differ, or "".
func differs(at string, a, b any) string {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok && len(x) == len(y) {
			for _, key := range slices.Sorted(maps.Keys(x)) {
				if d := differs(at+"."+key, x[key], y[key]); d != "" {
					return d
				}
			}
			return ""
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				if d := differs(fmt.Sprintf("%s.%d", at, i), x[i], y[i]); d != "" {
					return d
				}
			}
			return ""
		}
	default:
		if a == b {
			return ""
		}
	}
	return fmt.Sprintf("%s is %v before and %v after", at, a, b)
}
