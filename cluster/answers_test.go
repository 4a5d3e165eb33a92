package cluster

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"kith/graph/consistency"
	"kith/graph/declared"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/finding"
	"kith/storage/sqlstore"
)

// answersOf is what a reader says to every kind of question that is kept by the version of a user or a post.
func answersOf(ctx context.Context, r storage.Answerer) map[string]string {
	const viewer, other = storage.UserID(1), storage.UserID(2)
	post := storage.PostID{Author: other, Number: 5}
	pairs := []storage.Pair{{From: viewer, To: other}, {From: other, To: viewer}}
	favorite := []storage.Pair{{From: viewer, To: other, Item: 5}}
	found, err := finding.WordLookups.Get(ctx, r, finding.WordQuery{Prefix: "us", Limit: 10})
	all := map[string]any{
		"users":      storage.UserLookups.Read(ctx, r, 1, 2, 3),
		"handles":    storage.HandleLookups.Read(ctx, r, "user_1", "user_3", "nobody"),
		"search":     []any{found, err},
		"marks":      storage.MarkLookups.Read(ctx, r, pairs...),
		"specials":   storage.SpecialLookups.Read(ctx, r, viewer),
		"messages":   storage.MessageLookups.Read(ctx, r, pairs...),
		"details":    storage.DetailLookups.Read(ctx, r, declared.Mutes.Pair(viewer, other)),
		"dismissals": storage.PageLookups[storage.Relations].Read(ctx, r, storage.PageQuery{Owner: viewer, Item: declared.Dismissals.Number, Limit: 9}),
		"favorite":   storage.EdgeLookups[storage.Favorites].Read(ctx, r, favorite...),
		"favorites":  storage.FavoritePageLookups.Read(ctx, r, storage.PlaceQuery{Of: storage.PostID{Author: viewer}, Limit: 3}),
		"posts":      storage.PostPageLookups.Read(ctx, r, storage.PlaceQuery{Of: storage.PostID{Author: other}, Limit: 3}),
		"last posts": storage.LastPostLookups.Read(ctx, r, storage.LastQuery{UpTo: 1 << 60}.Of([]storage.UserID{viewer, other})...),
		"blocked":    storage.PageLookups[storage.Forward].Read(ctx, r, storage.PageQuery{Owner: viewer, Type: storage.Blocking, Limit: 3}),
	}
	if storage.PostLookups.Read(ctx, r, post)[0].Found { // others are not asked about
		all["comments"] = storage.CommentPageLookups.Read(ctx, r, storage.PlaceQuery{Of: post, Limit: 3})
		all["favorited by"] = storage.PageLookups[storage.FavoriteInbox].Read(ctx, r, storage.PageQuery{Owner: post.Author, Item: post.Number, Limit: 3})
	}
	for _, side := range storage.Sides {
		all["edges "+side.String()] = storage.EdgeLookups[side].Read(ctx, r, pairs...)
		all["count "+side.String()] = storage.EdgeCountLookups[side].Read(ctx, r, storage.EdgeCountQuery{Owner: viewer, Limit: 9}, storage.EdgeCountQuery{Owner: other, Type: storage.Blocking, Limit: 9})
		if side.Truth() != storage.Forward {
			all["page "+side.String()] = storage.PageLookups[side].Read(ctx, r, storage.PageQuery{Owner: other, Limit: 3})
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
	sqlite := func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "kith.db") }
	mariaDB := func(t *testing.T) string { return "mysql:" + testenv.MariaDB(t).CreateDatabase(t, "kith_answers") }
	redis := func(t *testing.T) string { return testenv.Redis(t).URL() }
	for name, of := range map[string]struct {
		redis, location func(*testing.T) string
		inRedis         bool
	}{
		"in memory":              {redis, sqlite, false},
		"in Redis too":           {redis, sqlite, true},
		"in Redis too, MariaDB":  {redis, mariaDB, true},
		"in memory, by a binlog": {func(*testing.T) string { return "" }, mariaDB, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answersReachOtherGateways(t, Config{Redis: of.redis(t), RedisCache: of.inRedis, Redundancy: Sync}, of.location(t))
		})
	}
}

