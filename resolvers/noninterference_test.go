package resolvers_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kith/graph/declared"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/sqlstore"
)

// twinWorld is one of two graphs, and where its subscriptions hear of events.
type twinWorld struct {
	*apitest.API
	tight *apitest.API // with a budget of few rows, which one set answer has for itself
	hub   *events.Hub
	muted map[storage.Pair]int // how often the viewers have muted others, or ended it
}

// twin is one of two graphs that differ only in what others may not see: in edges between users whose lists are closed, in
// requests for follows, in what a locked user has published and who has favorited and commented on it, and in what a hidden user
// is like, and why it is hidden. All public figures are the same. Users 1 to 3 have open lists, 4 to 7 closed ones but for the followers
// of 4, 6 and 7 are locked, and 8 to 11 deactivated in one graph, and suspended in the other. More users than are counted one by one work with
// user 2.
func twin(t *testing.T, location string, cached, other bool) *twinWorld {
	store := opened.Store(t, sqlstore.Config{Location: location, StatementTimeout: generous})
	users := make([]storage.User, 11)
	for i := range users {
		id := storage.UserID(i + 1)
		users[i] = storage.User{ID: id, Handle: "u" + id.String(), Name: "User " + id.String(), CreatedAt: apitest.Epoch, UpdatedAt: apitest.Epoch}
		users[i].Locked = id == 6 || id == 7
		if id >= 4 {
			users[i].FollowingsVisibility, users[i].FollowersVisibility = storage.ToNobody, storage.ToNobody
		}
		if id == 4 {
			users[i].FollowersVisibility = storage.ToEveryone
		}
	}
	if other {
		users[7].Name, users[10] = "Somebody else", storage.User{ID: 12, Handle: "else", CreatedAt: apitest.Epoch, UpdatedAt: apitest.Epoch}
	}
	var many []storage.Edge
	for id := storage.UserID(1001); id <= 1230; id++ {
		users = append(users, storage.User{ID: id, Handle: "many" + id.String(), CreatedAt: apitest.Epoch, UpdatedAt: apitest.Epoch})
		many = append(many, storage.Pair{From: id, To: 2, Item: 101}.Edge(storage.Related, apitest.Epoch))
	}
	apitest.CreateUsers(t, store, users...)
	apitest.ApplyTo(t, store, storage.Relations, many...)
	apitest.Follow(t, store, 1, 2, 3, 4, 8)
	apitest.Follow(t, store, 2, 1, 3, 4, 5, 6, 7)
	apitest.Follow(t, store, 3, 2, 5, 7)
	if other {
		apitest.Follow(t, store, 4, 7, 2)
		apitest.Follow(t, store, 6, 5, 1)
		apitest.Follow(t, store, 8, 9)
		apitest.Apply(t, store, storage.Edge{From: 5, To: 6, Type: storage.Requested, UpdateTime: apitest.Epoch})
	} else {
		apitest.Follow(t, store, 4, 5, 2)
		apitest.Follow(t, store, 6, 7, 1)
		apitest.Follow(t, store, 8, 9, 10)
		apitest.Apply(t, store, storage.Edge{From: 4, To: 6, Type: storage.Requested, UpdateTime: apitest.Epoch + 7})
	}
	// Users 1 and 3 do not follow user 6, have favorited its post, and are named there.
	for _, by := range []storage.UserID{1, 2, 4, 6, 7, 8} {
		post := storage.PostRow{PostID: storage.PostID{Author: by, Number: int64(by)}, Key: "1", Text: "x", At: apitest.Epoch + storage.Micros(by)}
		if other && by == 6 {
			post.Number, post.Text, post.At = 56, "y", apitest.Epoch
		}
		_, _, err := store.Publish(t.Context(), post)
		must.OK(t, err)
		if by != 6 {
			continue
		}
		var favorites []storage.Edge
		for _, viewer := range []storage.UserID{1, 3} {
			favorites = append(favorites, storage.Edge{From: viewer, To: by, Item: post.Number, Type: storage.Favorited, UpdateTime: apitest.Epoch},
				storage.Edge{From: by, To: viewer, Item: post.Number, Type: storage.Mentioned, UpdateTime: post.At})
		}
		apitest.ApplyTo(t, store, storage.Favorites, favorites...)
	}
	// Hidden users follow user 1, favorite and comment on its post, and name it, on other days.
	late := apitest.Epoch + storage.Micros(3*24*time.Hour/time.Microsecond)
	if other {
		late = apitest.Epoch + storage.Micros(1000*24*time.Hour/time.Microsecond)
	}
	apitest.Apply(t, store, storage.Edge{From: 9, To: 1, Type: storage.Following, UpdateTime: late})
	// A new follower makes user 1 active, as it raises the count of followers; so it is in both graphs.
	must.OK(t, store.MarkActive(t.Context(), []storage.UserID{1}, ahead.Day()))
	apitest.ApplyTo(t, store, storage.Favorites, []storage.Edge{{From: 8, To: 1, Item: 1, Type: storage.Favorited, UpdateTime: late}, {From: 8, To: 1, Item: 8, Type: storage.Mentioned, UpdateTime: late}}...)
	_, _, err := store.AddComment(t.Context(), storage.Comment{CommentID: storage.CommentID{Author: 1, Number: 3000}, Post: 1, By: 10, Key: "1", Text: "x", CreatedAt: late})
	must.OK(t, err)
	// What users 2 and 4 mute, and relate to by kinds that others do not see. Users 1 and 3 ask.
	relate := func(from, to storage.UserID, kind int64, detail storage.Detail) {
		for _, side := range []storage.Side{storage.Relations, storage.RelationInbox} {
			e := storage.Pair{From: from, To: to, Item: kind}.Edge(storage.Related, apitest.Epoch)
			must.OK(t, store.Apply(t.Context(), side, []storage.Edge{e}, storage.IfNewer)[0].Err)
			must.OK(t, store.Restore(t.Context(), storage.Restored{Details: []storage.RelationRow{{Edge: e, Detail: detail}}})[0].Err)
		}
	}
	relate(2, 3, 101, storage.Detail{}) // everybody sees this one
	if other {
		relate(2, 1, declared.Mutes.Number, storage.Detail{})
		relate(4, 2, 102, storage.Detail{Attributes: "x"})
		relate(5, 4, 103, storage.Detail{})
		relate(6, 5, 101, storage.Detail{}) // user 6 is locked
		relate(6, storage.Foreign(5), 100, storage.Detail{})
	} else {
		relate(2, 3, declared.Mutes.Number, storage.Detail{EndsAt: 1 << 60})
		relate(4, 2, declared.PostMutes.Number, storage.Detail{})
		relate(4, 1, declared.Dismissals.Number, storage.Detail{EndsAt: 1 << 60})
		relate(2, 3, declared.Dismissals.Number, storage.Detail{EndsAt: 1 << 60})
		relate(4, 5, 103, storage.Detail{})
		relate(6, 2, 101, storage.Detail{EndsAt: 1 << 60, Attributes: `{"rank":1}`})
	}
	for _, viewer := range []storage.UserID{1, 3} {
		publishNews(t, store, viewer)
	}
	for id := storage.UserID(8); id <= 11; id++ {
		if !other {
			deactivate(t, store, id)
		} else if id < 11 {
			suspend(t, store, id)
		}
	}
	if other {
		suspend(t, store, 12)
	}
	var served storage.Store = store
	if cached {
		served = newWarmStore(t, store)
	}
	w := &twinWorld{hub: events.NewHub(nil), muted: map[storage.Pair]int{}}
	options := apitest.Options{Declared: declare(t, someKinds), Limits: apitest.NoLimits, Hub: w.hub}
	w.API = apitest.New(t, served, options)
	options.Budget = social.Budget(15)
	w.tight = apitest.New(t, served, options)
	return w
}

