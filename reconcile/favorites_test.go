package reconcile_test

import (
	"fmt"

	"kith/internal/check"
	"kith/internal/must"
	"kith/reconcile"
	"kith/storage"
)

// someFavorites publishes posts, and makes favorites of them, some of which have ended. Every third post
// is deleted before that.
func (g *graph) someFavorites(n int) (favorites []storage.Edge) {
	g.t.Helper()
	for i := range 24 {
		id := storage.PostID{Author: g.users[i%min(20, len(g.users))], Number: int64(1 + i + g.r.IntN(2)*1_000_000_000_000)}
		_, _, err := g.Publish(g.t.Context(), storage.PostRow{PostID: id, Key: fmt.Sprint(i), At: 1})
		must.OK(g.t, err)
		if i%3 == 2 {
			_, err := g.DeletePost(g.t.Context(), id)
			must.OK(g.t, err)
		}
		g.posts = append(g.posts, id)
	}
	seen := make(map[storage.Pair]bool)
	for len(favorites) < min(n, len(g.users)*len(g.posts)/2) {
		post := g.posts[g.r.IntN(len(g.posts))]
		pair := storage.Pair{From: g.user(), To: post.Author, Item: post.Number}
		if !seen[pair] {
			seen[pair] = true
			favorites = append(favorites, pair.Edge([]storage.EdgeType{1, 1, 1, 0}[g.r.IntN(4)], storage.Micros(1e15+g.r.Int64N(1e9))))
		}
	}
	return favorites
}

// isDeleted reports whether the post of a favorite has been deleted.
func (g *graph) isDeleted(e storage.Edge) bool {
	for i, id := range g.posts {
		if id == e.Pair().PostID() {
			return i%3 == 2
		}
	}
	g.t.Fatalf("there is no post of %+v", e)
	return false
}

// wantFavorites adds to the counts of users those that posts and favorites imply, and checks the counts
// of posts.
func (g *graph) wantFavorites(want map[storage.UserID]storage.Counts) {
	g.t.Helper()
	of := make(map[storage.PostID]int64)
	for _, e := range g.rows(storage.Favorites) {
		from := want[e.From]
		from.Favorites += int64(e.Type)
		want[e.From] = from
		if of[e.Pair().PostID()] += int64(e.Type); !g.isDeleted(e) {
			to := want[e.To]
			to.Favorited += int64(e.Type)
			want[e.To] = to
		}
	}
	for i, id := range g.posts {
		var have int64
		row := g.files[g.shards.Of(id.Author)].QueryRow("SELECT favorite_count FROM post_counts WHERE author_id = ? AND post_id = ?", int64(id.Author), id.Number)
		err := row.Scan(&have)
		check.That(g.t, err == nil && have == of[id], "post %+v has %d favorites, want %d: %v", id, have, of[id], err)
		if i%3 != 2 {
			c := want[id.Author]
			c.Posts++
			want[id.Author] = c
		}
	}
}

// damageFavoriteCounts damages the counts of favorites: those of users, of all their posts together, and
// of single posts.
func (g *graph) damageFavoriteCounts(times int) (made []trace) {
	g.t.Helper()
	for n := range times {
		user, post := g.users[(n*13)%len(g.users)], g.posts[n%len(g.posts)]
		switch n % 3 {
		case 0:
			g.exec(user, "UPDATE user_counts SET favorite_count = favorite_count + 100 WHERE user_id = ?", int64(user))
			made = append(made, trace{kind: reconcile.WrongCount, side: storage.Favorites, user: user})
		case 1:
			g.exec(user, "UPDATE user_counts SET total_favorited = total_favorited + 100 WHERE user_id = ?", int64(user))
			made = append(made, trace{kind: reconcile.WrongCount, side: storage.FavoriteInbox, user: user})
		case 2:
			g.exec(post.Author, "UPDATE post_counts SET favorite_count = favorite_count + 100 WHERE author_id = ? AND post_id = ?", int64(post.Author), post.Number)
			made = append(made, trace{kind: reconcile.WrongCount, side: storage.FavoriteInbox, user: post.Author, post: post.Number})
		}
	}
	return made
}

// keepFavorites changes the counts of every other author to those that a damaged row of favorite_inbox
// implies.
func (g *graph) keepFavorites(before, after storage.Edge) {
	g.t.Helper()
	row := after
	if row.Item == 0 {
		row = before
	}
	diff := int64(after.Type) - int64(before.Type)
	if diff == 0 || row.To%2 != 0 {
		return
	}
	g.exec(row.To, "UPDATE post_counts SET favorite_count = favorite_count + ? WHERE author_id = ? AND post_id = ?", diff, int64(row.To), row.Item)
	if !g.isDeleted(row) {
		g.exec(row.To, "UPDATE user_counts SET total_favorited = total_favorited + ? WHERE user_id = ?", diff, int64(row.To))
	}
}