func answersReachOtherGateways(t *testing.T, d Config, location string) {
	var statements [2]atomic.Int64
	var gateways [2]*feedGateway
	for i := range gateways {
		gateways[i] = openFeedGatewayOf(t, d, sqlstore.Config{Location: location, OnStatement: func(_ context.Context, s sqlstore.Statement) {
			if s.Lookup != "checkpoints" && s.Lookup != "leases" && s.Keys > 0 {
				statements[i].Add(1)
			}
		}}, 0)
	}
	for _, g := range gateways { // by a binlog, it is on once that is followed
		for !g.caches.local.IsOn() {
			time.Sleep(time.Millisecond)
		}
	}
	w, bus, ctx := gateways[0].caches.store, gateways[0].caches.bus, t.Context()
	w.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "user_1", Name: "A"}, {ID: 2, Handle: "user_2", Name: "B"}})
	pair, post, special := storage.Pair{From: 1, To: 2}, storage.PostID{Author: 2, Number: 5}, true
	text, clock := "edited", storage.MicrosOf(time.Now())
	comment := storage.Comment{CommentID: storage.CommentID{Author: post.Author, Number: 9}, Post: post.Number, By: 1, Key: "k", Text: "c", CreatedAt: clock}
	rows := func(written []storage.Written, err error) error {
		bus.Publish(ctx, storage.Each(written, func(w storage.Written) storage.Row { return w.Row }))
		return err
	}
	edge := func(kind, ends storage.EdgeType) error {
		clock++
		r := w.ChangeEdges(ctx, storage.Forward, 1, []storage.EdgeChange{{To: 2, Type: kind, Ends: ends, At: clock}}, storage.ChangeOptions{Inverse: true})[0]
		return rows(r.Value.Written(), r.Err)
	}
	request := func(act storage.EdgeType, message string) error {
		clock++
		r, err := storagetest.Request(ctx, w, pair, storage.EdgeChange{Type: act, At: clock, Message: message}, storage.ChangeOptions{Inverse: true, TTL: time.Hour})
		return rows(r.Written(), err)
	}
	favorite := func(kind storage.EdgeType) error {
		clock++
		r := w.ChangeEdges(ctx, storage.Favorites, 1, []storage.EdgeChange{post.Favorite(kind, clock)}, storage.ChangeOptions{Peace: true, Inverse: true})[0]
		return rows(r.Value.Written(), r.Err)
	}
	relate := func(kind storage.EdgeType) error {
		clock++
		r := w.ChangeEdges(ctx, storage.Relations, 1, []storage.EdgeChange{{To: 2, Item: declared.Dismissals.Number, Type: kind, At: clock}}, storage.ChangeOptions{Inverse: true})[0]
		return rows(r.Value.Written(), r.Err)
	}
	mute := func(by *feedGateway, ends storage.Micros) error {
		clock++
		r := by.caches.store.ChangeEdges(ctx, storage.Relations, 1, []storage.EdgeChange{
			{To: 2, Item: declared.Mutes.Number, Type: storage.Related, At: clock, Detail: storage.DetailChange{EndsAt: ends}},
		}, storage.ChangeOptions{Inverse: true})[0]
		by.caches.bus.Publish(ctx, storage.Each(r.Value.Written(), func(w storage.Written) storage.Row { return w.Row }))
		return r.Err
	}
	mark := func(remark string) error {
		_, _, err := w.SetMark(ctx, pair, storage.MarkChange{Special: &special, Remark: &remark})
		return err
	}
	steps := []struct {
		what string
		do   func() error
	}{
		{"nothing", func() error { return nil }},
		{"a request", func() error { return request(storage.Pending, "hello") }},
		{"it is accepted", func() error { return request(storage.Accepted, "") }},
		{"a mark", func() error { return mark("first") }},
		{"another remark", func() error { return mark("second") }},
		{"a mute on the other gateway", func() error { return mute(gateways[1], 2_000_000) }},
		{"it has another end", func() error { return mute(gateways[0], 3_000_000) }},
		{"and another one", func() error { return mute(gateways[0], 0) }},
		{"the first one again", func() error { return mute(gateways[1], 2_000_000) }},
		{"a dismissal", func() error { return relate(storage.Related) }},
		{"it ends", func() error { return relate(storage.None) }},
		{"a post", func() error {
			_, _, err := w.Publish(ctx, storage.PostRow{PostID: post, Key: "p", Text: "first", At: clock})
			return err
		}},
		{"a comment", func() error { _, _, err := w.AddComment(ctx, comment); return err }},
		{"a favorite", func() error { return favorite(storage.Favorited) }},
		{"the post is edited", func() error { _, _, err := w.EditPost(ctx, post, storage.PostChange{Text: &text}, clock); return err }},
		{"the comment is deleted", func() error { _, err := w.DeleteComment(ctx, comment.CommentID, 1); return err }},
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
		err := s.do()
		must.That(t, err == nil, "%s: %v", s.what, err)
		want := answersOf(ctx, w)
		for i, g := range gateways {
			got := answersOf(ctx, g.caches.Reader())
			for end := time.Now().Add(30 * time.Second); !maps.Equal(got, want) && time.Now().Before(end); time.Sleep(time.Millisecond) {
				got = answersOf(ctx, g.caches.Reader())
			}
			for kind := range want {
				check.Equal(t, fmt.Sprintf("%s: %s of gateway %d", s.what, kind, i), got[kind], want[kind])
			}
			if s.what == "the author is erased" {
				continue // who does not exist has no version
			}
			asked := int64(1) // pages of posts are known after the posts are, and a log tells what leaves no counts after the rest
			for end := time.Now().Add(30 * time.Second); asked > 0 && time.Now().Before(end); asked = statements[i].Load() {
				statements[i].Store(0)
				answersOf(ctx, g.caches.Reader())
			}
			check.Equal(t, fmt.Sprintf("%s: how often gateway %d asks the store for what it has been told", s.what, i), asked, 0)
		}
	}
}