// ahead is later than any subscription of a test begins.
const ahead = storage.Micros(1 << 52)

// news are the events for a viewer of a subscription: the first one is heard when it has begun, and the last one at its end.
type news struct {
	field string // with a selection on users
	last  string // in the answer of the last event
	of    []events.Event
	mutes bool // each event mutes the other user, or ends it
}

// newsOf are of rows that [publishNews] has stored, and of follows, which are sent as they come. Users 4 to 10 are between the first and the
// last one, by user 2.
func newsOf(viewer storage.UserID) (all []news) {
	var follows, waits, requests, favorites, comments, posts, mutes []events.Event
	edge := func(on storage.Side, by storage.UserID, post int64, kind storage.EdgeType) events.Event {
		return events.Event{Row: storage.Row{Side: on, Edge: storage.Edge{From: by, To: viewer, Item: post, Type: kind, UpdateTime: apitest.Epoch}}}
	}
	for i, by := range []storage.UserID{2, 4, 5, 6, 7, 8, 9, 10, 2} {
		last := i == 8
		post, number := int64(viewer), 100*int64(viewer)+int64(i)
		if last {
			post += 20
		}
		follow := edge(storage.Inverse, by, 0, storage.Following)
		request := edge(storage.Inbox, by, 0, storage.Pending)
		if last {
			// Of another user, or a first event that still waits takes it up, and it comes before those between them.
			follow.Edge.From, follow.Edge.UpdateTime = 4-viewer, ahead
			request.Edge.From, request.Edge.To = viewer, 2
		}
		follows, requests = append(follows, follow), append(requests, request)
		follow.Edge.Type = storage.Requested
		waits = append(waits, follow)
		favorites = append(favorites, edge(storage.FavoriteInbox, by, post, storage.Favorited))
		comments = append(comments, events.Event{Kind: events.PostChanged, Post: storage.ChangedPost{
			PostAt: storage.PostAt{PostID: storage.PostID{Author: viewer, Number: post}}, News: storage.PostCommented, Comment: 1000 + number,
		}})
		posts = append(posts, events.Event{Kind: events.PostChanged, Post: storage.ChangedPost{PostAt: storage.PostAt{PostID: storage.PostID{Author: by, Number: number}, CreatedAt: ahead}, News: storage.PostPublished}})
	}
	for _, other := range []storage.UserID{1001, 4, 5, 6, 7, 1002} {
		mutes = append(mutes, events.Event{Row: storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: viewer, To: other}}})
	}
	post := fmt.Sprintf(`"last":{"id":"post_%d_%d"}`, viewer, viewer+20)
	return []news{
		{`followerAdded { edge { cursor last: followedAt node %[1]s } viewer { user %[1]s } }`, `"last":"2112-`, follows, false},
		{`requestChanged { request { id state message from %[1]s last: to { id } } viewer { user %[1]s } }`, `"last":{"id":"2"}`, requests, false},
		{`favoriteAdded { edge { cursor favoritedAt node %[1]s } last: post { id } post { favoritesReceivedCount } viewer { user %[1]s } }`, post, favorites, false},
		{`commentAdded { edge { node { id text author %[1]s } } last: post { id } post { commentCount } viewer { user %[1]s } }`, post, comments, false},
		{`postAdded { edge { node { last: id text author %[1]s } } viewer { user %[1]s } }`, fmt.Sprintf(`"last":"post_2_%d"`, 100*viewer+8), posts, false},
		{`requestChanged(kind: FOLLOW) { request { id kind state updatedAt last: from { id } from %[1]s to %[1]s } viewer { requests(kind: FOLLOW) { totalCount } user %[1]s } }`, fmt.Sprintf(`"last":{"id":"%d"}`, 4-viewer), waits, false},
		{`activityAdded { edge { cursor node { id kind day at othersCount complete actors %[1]s last: post { id } post { commentCount } } } viewer { user %[1]s } }`, post, comments, false},
		{`relationshipChanged(userIds: [4, 5, 6, 7, 1001, 1002]) { relationship { last: id status muted from %[1]s to %[1]s } viewer { user %[1]s } }`, "", mutes, true},
	}
}

