package social

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
)

// BenchmarkFeedPage reads a first page of a feed in each mode. In the modes that copy, all posts have been copied.
func BenchmarkFeedPage(b *testing.B) {
	url := testenv.Redis(b).URL()
	for _, followings := range []int{50, 1000} {
		store := oracle.New()
		begin := storage.MicrosOf(time.Now().Add(-time.Hour))
		var users []storage.User
		var edges []storage.Edge
		for id := range storage.UserID(followings) {
			users = append(users, storage.User{ID: id + 1, Handle: fmt.Sprintf("user_%d", id+1), Name: "A"})
			edges = append(edges, storage.Edge{From: 1, To: id + 2, Type: storage.Following, UpdateTime: begin})
		}
		for n := range storage.UserID(20) { // user 2 is hot
			edges = append(edges, storage.Edge{From: n + 100_000, To: 2, Type: storage.Following, UpdateTime: begin})
		}
		store.CreateUsers(b.Context(), append(users, storage.User{ID: storage.UserID(followings) + 1, Handle: "last", Name: "A"}))
		store.Apply(b.Context(), storage.Forward, edges, storage.IfNewer)
		store.Apply(b.Context(), storage.Inverse, edges, storage.IfNewer)
		for mode, hot := range map[string]int64{"pull": 0, "push": 0, "hybrid": 10} {
			g := newBoxed(b, store, url, fmt.Sprint("kith:", mode, followings), hot, 0)
			g.copied(begin)
			for n := range int64(5000) {
				id := storage.PostID{Author: storage.UserID(2 + n%int64(followings)), Number: n + 1}
				post, _, err := store.Publish(b.Context(), storage.PostRow{PostID: id, Key: fmt.Sprint(n), Text: "x", At: begin + storage.Micros(n+1)})
				if err != nil {
					b.Fatal(err)
				}
				g.posts.Add(post.At())
			}
			g.copied(begin + 6000)
			if mode == "pull" {
				g.feeds.Inboxes = nil
			}
			page := func() FeedPage {
				feed, err := g.feeds.Of(b.Context(), New(store, 0, nil), FeedOf{User: 1})
				if err != nil {
					b.Fatal(err)
				}
				page, err := feed.Page(context.Background(), storage.Place{}, 20)
				if err != nil || len(page.Rows) != 20 {
					b.Fatal(len(page.Rows), err)
				}
				return page
			}
			page()
			g.built()
			b.Run(fmt.Sprint(mode, "/", followings), func(b *testing.B) {
				before := g.count("kith_feed_inbox_pages_total")
				for b.Loop() {
					page()
				}
				if read := g.count("kith_feed_inbox_pages_total") - before; mode != "pull" && read < b.N {
					b.Errorf("%d of %d pages from an inbox", read, b.N)
				}
			})
		}
	}
}
