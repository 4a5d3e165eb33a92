package model

import (
	"math"
	"testing"

	"kith/internal/check"
	"kith/storage"
)

// A count that an Int has no room for is shown as the greatest one, not as a negative number.
func TestCountsEndWithTheGreatestInt(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]int32{0: 0, math.MaxInt32: math.MaxInt32, math.MaxInt32 + 1: math.MaxInt32, 5e9: math.MaxInt32} {
		u := &User{Counts: storage.Result[storage.Counts]{Value: storage.Counts{Favorited: n}}}
		received, err := u.FavoritesReceivedCount()
		check.That(t, received == want && err == nil, "of a user with %d: %d, %v", n, received, err)
		p := &Post{Row: storage.Post{Counts: storage.PostCounts{Comments: n, Favorites: n}}}
		check.That(t, p.CommentCount() == want && p.FavoritesReceivedCount() == want, "of a post with %d: %d and %d", n, p.CommentCount(), p.FavoritesReceivedCount())
		total, err := (&UserConnection{CountedPage: CountedPage[UserEdge, User]{Total: storage.Result[int64]{Value: n}}}).TotalCount()
		check.That(t, total == want && err == nil, "of a list of %d: %d, %v", n, total, err)
	}
}