// publishNews stores what [newsOf] tells.
func publishNews(t *testing.T, store storage.Store, viewer storage.UserID) {
	apply := func(side storage.Side, list []events.Event, rule storage.Rule) {
		for _, side := range []storage.Side{side, side.Replica()} {
			for _, e := range list {
				must.OK(t, store.Apply(t.Context(), side, []storage.Edge{e.Edge}, rule)[0].Err)
			}
		}
	}
	publish := func(p storage.PostRow) {
		p.Key = fmt.Sprint(p.Number)
		_, _, err := store.Publish(t.Context(), p)
		must.OK(t, err)
	}
	for _, number := range []int64{int64(viewer), int64(viewer) + 20} {
		publish(storage.PostRow{PostID: storage.PostID{Author: viewer, Number: number}, Text: "x", At: apitest.Epoch})
	}
	all := newsOf(viewer)
	apply(storage.Requests, all[1].of, storage.IfNewer)
	apply(storage.Favorites, all[2].of, storage.IfNewer)
	var ended []events.Event
	for _, e := range all[5].of { // what waits when a subscription begins is no news
		e.Edge.Type = storage.None
		ended = append(ended, e)
	}
	apply(storage.Forward, ended, storage.IfAbsent)
	for i, e := range all[3].of {
		favorite, post := all[2].of[i].Edge, all[4].of[i].Post
		c := storage.Comment{CommentID: storage.CommentID{Author: viewer, Number: e.Post.Comment}, Post: favorite.Item, By: favorite.From, Key: fmt.Sprint(i), Text: "x", CreatedAt: ahead}
		_, _, err := store.AddComment(t.Context(), c)
		must.OK(t, err)
		publish(storage.PostRow{PostID: post.PostID, Text: "x", At: ahead})
	}
}