// TestATokenShowsWhatARowDoesNot: what another process has written beside a row is seen by who brings a token of it, although no
// event has come and this process has reported the row itself.
func TestATokenShowsWhatARowDoesNot(t *testing.T) {
	location := "sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	g := openFeedGatewayOf(t, Config{Redundancy: Sync}, sqlstore.Config{Location: location}, 0)
	elsewhere := opened.Store(t, sqlstore.Config{Location: location})
	ctx, pair, w := t.Context(), declared.Mutes.Pair(1, 2), g.caches.store
	w.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "user_1", Name: "A"}, {ID: 2, Handle: "user_2", Name: "B"}})
	mute := func(in Store, ends storage.Micros) consistency.Token {
		r := in.ChangeEdges(ctx, storage.Relations, 1, []storage.EdgeChange{
			{To: 2, Item: pair.Item, Type: storage.Related, At: 100 + ends, Detail: storage.DetailChange{EndsAt: ends}},
		}, storage.ChangeOptions{Inverse: true})[0]
		must.That(t, r.Err == nil && r.Value.Changed, "%+v", r)
		return consistency.Token{{Side: storage.Relations, Pair: pair, Version: r.Value.Row.UpdateTime}}
	}
	w.ChangeEdges(ctx, storage.Forward, 1, []storage.EdgeChange{{To: 2, Type: storage.Following, At: 50}}, storage.ChangeOptions{Inverse: true})
	mute(w, 1000)
	tokens := consistency.New(consistency.Tokens{Key: []byte("key"), Store: w, Arrived: g.caches.Required})
	for _, change := range []struct {
		what  string
		write func() consistency.Token
		read  func() any
		want  any
	}{
		{"the end", func() consistency.Token { return mute(elsewhere, 2000) }, func() any {
			return storage.DetailLookups.Read(ctx, g.caches.Reader(), pair)[0].Value.EndsAt
		}, storage.Micros(2000)},
		{"a mark", func() consistency.Token {
			remark := "new"
			_, _, err := elsewhere.SetMark(ctx, storage.Pair{From: 1, To: 2}, storage.MarkChange{Remark: &remark})
			must.OK(t, err)
			return consistency.Beside(1)
		}, func() any {
			return storage.MarkLookups.Read(ctx, g.caches.Reader(), storage.Pair{From: 1, To: 2})[0].Value.Remark
		}, "new"},
	} {
		for range 2 { // it is kept
			change.read()
		}
		if token := change.write(); change.read() == change.want {
			t.Fatalf("%s: it was not kept", change.what)
		} else if !tokens.Wait(ctx, token) {
			t.Errorf("%s: it has not arrived", change.what)
		}
		check.Equal(t, change.what, change.read(), change.want)
	}
}
