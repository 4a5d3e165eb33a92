package cluster

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// answersOf is what a reader says to every kind of question that is kept by the version of a user or a post.
func answersOf(ctx context.Context, r storage.Reader) map[string]string {
	const viewer, other = storage.UserID(1), storage.UserID(2)
	post := storage.PostID{Author: other, Number: 5}
	pairs := []storage.Pair{{From: viewer, To: other}, {From: other, To: viewer}}
	favorite := []storage.Pair{{From: viewer, To: other, Post: 5}}
	found, err := r.WithWord(ctx, "us", 10)
	all := map[string]any{
		"users":      r.Users(ctx, []storage.UserID{1, 2, 3}),
		"handles":    r.UserIDs(ctx, []string{"user_1", "user_3", "nobody"}),
		"search":     []any{found, err},
		"marks":      r.Marks(ctx, pairs),
		"specials":   r.Specials(ctx, []storage.UserID{viewer}),
		"messages":   r.Messages(ctx, pairs),
		"dismissals": r.Pages(ctx, storage.Relations, []storage.PageQuery{{Owner: viewer, Post: storage.Dismissals.Number, Limit: 9}}),
		"favorite":   r.Edges(ctx, storage.Favorites, favorite),
		"favorites":  r.FavoritePages(ctx, []storage.FavoritesQuery{{User: viewer, Limit: 3}}),
		"posts":      r.PostPages(ctx, []storage.PostsQuery{{Author: other, Limit: 3}}),
		"last posts": r.LastPosts(ctx, []storage.UserID{viewer, other}, 1<<60),
		"blocked":    r.Pages(ctx, storage.Forward, []storage.PageQuery{{Owner: viewer, Type: storage.Blocking, Limit: 3}}),
	}
	if r.Posts(ctx, []storage.PostID{post})[0].Found { // others are not asked about
		all["comments"] = r.CommentPages(ctx, []storage.CommentsQuery{{Post: post, Limit: 3}})
		all["favorited by"] = r.Pages(ctx, storage.FavoriteInbox, []storage.PageQuery{{Owner: post.Author, Post: post.Number, Limit: 3}})
	}
	for _, side := range storage.Sides {
		all["edges "+side.String()] = r.Edges(ctx, side, pairs)
		all["count "+side.String()] = r.CountEdges(ctx, side, []storage.EdgeCountQuery{{Owner: viewer, Limit: 9}, {Owner: other, Type: storage.Blocking, Limit: 9}})
		if side > storage.Inverse {
			all["page "+side.String()] = r.Pages(ctx, side, []storage.PageQuery{{Owner: other, Limit: 3}})
		}
	}
	text := make(map[string]string, len(all))
	for i, r := range all["favorite"].([]storage.Result[storage.Edge]) { // a cache may say of a tombstone that there is nothing
		if r.Value.Type == storage.None {
			all["favorite"].([]storage.Result[storage.Edge])[i] = storage.Result[storage.Edge]{}
		}
	}
	for kind, said := range all {
		text[kind] = fmt.Sprintf("%+v", said)
	}
	return text
}

// TestAnswersReachOtherGateways: two gateways keep what they have said about users and posts. Whatever one of them writes, it
// reads at once, and the other soon, without having forgotten anything else: neither then asks the store again.
func TestAnswersReachOtherGateways(t *testing.T) {
	for name, inRedis := range map[string]bool{"in memory": false, "in Redis too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answersReachOtherGateways(t, inRedis)
		})
	}
}