// tell publishes events.
func (w *twinWorld) tell(t *rapid.T, n news, list []events.Event) {
	for _, e := range list {
		if n.mutes {
			change := [...]string{"mute", "unmute"}[w.muted[e.Edge.Pair()]%2]
			w.For(t).As(e.Edge.From).Ask(`mutation { `+apitest.Call(change, e.Edge.To.String())+` { changed } }`, nil).Whole()
			w.muted[e.Edge.Pair()]++
		}
		w.hub.Publish(e)
	}
}

// heard are the answers of a subscription of the viewer to news, up to the last one. A subscription that is refused has one.
func (w *twinWorld) heard(t *rapid.T, viewer storage.UserID, over apitest.Transport, query string, vars apitest.Vars, n news) (list []string) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	answers := w.For(t).As(viewer).Subscribe(ctx, over, query, vars)
	list = append(list, until(t, answers, func(int) { w.tell(t, n, n.of[:1]) }))
	// hear reads answers up to one that has a text; false if the subscription has ended.
	hear := func(last string) bool {
		for !strings.Contains(list[len(list)-1], last) {
			select {
			case got, open := <-answers:
				if !open {
					return false
				}
				list = append(list, got)
			case <-time.After(generous):
				t.Fatalf("%s\nwith %v: %s is missing behind %s", query, vars, last, list)
			}
		}
		return true
	}
	if !n.mutes {
		w.tell(t, n, n.of[1:])
		hear(n.last)
		return list
	}
	for i, e := range n.of[1:] { // one after the other: whom the viewer has muted is left out of suggestions in every answer
		if w.tell(t, n, n.of[1+i:2+i]); !hear(fmt.Sprintf(`"last":"rel_%d_%d"`, viewer, e.Edge.To)) {
			return list
		}
	}
	// Of the first user it is told until the subscription has begun.
	return slices.DeleteFunc(list, func(got string) bool { return strings.Contains(got, "_1001\"") })
}

