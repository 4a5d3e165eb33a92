package demo

import (
	"context"
	"fmt"
	"time"

	"kith/storage"
)

// How much the network has written, in the fortnight before it is loaded.
const (
	Posts     = 120
	Comments  = 200
	Favorites = 600
)

// sights is what people write about, in two halves.
var sights = struct{ what, where []string }{
	[]string{
		"First frost of the year", "The night train was on time, for once", "Lost an hour to a street musician", "Bread came out right today",
		"Three herons, nobody else", "The library reopened", "Found my grandfather's notebook", "Someone repainted the kiosk", "Ten kilometres before breakfast",
		"The lift is broken again", "Learned to say thank you in a fourth language", "Cycled home in the rain", "The old cinema shows silent films",
		"Planted the last tulips", "A cat has adopted the office", "New strings, old songs",
	},
	[]string{
		"by the river", "behind the market", "at the end of line 7", "on the roof", "near the harbour", "in the north of the city", "two streets from home",
		"at the foot of the hill", "under the bridge", "on the way to work",
	},
}

var replies = []string{
	"Take me along next time!", "I was there yesterday.", "Lovely.", "Pictures, please.", "This made my day.", "How far is that?", "Same here.", "I had no idea.",
	"Save some for me.", "You always find these places.",
}

// Writings makes posts and comments by users of the network until a time. Users write more if they
// have more followers, and comment on posts of those whom they follow. The same seed, time and edges
// always give the same result.
func Writings(seed uint64, until time.Time, edges []storage.Edge) ([]storage.PostRow, []storage.Comment) {
	d, followers := newDice(seed+1), followersOf(edges)
	step := 14 * day / Posts
	posts := make([]storage.PostRow, Posts)
	for i := range posts {
		author := pick(d, edges).To
		if i%20 < 2 {
			author = storage.UserID(i%20 + 1) // the two users of the examples
		}
		at := storage.MicrosOf(until) - 14*day + step*storage.Micros(i)
		posts[i] = storage.PostRow{
			PostID: storage.PostID{Author: author, Number: int64(i + 1)}, Key: fmt.Sprintf("demo-%d", i+1),
			Text: pick(d, sights.what) + ", " + pick(d, sights.where) + ".", At: at - at%second,
		}
	}
	comments := make([]storage.Comment, Comments)
	for i := range comments {
		post := pick(d, posts)
		comments[i] = storage.Comment{
			CommentID: storage.CommentID{Author: post.Author, Number: int64(Posts + i + 1)},
			Post:      post.Number,
			By:        pick(d, followers[post.Author]),
			Key:       fmt.Sprintf("demo-%d", i+1),
			Text:      pick(d, replies),
			CreatedAt: post.At + second*storage.Micros(60+d.under(3600)),
		}
	}
	return posts, comments
}

// Favored makes favorites of posts by users who follow their authors, in no order, each once. The same seed, edges and posts
// always give the same result.
func Favored(seed uint64, edges []storage.Edge, posts []storage.PostRow) []storage.Edge {
	d, followers := newDice(seed+2), followersOf(edges)
	seen := map[storage.Pair]bool{}
	favorites := make([]storage.Edge, 0, Favorites)
	for len(favorites) < Favorites {
		post := pick(d, posts)
		pair := storage.Pair{From: pick(d, followers[post.Author]), To: post.Author, Item: post.Number}
		at := post.At + second*storage.Micros(30+d.under(7200))
		if !seen[pair] {
			seen[pair] = true
			favorites = append(favorites, pair.Edge(storage.Favorited, at))
		}
	}
	return favorites
}

func followersOf(edges []storage.Edge) map[storage.UserID][]storage.UserID {
	followers := map[storage.UserID][]storage.UserID{}
	for _, e := range edges {
		followers[e.To] = append(followers[e.To], e.From)
	}
	return followers
}

// write publishes those posts and comments of the network that have not been published yet.
func write(ctx context.Context, store Store, posts []storage.PostRow, comments []storage.Comment) error {
	for _, post := range posts {
		if _, _, err := store.Publish(ctx, post); err != nil {
			return fmt.Errorf("publish demo post %d: %w", post.Number, err)
		}
	}
	for _, comment := range comments {
		if _, _, err := store.AddComment(ctx, comment); err != nil {
			return fmt.Errorf("write demo comment %d: %w", comment.Number, err)
		}
	}
	return nil
}