func answersReachOtherGateways(t *testing.T, inRedis bool) {
	var statements [2]atomic.Int64
	d, location := Config{Redis: testenv.Redis(t).URL(), RedisCache: inRedis, Redundancy: Sync}, "sqlite:"+filepath.Join(t.TempDir(), "kith.db")
	var gateways [2]*feedGateway
	for i := range gateways {
		gateways[i] = openFeedGatewayOf(t, d, sqlstore.Config{Location: location, OnStatement: func(_ context.Context, s sqlstore.Statement) {
			if s.Lookup != "checkpoints" && s.Lookup != "leases" && s.Keys > 0 {
				statements[i].Add(1)
			}
		}}, 0)
	}
	w, bus, ctx := gateways[0].caches.store, gateways[0].caches.bus, t.Context()
	w.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "user_1", Name: "A"}, {ID: 2, Handle: "user_2", Name: "B"}})
	pair, post, special := storage.Pair{From: 1, To: 2}, storage.PostID{Author: 2, Number: 5}, true
	text, clock := "edited", storage.MicrosOf(time.Now())
	comment := storage.NewComment{Post: post, Number: 9, By: 1, Key: "k", Text: "c", At: clock}
	rows := func(written []storage.Written, err error) error {
		bus.Publish(ctx, storage.Each(written, func(w storage.Written) storage.Row { return w.Row }))
		return err
	}
	edge := func(kind, ends storage.EdgeType) error {
		clock++
		r := w.ChangeEdges(ctx, 1, []storage.EdgeChange{{To: 2, Type: kind, Ends: ends, At: clock}}, storage.ChangeOptions{Inverse: true})[0]
		return rows(r.Value.Written(), r.Err)
	}
	request := func(act storage.RequestAct, message string) error {
		clock++
		r, err := w.ChangeRequest(ctx, pair, storage.RequestChange{Act: act, At: clock, Message: message}, storage.RequestOptions{Inverse: true, TTL: time.Hour})
		return rows(r.Written, err)
	}
	favorite := func(kind storage.EdgeType) error {
		clock++
		r := w.ChangeItems(ctx, storage.Favorites, 1, []storage.ItemChange{storage.Favorite(post, kind, clock)}, storage.ItemOptions{Peace: true, Inverse: true})[0]
		return rows(r.Value.Written(), r.Err)
	}
	relate := func(kind storage.EdgeType) error {
		clock++
		r := w.ChangeItems(ctx, storage.Relations, 1, []storage.ItemChange{{To: 2, Item: storage.Dismissals.Number, Type: kind, At: clock}}, storage.ItemOptions{Inverse: true})[0]
		return rows(r.Value.Written(), r.Err)
	}
	steps := []struct {
		what string
		do   func() error
	}{
		{"nothing", func() error { return nil }},
		{"a request", func() error { return request(storage.Ask, "hello") }},
		{"it is accepted", func() error { return request(storage.Accept, "") }},
		{"a mark", func() error {
			_, _, err := w.SetMark(ctx, pair, storage.MarkChange{Special: &special, Remark: &text})
			return err
		}},
		{"a dismissal", func() error { return relate(storage.Related) }},
		{"it ends", func() error { return relate(storage.None) }},
		{"a post", func() error {
			_, _, err := w.Publish(ctx, storage.NewPost{PostID: post, Key: "p", Text: "first", At: clock})
			return err
		}},
		{"a comment", func() error { _, _, err := w.AddComment(ctx, comment); return err }},
		{"a favorite", func() error { return favorite(storage.Favorited) }},
		{"the post is edited", func() error { _, _, err := w.EditPost(ctx, post, storage.PostChange{Text: &text}, clock); return err }},
		{"the comment is deleted", func() error { _, err := w.DeleteComment(ctx, comment.ID(), 1); return err }},
		{"no favorite any more", func() error { return favorite(storage.None) }},
		{"somebody is created", func() error { return w.CreateUsers(ctx, []storage.User{{ID: 3, Handle: "user_3", Name: "C"}})[0].Err }},
		{"a block", func() error { return edge(storage.Blocking, storage.Following) }},
		{"it ends", func() error { return edge(storage.None, storage.Blocking) }},
		{"the post is deleted", func() error { _, err := w.DeletePost(ctx, post); return err }},
		{"the author is erased", func() error {
			if _, err := w.SetState(ctx, 2, storage.Deleting, clock); err != nil {
				return err
			}
			return w.Erase(ctx, 2, clock)
		}},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatalf("%s: %v", s.what, err)
		}
		want := answersOf(ctx, w)
		for i, g := range gateways {
			got := answersOf(ctx, g.caches.Reader())
			for end := time.Now().Add(30 * time.Second); i == 1 && !maps.Equal(got, want) && time.Now().Before(end); time.Sleep(time.Millisecond) {
				got = answersOf(ctx, g.caches.Reader())
			}
			for kind := range want {
				if got[kind] != want[kind] {
					t.Errorf("%s: %s of gateway %d: %s, want %s", s.what, kind, i, got[kind], want[kind])
				}
			}
			if s.what == "the author is erased" {
				continue // who does not exist has no version
			}
			for range 3 { // pages of posts are known after the posts are
				answersOf(ctx, g.caches.Reader())
			}
			statements[i].Store(0)
			if answersOf(ctx, g.caches.Reader()); statements[i].Load() != 0 {
				t.Errorf("%s: gateway %d asks the store %d times for what it has been told", s.what, i, statements[i].Load())
			}
		}
	}
}