// An answer depends on nothing that it does not show: neither its data nor its errors, extensions and headers.
func TestWhatIsHiddenChangesNoAnswer(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		equalAnswers(t, twin(t, apitest.Location(t, 2), false, false), twin(t, apitest.Location(t, 2), false, true))
	})
	t.Run("SQLite, from memory", func(t *testing.T) {
		testenv.Long(t) // what is kept in memory does not know the engine: it is asked on MariaDB
		equalAnswers(t, twin(t, apitest.Location(t, 2), true, false), twin(t, apitest.Location(t, 2), true, true))
	})
	t.Run("MariaDB, from memory", func(t *testing.T) {
		dsns := func() string { return "mysql:" + strings.Join(testenv.SharedMariaDB(t, 2).FreshDatabases(t, 1), ";") }
		equalAnswers(t, twin(t, dsns(), true, false), twin(t, dsns(), true, true))
	})
}

func equalAnswers(t *testing.T, one, other *twinWorld) {
	equal := func(t apitest.T, apis [2]*apitest.API, viewer storage.UserID, query string, vars apitest.Vars) (answer string) {
		var got [2]string
		for i, api := range apis {
			api = api.For(t).With("Kith-Cost", "1")
			if viewer != 0 {
				api = api.As(viewer)
			}
			a := api.Ask(query, vars)
			got[i] = tokens.ReplaceAllString(fmt.Sprint(a.Text, headersOf(a.Header)), "")
		}
		check.Equal(t, fmt.Sprintf("user %s, %s\nwith %v", viewer, query, vars), got[0], got[1])
		return got[0]
	}
	same := func(t apitest.T, viewer storage.UserID, query string, vars apitest.Vars) {
		equal(t, [2]*apitest.API{one.API, other.API}, viewer, query, vars)
	}
	// Several set answers of a request share its budget in the order in which they come to their rows, which is not the same twice.
	cut := 0
	tight := func(viewer storage.UserID, query string) {
		if strings.Contains(equal(t, [2]*apitest.API{one.tight, other.tight}, viewer, query, nil), `"complete":false`) {
			cut++
		}
	}
	one.Ask(`{ edgesTo(kind: WORKS_WITH, id: 2) { totalCount complete } }`, nil).Is(`{"edgesTo": {"totalCount": 200, "complete": false}}`)
	for _, viewer := range []storage.UserID{0, 1, 3} {
		for _, of := range []string{"", "(first: 1)", "(kinds: [FOLLOW, FRIEND_ACCEPTED, COMMENT])", "(kinds: [MENTION])"} {
			same(t, viewer, `{ viewer { activity`+of+` { unseen { count hasMore } edges { cursor node { id kind day at othersCount complete actors { id name } post { text commentCount } } } pageInfo { hasNextPage endCursor } } } }`, nil)
		}
		for from := 1; from <= 12; from++ {
			for _, field := range []string{
				`followSuggestions { complete nodes { id } }`, `similarUsers { complete totalCount nodes { id } }`, `followersYouKnow { complete nodes { id } }`,
				`followSuggestions(orderBy: BEST) { complete excluded { followed } edges { score reason sharedCount node { id } via { id } } }`,
				`friends { complete totalCount nodes { id } }`, `notFollowedBack { complete totalCount nodes { id } }`,
			} {
				tight(viewer, fmt.Sprintf(`{ user(by: {id: %d}) { id name %s } }`, from, field))
			}
			for _, kind := range []string{"WORKS_WITH", "ADMIRES", "BOOKMARKS", "SUBSCRIBES"} {
				same(t, viewer, fmt.Sprintf(`{ user(by: {id: %d}) { edges(kind: %s) { totalCount edges { since until node { id } } } } edgesTo(kind: %[2]s, id: %[1]d) { totalCount complete nodes { id } edges { cursor endId since until attributes { rank } } pageInfo { hasNextPage } } viewer { standing { state reason until } edge(kind: %[2]s, id: %[1]d) { since } mutedUsers { totalCount } } }`, from, kind), nil)
			}
			for to := 1; to <= 12; to++ {
				tight(viewer, fmt.Sprintf(`{ relationship(from: %d, to: %d) { status followedAt } user(by: {id: %[1]d}) { commonFollowings(with: %[2]d) { complete totalCount } } }`, from, to))
			}
		}
	}
	check.Least(t, "answers that met their budget", cut, 10)
	properties.Check(t, 300, func(t *rapid.T) {
		query, vars := apitest.Query(t, 10)
		same(t, storage.UserID(rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "viewer")), query, vars)
	})
	told, cases := 0, 0
	properties.Check(t, 100, func(t *rapid.T) {
		viewer, over := rapid.SampledFrom([]storage.UserID{1, 3}).Draw(t, "viewer"), rapid.SampledFrom(apitest.Transports).Draw(t, "transport")
		n := rapid.SampledFrom(newsOf(viewer)).Draw(t, "news")
		write, vars := apitest.Selection(t, 10)
		query := write("subscription", n.field)
		got, want := one.heard(t, viewer, over, query, vars, n), other.heard(t, viewer, over, query, vars, n)
		check.Equal(t, fmt.Sprintf("user %s, %s\nwith %v over %s", viewer, query, vars, over), got, want)
		told, cases = told+len(got), cases+1
	})
	check.That(t, told >= 3*cases, "%d subscriptions were told of %d events only", cases, told) // the first and the last event, and one of a user whom everybody sees
	const user = `id followingCount followerCount friendCount postCount favoritesGivenCount favoritesReceivedCount locked
		posts { nodes { id text } } favorites { nodes { id } } followings { totalCount nodes { id } } followers { nodes { id } } friends { totalCount }
		commonFollowings(with: 2) { totalCount } followersYouKnow { nodes { id } } followSuggestions { nodes { id } }`
	const edges = ` followingEdge { node { ` + user + ` } } followerEdge { node { ` + user + ` } } `
	const payload = `changed user { ` + user + ` } request { id state from { id } to { ` + user + ` } } requestEdge { node { id to { ` + user + ` } } }` + edges + `relationship { status followRequested followRequestedBy }
		viewer { feed { nodes { id } } requests(kind: FOLLOW, direction: SENT) { totalCount } user { ` + user + ` followings { nodes { posts { nodes { id } } } } } }`
	for _, viewer := range []storage.UserID{1, 3} {
		for _, id := range []int{4, 5, 6, 7, 8} {
			for _, mutation := range []string{"follow", "acceptRequest FOLLOW", "declineRequest FOLLOW", "withdrawRequest FOLLOW", "removeFollower", "unfollow"} {
				same(t, viewer, `mutation { `+apitest.Call(mutation, fmt.Sprint(id))+` { `+payload+` } }`, nil)
			}
			same(t, viewer, fmt.Sprintf(`mutation { followMany(userIds: [%d, 6]) { outcomes { changed user { %s } followingEdge { node { id } } requestEdge { node { id } } relationship { status } error { reason } } } }`, id, user), nil)
			same(t, viewer, fmt.Sprintf(`mutation { reportUser(userId: %d, reason: "x") { changed } again: reportUser(userId: %[1]d, reason: "x") { changed } }`, id), nil)
			same(t, viewer, fmt.Sprintf(`mutation { importAccounts(kind: FOLLOWS, file: "u%d\nu6") { accountsImport { changedCount refused { line error { reason } } } viewer { user { %s } } } }`, id, user), nil)
			same(t, viewer, fmt.Sprintf(`mutation { relate(kind: BOOKMARKS, ids: [%d, 6]) { outcomes { changed edge { endId until node { %s } } error { reason } } } }`, id, user), nil)
		}
		for _, post := range []string{"6_6", "6_56", "7_7", "8_8"} {
			same(t, viewer, `mutation { reportPost(postId: "post_`+post+`", reason: "x") { changed } }`, nil)
		}
		for _, mutation := range []string{`favorite(postId: "post_6_6")`, `addComment(postId: "post_6_6", text: "z", clientKey: "z")`, `favorite(postId: "post_6_56")`} {
			name, _, _ := strings.Cut(mutation, "(")
			edge := map[string]string{"favorite": "favoriteEdge", "addComment": "commentEdge"}[name]
			same(t, viewer, `mutation { `+mutation+` { changed `+edge+` { node { id } } post { id text favoritesReceivedCount commentCount author { `+user+` } } } }`, nil)
		}
		same(t, viewer, `mutation { favorite(postId: "post_2_2") { changed post { id favoritesReceivedCount author { `+user+` } favoritedBy { nodes { `+user+` } } } viewer { user { `+user+` } } } }`, nil)
		same(t, viewer, `mutation { acceptRequests(kind: FOLLOW) { outcomes { changed user { `+user+` } followerEdge { node { id } } error { reason } } pageInfo { hasNextPage } viewer { requests(kind: FOLLOW) { totalCount nodes { id from { `+user+` } } } user { `+user+` } } } }`, nil)
		same(t, viewer, `mutation { acceptRequests(kind: FRIEND) { outcomes { changed user { `+user+` } followingEdge { node { id } } error { reason } } viewer { requests(kind: FRIEND) { totalCount } } } }`, nil)
		for _, id := range []int{1001, 1002} { // events have muted them, of which a subscription hears some
			for _, w := range []*twinWorld{one, other} {
				w.As(viewer).Ask(fmt.Sprintf(`mutation { unmute(userId: %d) { changed } }`, id), nil).Whole()
			}
		}
		for _, id := range []int{4, 5, 6, 7, 8} { // last: who is blocked is seen by nothing else
			for _, file := range []string{`FOLLOWS, file: "u%d\nu6"`, `LISTS, file: "One,u%d\nTwo,u6"`, `MUTES, file: "u%d\nu6,false"`, `BLOCKS, file: "u%d\nu6"`} {
				kind, _, _ := strings.Cut(file, ",")
				same(t, viewer, fmt.Sprintf(`mutation { importAccounts(kind: `+file+`) { accountsImport { changedCount refused { line error { reason } } } viewer { user { %s } accountsImports { doneCount changedCount refusedCount } } } }`, id, user), nil)
				same(t, viewer, `{ viewer { accountsFile(kind: `+kind+`) { text endCursor } } }`, nil)
				same(t, viewer, fmt.Sprintf(`{ viewer { lists(with: %d) { name memberCount } } }`, id), nil)
			}
		}
	}
}

