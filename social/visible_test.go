package social

import (
	"fmt"
	"testing"

	"kith/internal/check"
	"kith/storage"
)

// The relation of the viewer to the owner is read only if the answer depends on it.
func TestFollowsAreAskedForWhereTheyMatter(t *testing.T) {
	audiences := map[string]*Audience{
		"nobody":             {},
		"not signed in":      NewAudience(0, nil, nil),
		"the owner":          NewAudience(1, nil, nil),
		"another":            NewAudience(2, nil, nil),
		"in a block with it": NewAudience(2, nil, []storage.UserID{1}),
	}
	for name, a := range audiences {
		for _, side := range sides {
			for _, followings := range []storage.Visibility{storage.ToEveryone, storage.ToFollowers, storage.ToNobody} {
				for _, followers := range []storage.Visibility{storage.ToEveryone, storage.ToFollowers, storage.ToNobody} {
					owner := storage.User{ID: 1, FollowingsVisibility: followings, FollowersVisibility: followers}
					l := List{side, 1}
					depends := a.Opens(l, owner, true) != a.Opens(l, owner, false)
					canFollow := a.Viewer != 0
					check.Equal(t, fmt.Sprintf("%s, %s of %+v: asks whether it follows", name, side, owner), a.NeedsFollow(l, owner), depends && canFollow)
				}
			}
		}
	}
}