// tokens of consistency differ by store and time.
var tokens = regexp.MustCompile(`,?"extensions":\{"consistencyToken":"[^"]*"\}|"consistencyToken":"[^"]*",?|[A-Za-z-]*Consistency[A-Za-z-]*: [^ \]]*`)

// Whoever deletes a hidden comment of somebody else learns no more than of one that does not exist.
func TestAHiddenCommentIsAsNone(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		post := publish(t, v.api, v.a, "text", "k")
		hidden := comment(t, v.api, v.b, post, "hidden")
		v.api.As(v.b).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
		none := unused(hidden)
		for _, api := range []*apitest.API{v.api, v.api.As(v.c), v.api.As(v.a)} { // the last one, whose post it is, deletes it
			var got [2]string
			for i, id := range []string{hidden, none} {
				a := api.With("Kith-Cost", "1").Ask(`mutation($c: ID!) { deleteComment(commentId: $c) { changed } }`, apitest.Vars{"c": id})
				got[i] = strings.ReplaceAll(fmt.Sprint(a.Text, headersOf(a.Header)), id, "ID")
			}
			check.Equal(t, "a hidden one, and none", got[0], got[1])
		}
	})
}

// headersOf is the headers of an answer, without those that differ by request.
func headersOf(all http.Header) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != "Date" && name != "X-Request-Id" {
			list = append(list, name+": "+strings.Join(all[name], ", "))
		}
	}
	return list
}
